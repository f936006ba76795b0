"""Images that a task is built into: bases by interpreter, the runtime as an archive, variables of a Dockerfile."""

from __future__ import annotations

import re
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any

from envsynth.errors import ExportError
from envsynth.exporters._contents import json_lines
from envsynth.exporters._vendor import vendored
from envsynth.models import Task
from envsynth.runtime.interpreters import version_tuple
from envsynth.runtime.recipe import environment_variables
from envsynth.sandbox.users import SHARED

__all__ = ["graders_document", "image_words", "require_gradable", "runtime_archive", "variables", "zipped"]

_BY_CALLS = re.compile(r"\b(trace|edits|answer)\b")
"""Tables that are empty where nobody made calls of ours."""
_GRADED_BY = ("instruction", "environment", "verifier", "budget", "reference")
"""Parts of a candidate that grading reads."""


def require_gradable(task: Task, target: str) -> None:
    """Refuse a task whose checks ask for calls: other harnesses make none of ours.

    Args:
        task: which task.
        target: the format, for messages.

    Raises:
        ExportError: a check asks for them.
    """
    for check in task.candidate.verifier.checks:
        if _BY_CALLS.search(check.sql):
            raise ExportError(
                f"the check {check.id!r} asks for an episode's calls, which {target} does not know", where=task.id,
                next_step="leave the task out with --where, or export for a target that makes the calls",
            )  # fmt: skip


def image_words(task: Task, base: str) -> dict[str, str]:
    """What the Dockerfiles of a task say of its interpreter.

    Args:
        task: which task.
        base: image to use instead of the known one, with `{python}` for the interpreter's version; may be empty.

    Returns:
        `image`, `python` (the command that runs the runtime), `stages` that come before the first, what brings a
        `second_python` where the task's own is too old for the runtime, and `shut_folders`: the line that takes every
        user's right to write where the grader does not clean up.

    Raises:
        ExportError: there is no image for this interpreter.
    """
    version = task.candidate.workspace.recipe.interpreter
    known = _images()
    images = next((line for line in known["images"] if version_tuple(version) < version_tuple(line["before"])), None)
    if images is None:
        raise ExportError(
            f"there is no image for Python {version}", where=task.id, next_step="give one with the option `base`"
        )
    image = (base or images["task"]).replace("{python}", version)
    if version_tuple(version) >= version_tuple(known["runtime_from"]):
        return {"image": image, "python": "python3", "stages": "", "second_python": "", "shut_folders": _shut_folders()}
    return {
        "image": image,
        "python": "env LD_LIBRARY_PATH=/opt/python/lib PATH=/opt/python/bin:$PATH /opt/python/bin/python3",
        "stages": f"FROM {images['runtime']} AS runtime\nRUN pip install --no-cache-dir uv=={known['uv']}\n",
        "second_python": "# The runtime's own interpreter: the task's is too old for it.\n"
        "COPY --from=runtime /usr/local /opt/python",
        "shut_folders": _shut_folders(),
    }


def _shut_folders() -> str:
    own = [Path("/proc"), Path("/sys"), Path("/dev")]
    emptied = [place for place in SHARED if not any(place.is_relative_to(parent) for parent in own)]
    kept = " -o ".join(f"-path {place}" for place in [*own, *emptied])
    return rf"RUN find / -xdev \( {kept} \) -prune -o \( -type d -o -type f \) -perm -0002 -exec chmod o-w {{}} +"


@dataclass
class _Inside:
    """Where an image has things."""

    workdir: str

    def path(self, target: str) -> str:
        return target


def variables(task: Task, workdir: str) -> Iterator[str]:
    """Lines of a Dockerfile that set what commands in a workspace find set.

    Args:
        task: which task.
        workdir: where the image has the workspace.

    Raises:
        ExportError: one cannot stand in a Dockerfile.
    """
    for name, value in environment_variables(_Inside(workdir), task.candidate.workspace.command.document()).items():
        if name in ("HOME", "USER", "LOGNAME"):
            continue  # the agent's own user has these
        if "\n" in value or not re.fullmatch(r"\w+", name):
            raise ExportError(f"the variable {name} cannot stand in a Dockerfile", where=task.id)
        quoted = re.sub(r'([\\"$])', r"\\\1", value)
        yield f'ENV {name}="{quoted}"'


def graders_document(task: Task) -> bytes:
    """The grading document of a workspace: what `runtime.container` and `runtime.testlog` read, and nothing else."""
    document, candidate = task.document(), task.candidate.document()
    lists = {name: document[name] for name in ("tests", "controls")}
    return json_lines([{"id": task.id, **lists, "candidate": {name: candidate[name] for name in _GRADED_BY}}])


def runtime_archive() -> bytes:
    """The runtime as an archive, to be unpacked in an image."""
    return zipped({f"_envsynth/{path}": content for path, content in vendored()} | {"_envsynth/__init__.py": b""})


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A zip archive; the same bytes for the same files."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file:
        for path, content in sorted(files.items()):
            name = zipfile.ZipInfo(path)
            name.compress_type, name.create_system, name.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            file.writestr(name, content)
    return buffer.getvalue()


@cache
def _images() -> Mapping[str, Any]:
    place = resources.files(__package__).joinpath("templates", "shared", "images.toml")
    return tomllib.loads(place.read_text("utf-8"))
