"""Packs for gymnasium: a project to install, that brings tasks, contents and the runtime with it."""

from __future__ import annotations

from envsynth.exporters._package import EVERY_KIND, PackageExporter, Target

__all__ = ["Gymnasium"]


class Gymnasium(PackageExporter):
    """Writes a pack for gymnasium."""

    target = Target(
        name="gymnasium",
        requires='"gymnasium>=1.4"',
        kinds=EVERY_KIND,
        inside={"__init__.py": "package_init.py", "env.py": "env.py", "through.py": "through.py"},
        taken=frozenset({"gymnasium", "numpy"}),
    )
