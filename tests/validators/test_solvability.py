"""A solver's attempts at candidates: what calibrates, what is only said, and what luck comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import world_bench

from envsynth import admission
from envsynth.cache import Cache
from envsynth.context import BuildContext
from envsynth.errors import EndpointDown, ValidatorError
from envsynth.llm import LlmSettings, Sampling, SolverSettings
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import Answer, calls, failure, hang, text
from envsynth.models import Candidate, Source, Tier, Verdict, VerdictStatus
from envsynth.validators.solvability import Solvability
from envsynth.validators.world_solvability import WorldSolvability

Judged = Callable[..., tuple[Verdict, BuildContext]]


@pytest.fixture
def judged(source: Source, tmp_path: Path) -> Iterator[Judged]:
    """`judged(candidate, answer)`: the verdict, and the context with what was kept."""
    with ExitStack() as stack:

        def judge(candidate: Candidate, answer: Callable[[Received], Answer], **solver: Any) -> Any:
            model = stack.enter_context(ScriptedModel(answer))
            more = {name: solver.pop(name) for name in ("timeout", "retries", "failures") if name in solver}
            settings = model.settings(sampling=Sampling(max_tokens=500, seed=1), **more)
            llm = LlmSettings(solver=SolverSettings(**settings.model_dump(), **solver))
            context = BuildContext(tmp_path / "cache", llm=llm)
            stack.callback(context.leave_models)
            return WorldSolvability().validate(candidate, source, context, ()), context

        yield judge


def turn(received: Received) -> int:
    return sum(message["role"] == "assistant" for message in received.messages)


def player(right: Callable[[Received], bool]) -> Callable[[Received], Answer]:
    """Plays the shop right or wrong."""

    def answer(received: Received) -> Answer:
        amount = 4 if right(received) else 5
        script = [calls(("order", {"item": "lamp", "amount": amount}), world_bench.NOTE), calls(world_bench.SUBMIT)]
        return script[turn(received)]

    return answer


def shop(tmp_path: Path, **changes: Any) -> Candidate:
    return world_bench.candidate(Cache(tmp_path / "cache"), world_bench.worldkit.shop(), **changes)


def sometimes(received: Received) -> bool:
    return received.body["seed"] % 2 == 0


def test_a_task_that_is_sometimes_solved_is_calibrated(judged: Judged, tmp_path: Path) -> None:
    verdict, context = judged(shop(tmp_path), player(sometimes))
    assert (verdict.status, verdict.findings) == (VerdictStatus.PASS, ())
    assert verdict.evidence["luck_comes_so_far"] < 0.05
    solved = verdict.evidence["solved"]
    assert 0 < solved < 8
    assert verdict.evidence["pass_rate"] == solved / 8
    assert (verdict.evidence["mixed"], verdict.evidence["mixed_is_plug_in"], verdict.evidence["luck"]) == (
        1.0,
        False,
        0.0,
    )
    assert verdict.evidence["failures"] == {"misread_state": 8 - solved}
    kept = [(one.policy.value, one.finished) for one in context.attempts]
    assert kept == [("model", True)] * 8 + [("random", True)] * 8


@pytest.mark.parametrize(("right", "rule"), [(True, "always_solved"), (False, "unsolved")])
def test_always_and_never_are_said_and_reject_nothing(judged: Judged, tmp_path: Path, right: bool, rule: str) -> None:
    verdict, _ = judged(shop(tmp_path), player(lambda _: right))
    assert (verdict.status, verdict.reason) == (VerdictStatus.SKIP, rule)
    assert "scripted" in verdict.findings[0].message


def test_never_is_a_rejection_where_that_is_configured(judged: Judged, tmp_path: Path) -> None:
    verdict, _ = judged(shop(tmp_path), player(lambda _: False), must_solve=True)
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "unsolved")
    verdict, _ = judged(shop(tmp_path, instruction="Again."), player(lambda _: True), must_solve=True)
    assert verdict.status is VerdictStatus.SKIP


def test_garbage_is_a_failure_of_the_model_and_an_endpoint_is_none(judged: Judged, tmp_path: Path) -> None:
    verdict, _ = judged(shop(tmp_path), lambda _: calls(("order", "{")), attempts=3)
    assert (verdict.reason, verdict.evidence["failures"]) == ("unsolved", {"format": 3})
    with pytest.raises(EndpointDown):
        judged(shop(tmp_path, instruction="Again."), lambda _: failure(401))
    with pytest.raises(ValidatorError, match=r"2 of 2 attempts could not be made.*no answer in 0\.05 s") as caught:
        judged(shop(tmp_path, instruction="Hang."), lambda _: hang(), attempts=2, timeout=0.05, retries=0, failures=99)
    assert caught.value.retryable


def test_rare_mixtures_and_luck(judged: Judged, tmp_path: Path) -> None:
    seeds: dict[int, int] = {}

    def once(received: Received) -> bool:
        return seeds.setdefault(received.body["seed"], len(seeds)) == 0

    verdict, _ = judged(shop(tmp_path), player(once), attempts=20, group=2, mixed=0.2)
    assert (verdict.reason, verdict.evidence["solved"]) == ("hardly_mixed", 1)
    assert verdict.evidence["mixed"] == pytest.approx(0.1)
    # Whoever does anything at all gets it here; the model does nothing half of the time.
    easy = world_bench.Verifier(checks=(world_bench.Check(id="any", sql="SELECT count(*) > 0 FROM trace"),))
    lazy = lambda received: text("no") if sometimes(received) or turn(received) else calls(("look", {}))  # noqa: E731
    verdict, _ = judged(shop(tmp_path, verifier=easy, instruction="Look at it."), lazy)
    assert (verdict.reason, verdict.evidence["luck"]) == ("luck_does_as_well", 1.0)


def test_a_solver_without_skill_is_not_calibrated_by_its_luck(judged: Judged, tmp_path: Path) -> None:
    """It makes the calls of chance itself, and has more successes than as many draws of chance happened to have."""
    look = world_bench.Check(id="look", sql="SELECT tool = 'look' FROM trace WHERE turn = 1")
    easy = world_bench.Verifier(checks=(look,))
    # Draws of chance follow from the task: wanted is one in which they came to less than the solver, not to nothing.
    for note in ("Look first.", "Start by looking.", "Have a look first.", "First of all, look."):
        seeds: dict[int, int] = {}

        def lazy(received: Received, seeds: dict[int, int] = seeds) -> Answer:
            looks = seeds.setdefault(received.body["seed"], len(seeds)) < 2
            return text("no") if turn(received) else calls(("look", {})) if looks else calls(world_bench.NOTE)

        verdict, _ = judged(shop(tmp_path, verifier=easy, instruction=note), lazy)
        if 0 < verdict.evidence["luck"] < verdict.evidence["mean_reward"]:
            break
    assert 0 < verdict.evidence["luck"] < verdict.evidence["mean_reward"] < 1
    assert (verdict.status, verdict.reason) == (VerdictStatus.SKIP, "luck_does_as_well")
    assert verdict.evidence["luck_comes_so_far"] > 0.05


def test_a_hint_is_measured_beside(judged: Judged, tmp_path: Path) -> None:
    def told(received: Received) -> bool:
        return "lamps are four" in str(received.messages[0]["content"]) or sometimes(received)

    verdict, context = judged(shop(tmp_path, hint="The lamps are four."), player(told))
    assert verdict.status is VerdictStatus.PASS
    assert verdict.evidence["hinted"]["solved"] == 8
    assert verdict.evidence["regret"] == pytest.approx(1 - verdict.evidence["pass_rate"])
    assert sum(one.hinted for one in context.attempts) == 8


def test_graded_outcomes_are_mixed_where_rewards_differ(judged: Judged, tmp_path: Path) -> None:
    wheel = world_bench.wheel_task(Cache(tmp_path / "cache"))

    def coins(received: Received) -> Answer:
        # One coin a day has 25 of the reference's 26; resting on the day that pays six is worse. Neither is a success.
        rests = turn(received) == 1 and sometimes(received)
        return calls(world_bench.REST if rests else world_bench.ONE)

    verdict, _ = judged(wheel, coins)
    assert (verdict.evidence["mixed"], verdict.evidence["solved"]) == (1.0, 0)
    assert verdict.evidence["mean_reward"] > verdict.evidence["luck"]
    assert verdict.status is VerdictStatus.PASS


def test_without_a_solver_nothing_is_asked(candidate: Candidate, source: Source, tmp_path: Path) -> None:
    context = BuildContext(tmp_path / "cache")
    for step, proposed in ((Solvability(), candidate), (WorldSolvability(), shop(tmp_path))):
        verdict = step.validate(proposed, source, context, ())
        assert (verdict.status, verdict.reason) == (VerdictStatus.SKIP, "no_solver")


def test_its_pass_lifts_a_world_task_to_calibrated(tmp_path: Path) -> None:
    candidate = shop(tmp_path)
    names = [*admission.REQUIRED["world"], *admission.HEARD["world"], *admission.CALIBRATING["world"]]

    def tier(last: VerdictStatus) -> Tier:
        said = [Verdict(validator=name, version="1", status=VerdictStatus.PASS) for name in names]
        said[-1] = said[-1].model_copy(update={"status": last})
        task = admission.admit(candidate, said, candidate.panel)
        assert task is not None
        return task.tier

    assert tier(VerdictStatus.PASS) is Tier.CALIBRATED
    assert tier(VerdictStatus.SKIP) is Tier.VERIFIED
