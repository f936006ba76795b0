"""`envsynth export --reward`: another reward for the tasks that are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from envsynth.errors import ConfigError
from envsynth.models import RewardSpec, Task
from envsynth.settings_file import read_settings


def read_reward(file: Path) -> RewardSpec:
    """The reward that a file describes, TOML or JSON: fields of `models.RewardSpec`.

    Raises:
        ConfigError: it cannot be read, or says something else.
    """
    try:
        return RewardSpec.model_validate(read_settings(file))
    except ValidationError as exc:
        first = exc.errors()[0]
        raise ConfigError(
            "this is no reward", where=": ".join([str(file), ".".join(map(str, first["loc"]))]).rstrip(": "),
            cause=first["msg"], next_step=f"its settings are {', '.join(RewardSpec.model_fields)}",
        ) from exc  # fmt: skip


def rewarded(tasks: Iterable[Task], spec: RewardSpec) -> Iterator[Task]:
    """The tasks with another reward; checks, rubric and panel stay."""
    for task in tasks:
        verifier = task.candidate.verifier.model_copy(update={"reward": spec})
        yield task.model_copy(update={"candidate": task.candidate.model_copy(update={"verifier": verifier})})
