"""Packs for SkyRL: text environments, and a row a task."""

from __future__ import annotations

from envsynth.exporters._contents import json_lines
from envsynth.exporters._package import EVERY_KIND, PackageExporter, Project, Target
from envsynth.runtime.dialogue import tools_text

__all__ = ["SkyrlGym"]


def _rows(project: Project) -> dict[str, bytes]:
    """What SkyRL's data loader reads."""
    rows = (
        {
            "prompt": [
                {"role": "system", "content": tools_text(project.shown.tools(task))},
                {"role": "user", "content": task.candidate.instruction},
            ],
            "env_class": project.package,
            "reward_spec": {"method": "rule", "ground_truth": ""},
            "extra_info": {"task": task.id},
        }
        for task in project.tasks
    )
    return {"rows.jsonl": json_lines(rows)}


class SkyrlGym(PackageExporter):
    """Writes a pack for skyrl-gym."""

    target = Target(
        name="skyrl-gym",
        requires='"skyrl-gym>=0.4"',
        kinds=EVERY_KIND,
        inside={"__init__.py": "package_init.py", "env.py": "env.py", "through.py": "through.py"},
        files=_rows,
        taken=frozenset({"skyrl_gym"}),
    )
