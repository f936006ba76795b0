"""Packs for gymnasium: a project to install, that brings tasks, contents and the runtime with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth.exporters._package import EVERY_KIND, Target, export_package
from envsynth.models import Task
from envsynth.protocols import BlobStore

__all__ = ["Gymnasium"]

_TARGET = Target(
    name="gymnasium",
    requires='"gymnasium>=1.4"',
    kinds=EVERY_KIND,
    inside={"__init__.py": "package_init.py", "env.py": "env.py", "through.py": "through.py"},
    taken=frozenset({"gymnasium", "numpy"}),
)


class Gymnasium:
    """Writes a pack for gymnasium.

    Options: `name` of the distribution (the folder's name) and `version` (0.1.0).
    """

    name = "gymnasium"
    kinds = _TARGET.kinds

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`; the same tasks, name and version give the same bytes.

        Raises:
            ExportError: no task, a bad name, a missing content, or something else is in the folder.
        """
        return export_package(_TARGET, tasks, blobs, out, options)
