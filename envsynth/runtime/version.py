"""Identity of the code that plays and grades: what an earlier one measured is not what this one would measure."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_NOT_GRADING = frozenset(
    {"__pycache__", "gym.py", "gym_actions.py", "observe.py", "pack.py", "play.py", "replay.py", "worlds"}
)
"""Carry calls to an episode and results to people: whatever they do, the same calls are graded the same."""


@cache
def grader_digest() -> str:
    """sha256 over every source file of the runtime that decides how workspaces are played and graded."""
    return _digest(*_grading(Path(__file__).parent))


def _grading(folder: Path) -> list[Path]:
    return [place for place in sorted(folder.iterdir()) if place.name not in _NOT_GRADING]


@cache
def world_digest() -> str:
    """sha256 over what worlds are played and graded with."""
    folder = Path(__file__).parent
    return _digest(folder / "worlds", folder / "sealed.py", folder / "arguments.py", folder / "rewards.py")


@cache
def harness_digest() -> str:
    """sha256 over what decides the result of one test run."""
    folder = Path(__file__).parent
    return _digest(folder / "harness", folder / "testrun.py", folder / "testreport.py", folder / "testkeys.py")


def _digest(*places: Path) -> str:
    digest = hashlib.sha256()
    for place in places:
        files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
        for file in files:
            if file.suffix != ".pyc":
                digest.update(file.relative_to(place.parent).as_posix().encode() + b"\0")
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
