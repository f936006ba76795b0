"""Task directories for Harbor whose task is played in a world: tools served by a container beside the agent's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from envsynth.exporters._contents import archive, contents, json_lines, panel_lines
from envsynth.exporters._harbor_config import (
    Settings,
    agent_seconds,
    common_words,
    docker_image,
    toml_text,
)
from envsynth.exporters._image import zipped
from envsynth.exporters._package import Project
from envsynth.exporters._vendor import closure, rendered
from envsynth.models import Task
from envsynth.runtime.pack import BLOBS, HIDDEN, PANEL, TASKS

__all__ = ["CLIENT", "world_directory", "world_words"]

CLIENT = "harbor/world/client.py"
"""Template of what makes calls without an agent."""
_PORT = "8731"
_RECORD_FOLDER = "/var/lib/envsynth"
_IMAGE = "python:3.12-slim-bookworm"
_PYTHON = "3.12"
_CALL_S = 60
"""Seconds for a call, with what a model takes to think of it."""
_VERIFIER_S = "300.0"
_TEMPLATES = Path(__file__).parent / "templates" / "harbor" / "world"


def world_words(base: str) -> dict[str, str]:
    """What every file of such a directory may say.

    Args:
        base: image to use instead of the known one, with `{python}` for the interpreter's version; may be empty.
    """
    return {
        "image": base.replace("{python}", _PYTHON) or _IMAGE,
        "port": _PORT,
        "url": f"http://127.0.0.1:{_PORT}/mcp",
        "record": f"{_RECORD_FOLDER}/record.jsonl",
        "record_folder": _RECORD_FOLDER,
    }


def world_directory(project: Project, task: Task, full_name: str, settings: Settings) -> dict[str, bytes]:
    """A task directory of Harbor's, by relative path.

    Args:
        project: the pack.
        task: which task, one in a world.
        full_name: with the organisation.
        settings: the user's.

    Raises:
        ExportError: the world is missing.
    """
    words = common_words(task, full_name, project.version) | world_words(settings.base)
    runtime = _runtime()
    server = {
        "Dockerfile": rendered("harbor/world/server_Dockerfile", **words),
        "requirements.txt": (_TEMPLATES / "requirements.txt").read_bytes(),
        "server.py": rendered("harbor/world/server.py", **words),
        "runtime.zip": runtime,
        "pack.zip": zipped(_pack(project, task, graded=False)),
    }
    grader = {
        "Dockerfile": rendered("harbor/world/tests_Dockerfile", **words),
        "test.sh": rendered("harbor/world/test.sh", **words),
        "runtime.zip": runtime,
        "pack.zip": zipped(_pack(project, task, graded=True)),
    }
    agent = {"Dockerfile": rendered("harbor/world/Dockerfile", **words)}
    images = _image_words(task, settings, {"environment": agent, "tests": grader, "world": server})
    words |= images | {
        "keywords": f"[{toml_text('world')}, {toml_text('tools')}, {toml_text('mcp')}]",
        "agent_s": agent_seconds(task.candidate.budget.turns, _CALL_S), "verifier_s": _VERIFIER_S,
    }  # fmt: skip
    return {
        "task.toml": rendered("harbor/world/task.toml", **words),
        "instruction.md": rendered(
            "harbor/world/instruction.md", **words, instruction=task.candidate.instruction.strip()
        ),
        "environment/docker-compose.yaml": rendered("harbor/world/docker-compose.yaml", **words),
        **{f"environment/{path}": content for path, content in agent.items()},
        **{f"environment/world/{path}": content for path, content in server.items()},
        **{f"tests/{path}": content for path, content in grader.items()},
        **_solution(task, words),
    }


def _solution(task: Task, words: Mapping[str, str]) -> dict[str, bytes]:
    """The reference's calls, and what makes them."""
    calls = next(line.calls for line in task.panel if line.label == "reference")
    return {
        "solution/solve.sh": rendered("harbor/world/solve.sh"),
        "solution/client.py": rendered(CLIENT, **words),
        "solution/calls.json": json_lines([[call.document() for call in calls]]),
    }


def _pack(project: Project, task: Task, *, graded: bool) -> dict[str, bytes]:
    """A pack of one task; where it is not for grading, without a check or a trajectory."""
    candidate = task.candidate.document()
    kept = {name: candidate[name] for name in ("instruction", "environment", "budget", "verifier")}
    if not graded:
        kept["verifier"] = dict[str, JsonValue]()
    needed = contents([task], project.blobs)
    files = {
        TASKS: json_lines([project.shown.document(task)]),
        BLOBS: archive(needed.visible, project.blobs),
        f"{HIDDEN}/{TASKS}": json_lines([{"id": task.id, "task": {"candidate": kept}}]),
        f"{HIDDEN}/{BLOBS}": archive(needed.hidden, project.blobs),
    }
    return files | ({PANEL: json_lines(panel_lines(task, project.blobs))} if graded else {})


def _image_words(task: Task, settings: Settings, parts: Mapping[str, Mapping[str, bytes]]) -> dict[str, str]:
    names = {part: settings.image_of(task.id, part, files) for part, files in parts.items()}
    return {
        "agent_image": docker_image(names["environment"]),
        "grader_image": docker_image(names["tests"]),
        "world_image": f"    image: {toml_text(names['world'])}\n    pull_policy: missing\n" if names["world"] else "",
    }


@cache
def _runtime() -> bytes:
    """What plays and grades worlds, as an archive, to be unpacked in an image."""
    return zipped({f"_envsynth/{path}": content for path, content in closure("runtime.record")})
