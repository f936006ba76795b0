"""Packs for verifiers: a v1 taskset, whose tools are an MCP server of each rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth.exporters._package import Target, export_package
from envsynth.models import Task
from envsynth.protocols import BlobStore

__all__ = ["Verifiers"]

_TARGET = Target(
    name="verifiers",
    requires='"verifiers>=0.4,<0.5"',
    kinds=("world",),
    inside={
        "__init__.py": "package_init.py", "taskset.py": "taskset.py", "tools.py": "tools.py",
        "through.py": "through.py",
    },
    taken=frozenset({"verifiers", "mcp"}),
)  # fmt: skip


class Verifiers:
    """Writes a pack for verifiers, of worlds; it takes workspaces as Harbor's.

    Options: `name` of the distribution (the folder's name) and `version` (0.1.0).
    """

    name = _TARGET.name
    kinds = _TARGET.kinds

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`; the same tasks, name and version give the same bytes.

        Raises:
            ExportError: no task, one that is no world, a bad name, a missing content, or something else is in the
                folder.
        """
        return export_package(_TARGET, tasks, blobs, out, options)
