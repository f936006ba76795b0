"""Packs for NeMo Gym: a resources server, its configuration, and its rows."""

from __future__ import annotations

from envsynth.errors import ExportError
from envsynth.exporters._contents import json_lines
from envsynth.exporters._package import EVERY_KIND, PackageExporter, Project, Target
from envsynth.exporters._vendor import rendered
from envsynth.models import Task

__all__ = ["NemoGym"]

_ROUTES = frozenset({"aggregate_metrics", "close_session", "mcp", "seed_session", "verify"})
"""The server's own, by which no tool can be reached."""
_EXAMPLES = 5


def _files(project: Project) -> dict[str, bytes]:
    """The folder of the resources server, which its own commands look for."""
    name = project.package
    words = {
        "package": name,
        "count": str(len(project.tasks)),
        # The last turn has nothing more to do.
        "steps": str(max(task.candidate.budget.turns for task in project.tasks) + 1),
    }
    rows = [_row(task, project) for task in project.tasks]
    folder = f"resources_servers/{name}"
    return {
        f"{folder}/{path}": rendered(f"nemo-gym/{template}", **words)
        for path, template in (
            ("app.py", "app.py"), ("task_data.py", "task_data.py"), (f"configs/{name}.yaml", "config.yaml"),
            ("requirements.txt", "requirements.txt"), ("README.md", "server_README.md"),
            ("tests/test_app.py", "test_app.py"),
        )
    } | {
        f"{folder}/data/train.jsonl": json_lines(rows), f"{folder}/data/example.jsonl": json_lines(rows[:_EXAMPLES]),
    }  # fmt: skip


def _row(task: Task, project: Project) -> dict[str, object]:
    tools = project.shown.tools(task)
    hidden = sorted(_ROUTES & {tool["name"] for tool in tools})
    if hidden:
        raise ExportError(
            f"the tool {hidden[0]} cannot be reached", where=task.id, cause="the server has a route of this name",
            next_step="leave the task out with --where, or export for another format",
        )  # fmt: skip
    return {
        "responses_create_params": {
            "input": [{"role": "user", "content": task.candidate.instruction}],
            "tools": [{"type": "function", **tool, "strict": False} for tool in tools],
        },
        "task": task.id,
    }


class NemoGym(PackageExporter):
    """Writes a pack for NeMo Gym."""

    target = Target(
        name="nemo-gym",
        requires='"nemo-gym>=0.4"',
        kinds=EVERY_KIND,
        inside={
            "__init__.py": "package_init.py", "server.py": "server.py", "sessions.py": "sessions.py",
            "through.py": "through.py",
        },
        files=_files,
        taken=frozenset({
            "nemo_gym", "resources_servers", "responses_api_agents", "responses_api_models", "fastapi", "ray",
        }),
    )  # fmt: skip
