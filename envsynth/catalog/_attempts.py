"""Attempts and rows: what is stored in columns, and how an attempt is put together again, exactly."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any

from envsynth.models import Attempt, canonical_json

__all__ = ["attempt_columns", "to_attempt"]

_LARGE = ("grade", "trace")
"""Fields that have a column of their own, for queries."""


def attempt_columns(attempts: Iterable[Attempt]) -> dict[str, list[Any]]:
    """Parameters of `insert_attempts`, a list a column."""
    rows = [_row(attempt) for attempt in attempts]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _row(attempt: Attempt) -> dict[str, Any]:
    document = attempt.document()
    rest = {name: value for name, value in document.items() if name not in _LARGE}
    grade = attempt.grade
    return {
        "key": attempt.key, "lead": attempt.lead, "task": attempt.task, "played": attempt.played,
        "policy": attempt.policy.value, "model": attempt.model, "settings": attempt.settings, "hinted": attempt.hinted,
        "k": attempt.k, "status": attempt.status.value, "trouble": attempt.trouble,
        "ending": attempt.ending and attempt.ending.value, "failure": attempt.failure and attempt.failure.value,
        "success": attempt.failure is None if attempt.finished else None,
        "reward": grade and grade.reward, "outcome": grade and grade.outcome,
        "turns": attempt.turns, "calls": len(attempt.trace), "prompt_tokens": attempt.tokens.prompt,
        "cached_tokens": attempt.tokens.cached, "completion_tokens": attempt.tokens.completion,
        "cost_usd": attempt.cost_usd, "wall_s": attempt.wall_s, "model_s": attempt.model_s,
        "grade": grade and grade.to_json(), "trace": canonical_json(document["trace"]),
        "rest": zlib.compress(canonical_json(rest).encode()),
    }  # fmt: skip


def to_attempt(rest: bytes, grade: str | None, trace: str) -> Attempt:
    """The attempt of a row of `attempts`."""
    document = json.loads(zlib.decompress(rest))
    return Attempt.model_validate(
        {**document, "grade": None if grade is None else json.loads(grade), "trace": json.loads(trace)}
    )
