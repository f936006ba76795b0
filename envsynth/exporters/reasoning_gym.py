"""Packs for reasoning-gym: a dataset whose answers are lists of calls."""

from __future__ import annotations

from envsynth.exporters._package import PackageExporter, Target

__all__ = ["ReasoningGym"]


class ReasoningGym(PackageExporter):
    """Writes a pack for reasoning-gym, of worlds only: an answer is written without seeing any result."""

    target = Target(
        name="reasoning-gym",
        requires='"reasoning-gym>=0.1.25"',
        kinds=("world",),
        inside={"__init__.py": "package_init.py", "env.py": "env.py", "through.py": "through.py"},
        taken=frozenset({"reasoning_gym"}),
    )
