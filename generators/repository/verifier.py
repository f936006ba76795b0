"""The verifier of every code task, read from `verifier.toml` and `runs.sql`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from pydantic import JsonValue

from envsynth.models import Verifier


@cache
def code_verifier() -> Verifier:
    """Checks and rubric of a code task."""
    folder = resources.files(__package__)
    runs = "\n".join(
        line for line in (folder / "runs.sql").read_text("utf-8").splitlines() if not line.lstrip().startswith("--")
    )
    return Verifier.model_validate(
        _filled(tomllib.loads((folder / "verifier.toml").read_text("utf-8")), {"{{runs}}": runs})
    )


def _filled(document: JsonValue, parts: Mapping[str, str]) -> JsonValue:
    """A document whose texts have each placeholder replaced."""
    if isinstance(document, dict):
        return {key: _filled(value, parts) for key, value in document.items()}
    if isinstance(document, list):
        return [_filled(value, parts) for value in document]
    if isinstance(document, str):
        for mark, text in parts.items():
            document = document.replace(mark, text)
    return document
