"""Packs for inspect-ai: a task with a solver of its own, and a scorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth.exporters._package import EVERY_KIND, Target, export_package
from envsynth.models import Task
from envsynth.protocols import BlobStore

__all__ = ["Inspect"]

_TARGET = Target(
    name="inspect",
    requires='"inspect-ai>=0.3.285"',
    kinds=EVERY_KIND,
    inside={"__init__.py": "package_init.py", "task.py": "task.py", "through.py": "through.py"},
    taken=frozenset({"inspect_ai", "anyio"}),
)


class Inspect:
    """Writes a pack for inspect-ai.

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
