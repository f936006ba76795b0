"""Packs for Agent Lightning: the request of each rollout, and the agent that its controller runs."""

from __future__ import annotations

from envsynth.exporters._contents import json_lines
from envsynth.exporters._package import EVERY_KIND, PackageExporter, Project, Target

__all__ = ["AgentLightning"]

_TIMEOUT_S = 3600


def _rows(project: Project) -> dict[str, bytes]:
    """A request a task, inside the package."""
    runner = {"agent_class": f"{project.package}.agent:TaskAgent", "env_map": {"ENVSYNTH_TASK": "input.task"}}
    rows = (
        {
            "input": {"task": task.id, "instruction": task.candidate.instruction},
            "config": {"timeout_seconds": _TIMEOUT_S, "local": runner},
        }
        for task in project.tasks
    )
    return {f"{project.package}/rows.jsonl": json_lines(rows)}


class AgentLightning(PackageExporter):
    """Writes a pack for Agent Lightning."""

    target = Target(
        name="agentlightning",
        requires='"httpx>=0.28"',
        kinds=EVERY_KIND,
        inside={
            "__init__.py": "package_init.py", "agent.py": "agent.py", "rows.py": "rows.py", "through.py": "through.py",
        },
        files=_rows,
        taken=frozenset({"agentlightning", "httpx"}),
    )  # fmt: skip
