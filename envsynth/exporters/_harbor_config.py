"""What Harbor's task directories of both kinds say alike: configuration, digests, names of images."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from envsynth.errors import ExportError
from envsynth.models import Task

__all__ = ["Settings", "agent_seconds", "common_words", "content_digest", "docker_image", "toml_text"]

_BUILD_S = 1800
"""Seconds for an image: pinned packages are installed, and in the grader's the tests run."""
_AGENT_S = (900, 7200)
"""Least and most seconds for an agent; between them the budget of calls decides."""
_ORG = re.compile(r"[a-z0-9][a-z0-9._-]*")
_PLACES = re.compile(r"\{(\w*)\}")


class Settings(NamedTuple):
    """What a user may say of a pack for Harbor."""

    org: str = "envsynth"
    """In the names of tasks."""
    base: str = ""
    """Image that tasks are built on, with `{python}` for the interpreter's version; empty: a known one."""
    image: str = ""
    """Name of the built images, with `{part}` and `{task}` or `{digest}`; empty: they are built where they run."""

    def require_usable(self) -> None:
        """Check them.

        Raises:
            ExportError: one is of no use.
        """
        if not _ORG.fullmatch(self.org):
            raise ExportError(f"{self.org!r} cannot be an organisation", where="harbor", next_step="give another org")
        places = set(_PLACES.findall(self.image))
        if self.image and (not places <= {"part", "task", "digest"} or "part" not in places or len(places) < 2):
            raise ExportError(
                f"{self.image!r} does not name one image for each part of each task", where="harbor",
                next_step="give one such as image=registry.example/tasks:{task}-{part}-{digest}",
            )  # fmt: skip

    def image_of(self, task: str, part: str, files: Mapping[str, bytes]) -> str:
        """Name of a built image; empty where it has none.

        Args:
            task: the task's id.
            part: `environment`, `tests` or `world`: what it is built from.
            files: what it is built from, by path: `{digest}` is theirs.
        """
        return self.image.format(task=task, part=part, digest=content_digest(files)[:12]) if self.image else ""


def common_words(task: Task, full_name: str, version: str) -> dict[str, str]:
    """What the configuration says of a task of either kind, but for `agent_s`, `verifier_s` and memory."""
    lead = task.candidate.provenance.lead
    return {
        "full_name": toml_text(full_name), "version": toml_text(version), "task_id": toml_text(task.id),
        "description": toml_text(f"{lead.strategy} task of {lead.source}"),
        "digest": toml_text(task.digest()), "tier": toml_text(task.tier.value), "source": toml_text(lead.source),
        "turns": str(task.candidate.budget.turns), "strength": "\n".join(_strength(task)),
        "build_s": str(float(_BUILD_S)),
    }  # fmt: skip


def agent_seconds(turns: int, seconds: float) -> str:
    """Seconds for an agent.

    Args:
        turns: calls that it has.
        seconds: that one may take.
    """
    least, most = _AGENT_S
    return str(float(min(most, max(least, round(turns * seconds + 0.5)))))


def docker_image(name: str) -> str:
    """The line of a configuration that names an image; empty without a name."""
    return f"docker_image = {toml_text(name)}\n" if name else ""


def content_digest(files: Mapping[str, bytes]) -> str:
    """Harbor's own digest of a directory: sha256 over its files' paths and digests, in order."""
    lines = (f"{path}\0{hashlib.sha256(content).hexdigest()}\n" for path, content in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def toml_text(text: str) -> str:
    """A string of TOML; JSON's differ in the delete character and in halves of pairs."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _strength(task: Task) -> Iterator[str]:
    """How strong the grader was measured to be; what was not measured is left out, for TOML has no null."""
    for name, value in sorted(task.strength.document().items()):
        if isinstance(value, int | float | bool):
            yield f"{name} = {json.dumps(value)}"
