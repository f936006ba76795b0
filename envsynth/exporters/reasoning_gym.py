"""Packs for reasoning-gym: a dataset whose answers are lists of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth.exporters._package import Target, export_package
from envsynth.models import Task
from envsynth.protocols import BlobStore

__all__ = ["ReasoningGym"]

_TARGET = Target(
    name="reasoning-gym",
    requires='"reasoning-gym>=0.1.25"',
    kinds=("world",),
    inside={"__init__.py": "package_init.py", "env.py": "env.py", "through.py": "through.py"},
    taken=frozenset({"reasoning_gym"}),
)


class ReasoningGym:
    """Writes a pack for reasoning-gym, of worlds only: an answer is written without seeing any result.

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
