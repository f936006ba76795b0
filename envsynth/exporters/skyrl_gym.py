"""Packs for SkyRL: text environments, and a row a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth.exporters._contents import json_lines
from envsynth.exporters._package import EVERY_KIND, Project, Target, export_package
from envsynth.models import Task
from envsynth.protocols import BlobStore
from envsynth.runtime.dialogue import tools_text

__all__ = ["SkyrlGym"]


class SkyrlGym:
    """Writes a pack for skyrl-gym.

    Options: `name` of the distribution (the folder's name) and `version` (0.1.0).
    """

    name = "skyrl-gym"
    kinds = EVERY_KIND

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`; the same tasks, name and version give the same bytes.

        Raises:
            ExportError: no task, a bad name, a missing content, or something else is in the folder.
        """
        return export_package(_TARGET, tasks, blobs, out, options)


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


_TARGET = Target(
    name=SkyrlGym.name,
    requires='"skyrl-gym>=0.4"',
    kinds=EVERY_KIND,
    inside={"__init__.py": "package_init.py", "env.py": "env.py", "through.py": "through.py"},
    files=_rows,
    taken=frozenset({"skyrl_gym"}),
)
