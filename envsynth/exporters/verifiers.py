"""Packs for verifiers: a v1 taskset, whose tools are an MCP server of each rollout."""

from __future__ import annotations

from envsynth.exporters._package import PackageExporter, Target

__all__ = ["Verifiers"]


class Verifiers(PackageExporter):
    """Writes a pack for verifiers, of worlds; it takes workspaces as Harbor's."""

    target = Target(
        name="verifiers",
        requires='"verifiers>=0.4,<0.5"',
        kinds=("world",),
        inside={
            "__init__.py": "package_init.py", "taskset.py": "taskset.py", "tools.py": "tools.py",
            "through.py": "through.py",
        },
        taken=frozenset({"verifiers", "mcp"}),
    )  # fmt: skip
