"""Packs for MCP: a server on standard input and output, one process an episode."""

from __future__ import annotations

from envsynth.exporters._package import EVERY_KIND, PackageExporter, Target

__all__ = ["Mcp"]


class Mcp(PackageExporter):
    """Writes a pack for MCP."""

    target = Target(
        name="mcp",
        requires='"mcp>=2"',
        kinds=EVERY_KIND,
        inside={"__init__.py": "package_init.py", **{name: name for name in ("server.py", "reward.py", "through.py")}},
        scripts={"": "server:main"},
        taken=frozenset({"mcp", "anyio"}),
    )
