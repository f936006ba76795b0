"""Policies without a model: given trajectories, wrong steps that still fit, and calls by chance."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import rolloutkit
import world_bench
import worldkit

from envsynth.agents import BlindAgent, SkilledAgent, TrajectoryAgent
from envsynth.agents.values import Seen, another, drawn, schemas_of
from envsynth.cache import Cache
from envsynth.errors import ConfigError
from envsynth.models import Ending, FailureKind, Policy
from envsynth.rollout import attempted
from envsynth.runtime.arguments import check_arguments

SCHEMAS = schemas_of(worldkit.episode_of().tools())


@pytest.mark.parametrize("tool", sorted(SCHEMAS))
def test_drawn_arguments_fit_their_schema(tool: str) -> None:
    seen = Seen()
    seen.look([{"item": "lamp", "price": 49, "deep": {"total": 7, "body": "x" * 500}}, None, [[3.5]]])
    for seed in range(50):
        arguments = drawn(SCHEMAS[tool], Random(seed), seen)
        assert check_arguments(SCHEMAS[tool], arguments).error == ""


def test_values_that_were_seen_are_used_under_their_name() -> None:
    schema = {"properties": {"id": {"type": "string"}}, "required": ["id"]}
    seen = Seen()
    seen.look({"rows": [{"id": "R-7", "name": "Ann"}]})
    assert {drawn(schema, Random(seed), seen)["id"] for seed in range(9)} == {"R-7"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("order", {"item": "lamp", "amount": 9}), ("submit", {"total": 0}), ("note", {"body": "x" * 200, "cents": 1.5}),
        ("order_all", {"plan": '[{"item": "lamp", "amount": 4}]'}), ("find", {"part": ""}),
    ],
)  # fmt: skip
def test_a_wrong_step_differs_and_fits(tool: str, arguments: dict[str, Any]) -> None:
    for seed in range(30):
        changed = another(arguments, SCHEMAS[tool], Random(seed))
        assert changed is not None
        assert changed != arguments
        assert check_arguments(SCHEMAS[tool], changed).error == ""


def test_a_call_without_arguments_has_no_wrong_twin() -> None:
    assert another({}, SCHEMAS["look"], Random(0)) is None
    only = {"properties": {"one": {"type": "string", "enum": ["a"]}}, "required": ["one"]}
    assert another({"one": "a"}, only, Random(0)) is None


def test_a_given_trajectory_is_a_policy_of_its_own(cache: Cache) -> None:
    task = rolloutkit.playable_of(cache, rolloutkit.shop_task(cache))
    five = world_bench.SHOP_PANEL[3]
    made = attempted(task, TrajectoryAgent(Policy.SCRIPTED, five), 0)
    assert (made.model, made.ending, made.failure) == ("mutant:five", Ending.SUBMITTED, FailureKind.MISREAD_STATE)
    reference = attempted(task, TrajectoryAgent(Policy.REFERENCE), 0)
    assert (reference.failure, reference.turns, len(reference.trace)) == (None, 4, 4)
    assert made.key != reference.key


def test_skill_decides_and_draws_repeat(cache: Cache) -> None:
    task = rolloutkit.playable_of(cache, rolloutkit.steps_task(cache, 5))
    assert attempted(task, SkilledAgent(1.0), 3).failure is None
    wrong = attempted(task, SkilledAgent(0.0), 3)
    right = {line.label: line for line in rolloutkit.steps_task(cache, 5).panel}["reference"].calls
    assert all(step.ok and step.arguments != call.arguments for step, call in zip(wrong.trace, right, strict=True))
    assert attempted(task, SkilledAgent(0.5), 1).trace == attempted(task, SkilledAgent(0.5), 1).trace
    assert attempted(task, BlindAgent(), 1).trace == attempted(task, BlindAgent(), 1).trace
    with pytest.raises(ConfigError, match="is no probability"):
        SkilledAgent(-0.1)


def test_a_panel_without_a_reference_is_told(cache: Cache) -> None:
    task = rolloutkit.playable_of(cache, rolloutkit.shop_task(cache))
    bare = task._replace(told=task.told._replace(panel={}))
    with pytest.raises(ConfigError, match="has no trajectory 'reference'"):
        attempted(bare, TrajectoryAgent(Policy.REFERENCE), 0)
