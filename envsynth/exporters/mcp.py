"""Packs for MCP: a server on standard input and output, one process an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth.exporters._package import EVERY_KIND, Target, export_package
from envsynth.models import Task
from envsynth.protocols import BlobStore

__all__ = ["Mcp"]

_TARGET = Target(
    name="mcp",
    requires='"mcp>=2"',
    kinds=EVERY_KIND,
    inside={"__init__.py": "package_init.py", "server.py": "server.py", "through.py": "through.py"},
    scripts={"": "server:main"},
    taken=frozenset({"mcp", "anyio"}),
)


class Mcp:
    """Writes a pack for MCP.

    Options: `name` of the distribution (the folder's name) and `version` (0.1.0).
    """

    name = _TARGET.name
    kinds = _TARGET.kinds

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`; the same tasks, name and version give the same bytes.

        Raises:
            ExportError: no task, a bad name, a missing content, or something else is in the folder.
        """
        return export_package(_TARGET, tasks, blobs, out, options)
