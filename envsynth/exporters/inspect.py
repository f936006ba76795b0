"""Packs for inspect-ai: a task with a solver of its own, and a scorer."""

from __future__ import annotations

from envsynth.exporters._package import EVERY_KIND, PackageExporter, Target

__all__ = ["Inspect"]


class Inspect(PackageExporter):
    """Writes a pack for inspect-ai."""

    target = Target(
        name="inspect",
        requires='"inspect-ai>=0.3.285"',
        kinds=EVERY_KIND,
        inside={"__init__.py": "package_init.py", "task.py": "task.py", "through.py": "through.py"},
        taken=frozenset({"inspect_ai", "anyio"}),
    )
