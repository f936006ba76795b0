"""The verifier of every code task, read from `verifier.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

from envsynth.models import Verifier


@cache
def code_verifier() -> Verifier:
    """Checks and rubric of a code task."""
    return Verifier.model_validate(tomllib.loads((resources.files(__package__) / "verifier.toml").read_text("utf-8")))
