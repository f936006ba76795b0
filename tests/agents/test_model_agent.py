"""A model that plays a world: right, wrong, in garbage, beyond its budgets, and with an endpoint that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import rolloutkit

from envsynth.agents import Limits, ModelAgent
from envsynth.agents.model import SHOWN, Malformed
from envsynth.cache import Cache
from envsynth.errors import EndpointDown
from envsynth.llm import Client, Usage
from envsynth.llm.scripted_answers import (
    Answer,
    calls,
    cut,
    empty,
    failure,
    garbage,
    hang,
    rate_limited,
    refusal,
    text,
    truncated,
)
from envsynth.models import Attempt, AttemptStatus, Ending, FailureKind
from envsynth.models.verifier import Budget, RewardSpec
from envsynth.rollout import attempted
from envsynth.runtime.gym import MAX_OBSERVATION

LAMPS, NOTE = ("order", {"item": "lamp", "amount": 4}), ("note", {"body": "x", "cents": 196})
SUBMIT = ("submit", {"total": 4})
Solver = Callable[..., Client]


def play(
    cache: Cache,
    client: Client,
    *,
    limits: Limits = Limits(),  # noqa: B008  frozen
    malformed: Malformed = "as_graded",
    tell: bool = False,
    k: int = 0,
    **changes: Any,
) -> Attempt:
    task = rolloutkit.Playables(cache.get, cache.root).of_task(
        rolloutkit.shop_task(cache, **changes), rolloutkit.no_backend
    )
    return attempted(task if tell else task.without_hint(), ModelAgent(client, limits, malformed), k)


def test_it_solves_a_world_with_calls_made_in_order(cache: Cache, solver: Solver) -> None:
    client = solver([calls(("look", {}), LAMPS, content="First the lamps."), calls(NOTE), calls(SUBMIT)])
    attempt = play(cache, client)
    assert attempt.grade is not None
    assert (attempt.grade.reward, attempt.ending, attempt.failure) == (1.0, Ending.SUBMITTED, None)
    assert [step.tool for step in attempt.trace] == ["look", "order", "note", "submit"]
    assert attempt.trace[1].result == {"id": 1, "item": "lamp", "amount": 4}
    assert [one.role for one in attempt.conversation] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    first = attempt.conversation[2]
    assert (first.content, [call.name for call in first.tool_calls]) == ("First the lamps.", ["look", "order"])
    assert [one.tool_call_id for one in attempt.conversation[3:5]] == [call.id for call in first.tool_calls]
    assert attempt.conversation[3].content.splitlines()[0] == '{"item": "clock", "price": 20, "weight": 2}'
    assert (attempt.turns, attempt.model, attempt.key) == (3, "scripted", Attempt.from_json(attempt.to_json()).key)
    assert attempt.tokens.completion > 0
    assert attempt.cost_usd == pytest.approx((attempt.tokens.prompt + 2 * attempt.tokens.completion) / 1e6)


def test_what_it_is_told(cache: Cache, solver: Solver) -> None:
    seen: list[list[dict[str, Any]]] = []

    def answer(received: Any) -> Answer:
        seen.append(received.messages)
        return text("I am done.")

    limits = Limits(max_tokens=900, max_seconds=60)
    attempt = play(cache, solver(answer), limits=limits, tell=True, hint="Four </quoted> lamps.",
                   budget=Budget(turns=7, cost=12))  # fmt: skip
    assert attempt.ending is Ending.STOPPED
    assert attempt.hinted
    system = seen[0][0]["content"]
    for part in (
        "at most 7 tool calls",
        "at most 12:",
        "900 tokens",
        "60 seconds",
        "hand in with submit",
        "</quoted> lamp",
    ):
        assert part in system
    assert seen[0][1]["content"] == rolloutkit.world_bench.worldkit.INSTRUCTION
    assert "{{" not in system
    unhinted = play(cache, solver([text("done")]), hint="Four lamps.", budget=Budget(turns=7))
    assert "lamps" not in unhinted.conversation[0].content
    assert unhinted.key != attempt.key


def test_it_ends_wrong_and_the_kind_is_told(cache: Cache, solver: Solver) -> None:
    five = ("order", {"item": "lamp", "amount": 5})
    misread = play(cache, solver([calls(five), calls(NOTE), calls(SUBMIT)]))
    assert (misread.ending, misread.failure) == (Ending.SUBMITTED, FailureKind.MISREAD_STATE)
    misused = play(cache, solver([calls(("order", {"item": "lamps", "amount": 4})), text("I give up.")]), k=1)
    assert (misused.ending, misused.failure) == (Ending.STOPPED, FailureKind.TOOL_MISUSE)
    twice = calls(LAMPS, ("order", {"item": "lamp", "amount": 1}), ("ordre", {}), ("look", {}))
    guarded = play(cache, solver([twice, text("It was ordered already.")]), k=2)
    assert [step.ok for step in guarded.trace] == [True, False, False, True]
    assert guarded.failure is FailureKind.NO_RECOVERY


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (truncated(), "cut"), (refusal(), "declined"), (empty(), "empty"), (text("x" * 500), "longer than allowed"),
        (calls(("order", "{not json")), "no JSON object"), (calls(("order", "[1]")), "no JSON object"),
    ],
    ids=["cut", "refused", "empty", "long", "no JSON", "no object"],
)  # fmt: skip
def test_faults_of_its_answers_are_its_own(cache: Cache, solver: Solver, answer: Answer, fault: str) -> None:
    attempt = play(cache, solver([calls(LAMPS), calls(NOTE), answer], max_chars=400))
    assert attempt.status is AttemptStatus.FINISHED
    assert (attempt.ending, attempt.failure) == (Ending.MALFORMED, FailureKind.FORMAT)
    assert fault in attempt.fault
    assert attempt.grade is not None
    assert (attempt.grade.gate, attempt.grade.reward) == (0.0, 0.0)
    assert attempt.trace[-1].tool == ""
    answered = {one.tool_call_id for one in attempt.conversation if one.role == "tool"}
    assert {call.id for one in attempt.conversation for call in one.tool_calls} == answered


GOOD = [calls(LAMPS, NOTE), calls(SUBMIT)]


@pytest.mark.parametrize(
    ("script", "malformed", "gate", "reward"),
    [
        ([calls(("ordre", {}))], "as_graded", "valid_transcript", 1.0),
        ([calls(("ordre", {}))], "end", "valid_transcript", 0.0),
        ([calls(("order", "[1]"))], "as_graded", "valid_transcript", 0.0),
        ([calls(("order", "[1]"))], "as_graded", "within_budget", 1.0),
        ([calls(("order", "[1]"))], "answer", "valid_transcript", 1.0),
    ],
)
def test_malformed_calls_end_or_continue_as_the_reward_says(
    cache: Cache, solver: Solver, script: Sequence[Answer], malformed: Malformed, gate: Any, reward: float
) -> None:
    verifier = rolloutkit.world_bench.SHOP_VERIFIER.model_copy(update={"reward": RewardSpec(gate=(gate,))})
    attempt = play(cache, solver([*script, *GOOD]), malformed=malformed, verifier=verifier)
    assert attempt.grade is not None
    assert attempt.grade.reward == reward
    assert (attempt.ending is Ending.MALFORMED) == (reward == 0.0)


def test_budgets_of_calls_tokens_and_time(cache: Cache, solver: Solver) -> None:
    looks = play(cache, solver(lambda _: calls(("look", {}))), budget=Budget(turns=3))
    assert looks.grade is not None
    assert (looks.ending, looks.failure, looks.grade.gate) == (Ending.TURN_BUDGET, FailureKind.BUDGET, 0.0)
    assert len(looks.trace) == 4
    dear = calls(("look", {}))._replace(usage=Usage(prompt_tokens=5, completion_tokens=60))
    spent = play(cache, solver(lambda _: dear), limits=Limits(max_tokens=100))
    assert (spent.ending, spent.turns, spent.tokens.completion) == (Ending.TOKEN_BUDGET, 2, 120)
    silent = play(cache, solver(lambda _: dear._replace(tells_usage=False)), limits=Limits(max_tokens=30))
    assert silent.ending is Ending.TOKEN_BUDGET
    late = play(cache, solver([calls(("look", {}))]), limits=Limits(max_seconds=1e-9))
    assert (late.ending, late.turns, late.trace) == (Ending.TIME_BUDGET, 0, ())
    assert late.failure is FailureKind.BUDGET


def test_a_context_that_is_used_up_is_a_spent_budget_and_one_that_never_fits_is_not(
    cache: Cache, solver: Solver
) -> None:
    full = failure(400, "This model's maximum context length is 2048 tokens.")
    attempt = play(cache, solver([calls(LAMPS), full]))
    assert (attempt.ending, attempt.failure) == (Ending.TOKEN_BUDGET, FailureKind.BUDGET)
    assert "maximum context length" in attempt.fault
    never = play(cache, solver(lambda _: full), k=1)
    assert never.status is AttemptStatus.ENVIRONMENT_ERROR


@pytest.mark.parametrize("trouble", [rate_limited(0), failure(500), garbage(), cut()], ids=["429", "500", "bad", "cut"])
def test_an_endpoint_that_recovers_costs_the_agent_nothing(cache: Cache, solver: Solver, trouble: Answer) -> None:
    attempt = play(cache, solver([calls(LAMPS), trouble, calls(NOTE), trouble, calls(SUBMIT)]))
    assert attempt.grade is not None
    assert attempt.grade.reward == 1.0


def test_an_endpoint_that_hangs_is_kept_apart_and_the_rest_is_not_asked_again(cache: Cache, solver: Solver) -> None:
    hanging = [calls(LAMPS), *[hang()] * 3]
    attempt = play(cache, solver(hanging, timeout=0.05, retries=0, failures=100))
    assert (attempt.status, attempt.grade, attempt.failure) == (AttemptStatus.ENVIRONMENT_ERROR, None, None)
    assert "no answer in 0.05 s" in attempt.trouble
    mended = play(cache, solver([calls(NOTE), calls(SUBMIT)]))
    assert mended.grade is not None
    assert (mended.grade.reward, mended.key) == (1.0, attempt.key)


def test_an_endpoint_that_is_down_stops_everything(cache: Cache, solver: Solver) -> None:
    with pytest.raises(EndpointDown):
        play(cache, solver(lambda _: failure(401)))


def test_draws_differ_and_results_are_cut_as_in_packs(cache: Cache, solver: Solver) -> None:
    assert SHOWN == MAX_OBSERVATION
    seeds: list[object] = []

    def answer(received: Any) -> Answer:
        seeds.append(received.body.get("seed"))
        return calls(("find", {"part": "\ud800"})) if len(received.messages) == 2 else text("done")

    from envsynth.llm import Sampling

    client = solver(answer, sampling=Sampling(seed=5, max_tokens=100))
    task = rolloutkit.playable_of(cache, rolloutkit.shop_task(cache))
    made = [attempted(task, ModelAgent(client, Limits()), k) for k in range(3)]
    assert len({attempt.key for attempt in made}) == 3
    assert len(set(seeds)) == 3
    for attempt in made:
        assert Attempt.from_json(attempt.to_json()) == attempt
