"""Packs for TRL: environment classes whose methods are the tools, and rows that name their class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth.errors import ExportError
from envsynth.exporters._contents import json_lines
from envsynth.exporters._package import EVERY_KIND, Project, Target, export_package
from envsynth.models import Task, digest_of
from envsynth.protocols import BlobStore
from envsynth.runtime.tool_methods import unusable

__all__ = ["Trl"]

_METHODS = frozenset({"reset", "get_reward"})


class Trl:
    """Writes a pack for TRL.

    Options: `name` of the distribution (the folder's name) and `version` (0.1.0).
    """

    name = "trl"
    kinds = EVERY_KIND

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`; the same tasks, name and version give the same bytes.

        Raises:
            ExportError: no task, a tool that cannot be a method, a bad name, a missing content, or something else is in
                the folder.
        """
        return export_package(_TARGET, tasks, blobs, out, options)


def _rows(project: Project) -> dict[str, bytes]:
    """A row a task, inside the package; tasks with equal tools share a class."""
    rows = []
    for task in project.tasks:
        tools = project.shown.tools(task)
        fault = unusable(tools, _METHODS)
        if fault:
            raise ExportError(
                "the tools cannot be methods of a class", where=task.id, cause=fault,
                next_step="leave the task out with --where, or export for another format",
            )  # fmt: skip
        rows.append({
            "prompt": [{"role": "user", "content": task.candidate.instruction}],
            "environment": f"{task.candidate.environment.kind}_{digest_of(tools)[:12]}", "task": task.id,
        })  # fmt: skip
    return {f"{project.package}/rows.jsonl": json_lines(rows)}


_TARGET = Target(
    name=Trl.name,
    requires="",
    kinds=EVERY_KIND,
    inside={
        "__init__.py": "package_init.py", "env.py": "env.py", "rows.py": "rows.py", "through.py": "through.py",
    },
    files=_rows,
    taken=frozenset({"trl", "transformers", "datasets"}),
)  # fmt: skip
