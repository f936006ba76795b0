"""Checks, rubric and graded utility of a mechanism."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from envsynth.models import Check, Criterion, ToolKind, Utility, Verifier, World


def verifier(world: World, utility: Utility) -> Verifier:
    """What grades an episode: it acted, it is not above the ceiling, and how far its utility came.

    Args:
        world: dressed.
        utility: in the world's names.
    """
    acts = _listed(tool.name for tool in world.tools if tool.kind not in (ToolKind.READ, ToolKind.THINK))
    checks = [Check(id="acted", sql=f"SELECT EXISTS(SELECT 1 FROM trace WHERE ok AND tool IN ({acts}))")]
    if utility.hindsight is not None:
        # More than anyone could have got is no success but a hole in the world.
        checks.append(Check(id="within_ceiling", sql=f"SELECT ({utility.sql}) <= {utility.hindsight!r} + 1e-6"))
    return Verifier(checks=tuple(checks), rubric=tuple(_rubric(world, acts)), utility=utility)


def _rubric(world: World, acts: str) -> Iterator[Criterion]:
    reads = _listed(tool.name for tool in world.tools if tool.kind is ToolKind.READ)
    for line in _lines():
        if line["needs"] == "reads" and not reads:
            continue
        fields = {key: value for key, value in line.items() if key != "needs"}
        fields["sql"] = line["sql"].format(reads=reads, acts=acts)
        yield Criterion.model_validate(fields)


@cache
def _lines() -> Sequence[dict[str, Any]]:
    document = tomllib.loads(Path(__file__).with_name("rubric.toml").read_text("utf-8"))
    lines: list[dict[str, Any]] = document["criteria"]
    return lines


def _listed(names: Iterator[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
