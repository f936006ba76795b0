"""Packs for TRL: environment classes whose methods are the tools, and rows that name their class."""

from __future__ import annotations

from envsynth.errors import ExportError
from envsynth.exporters._contents import json_lines
from envsynth.exporters._package import EVERY_KIND, PackageExporter, Project, Target
from envsynth.models import digest_of
from envsynth.runtime.tool_methods import unusable

__all__ = ["Trl"]

_METHODS = frozenset({"reset", "get_reward"})


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


class Trl(PackageExporter):
    """Writes a pack for TRL."""

    target = Target(
        name="trl",
        requires="",
        kinds=EVERY_KIND,
        inside={
            "__init__.py": "package_init.py", "env.py": "env.py", "rows.py": "rows.py", "through.py": "through.py",
        },
        files=_rows,
        taken=frozenset({"trl", "transformers", "datasets"}),
    )  # fmt: skip
