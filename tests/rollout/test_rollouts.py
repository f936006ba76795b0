"""Rollouts over a catalog: fixed policies, known skill, a scripted model, trouble, and going on after a stop."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import rolloutkit

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.errors import BudgetSpent, ConfigError, EndpointDown, EnvsynthError, SandboxError
from envsynth.llm import LlmSettings, RoleSettings, Usage
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import Answer, calls, failure, hang, text
from envsynth.models import AttemptStatus, Event, Policy, Task
from envsynth.rollout import mixed_chance_of_rate
from envsynth.rollout.report import RolloutReport
from envsynth.rollout.runner import RolloutRequest, rollout

LAMPS, NOTE = ("order", {"item": "lamp", "amount": 4}), ("note", {"body": "x", "cents": 196})
SUBMIT = ("submit", {"total": 4})


def config(folder: Path, *, solver: RoleSettings | None = None, budget: float | None = None, jobs: int = 2) -> Any:
    llm = LlmSettings(solver=solver, budget=budget)
    return BuildConfig(catalog=folder / "c.duckdb", cache=folder / "cache", jobs=jobs, llm=llm)


def catalog(folder: Path, tasks: list[Task]) -> Path:
    return rolloutkit.catalog_of(folder / "c.duckdb", Cache(folder / "cache"), tasks)


def run(folder: Path, policy: Policy | str, *, events: list[Event] | None = None, **more: Any) -> RolloutReport:
    options = {name: more.pop(name) for name in ("solver", "budget", "jobs") if name in more}
    heard: list[Event] = [] if events is None else events
    return rollout(config(folder, **options), RolloutRequest(policy=policy, **more), heard.append)


def test_references_solve_and_idlers_do_not_and_nothing_is_made_twice(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    tasks = [rolloutkit.steps_task(cache, 3, n) for n in range(4)] + [rolloutkit.wheel_task(cache)]
    catalog(tmp_path, tasks)
    report = run(tmp_path, Policy.REFERENCE, attempts=2)
    assert (report.made, report.exit_code, report.unexpected) == (10, 0, ())
    assert [(task.n, task.c, task.pass_at) for task in report.tasks] == [(2, 2, (1.0, 1.0))] * 5
    assert run(tmp_path, Policy.REFERENCE, attempts=2).made == 0
    assert run(tmp_path, Policy.REFERENCE, attempts=3).made == 5
    idle = run(tmp_path, Policy.IDLE)
    assert (idle.made, idle.exit_code, idle.failures) == (5, 0, {"misread_state": 5})
    assert idle.pass_at[0] is not None
    assert (idle.pass_at[0].low, idle.pass_at[0].value) == (0.0, 0.0)
    assert idle.pass_at[0].high is not None
    assert idle.pass_at[0].high > 0.3
    chosen = run(tmp_path, Policy.IDLE, names=(tasks[0].id[:14],))
    assert [task.task for task in chosen.tasks] == [tasks[0].id]
    assert [task.task for task in run(tmp_path, Policy.IDLE, where="name = 'x'").tasks] == [tasks[-1].id]
    with pytest.raises(ConfigError, match=r"no task is selected \(none fits name = 'y'\)"):
        run(tmp_path, Policy.IDLE, where="name = 'y'")


def test_a_reference_that_fails_and_an_idler_that_solves_are_findings(tmp_path: Path) -> None:
    task = rolloutkit.steps_task(Cache(tmp_path / "cache"), 2)
    panel = tuple(line.model_copy(update={"calls": task.panel[1 - n].calls}) for n, line in enumerate(task.panel))
    swapped = task.model_copy(update={"panel": panel})
    catalog(tmp_path, [swapped])
    for policy in (Policy.REFERENCE, Policy.IDLE):
        report = run(tmp_path, policy)
        assert (report.exit_code, report.unexpected) == (1, (task.id,))


@pytest.mark.slow
@pytest.mark.parametrize(("skill", "steps"), [(0.9, 4), (0.7, 3), (0.5, 2), (0.97, 8)])
def test_policies_of_known_skill_recover_pass_at_k_and_mixed_groups(tmp_path: Path, skill: float, steps: int) -> None:
    cache = Cache(tmp_path / "cache")
    catalog(tmp_path, [rolloutkit.steps_task(cache, steps, n) for n in range(120)])
    report = run(tmp_path, Policy.SCRIPTED, skill=skill, attempts=16)
    p = skill**steps
    for k in (1, 2, 4, 8, 16):
        found = report.pass_at[k - 1]
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        true = 1 - (1 - p) ** k
        # Where nearly all is solved hardly a task says anything, and the interval is too narrow.
        room = 1e-9 if true < 0.95 else 0.005
        assert found.low - room <= true <= found.high + room, (k, found, p)
        assert found.high - found.low < 0.2
    for group in (4, 8, 16):
        mixed = report.mixed[group]
        assert not mixed.plug_in
        assert mixed.chance == pytest.approx(mixed_chance_of_rate(p, group), abs=0.06)
    inside = fmean(task.low <= p <= task.high for task in report.tasks)
    assert 0.88 <= inside <= 1.0
    assert run(tmp_path, Policy.SCRIPTED, skill=skill, attempts=16).model_copy(update={"seconds": 0.0, "made": 0}) == (
        report.model_copy(update={"seconds": 0.0, "made": 0})
    )


def test_draws_of_one_skill_differ_and_chance_solves_nothing_long(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    catalog(tmp_path, [rolloutkit.steps_task(cache, 4, n) for n in range(3)])
    run(tmp_path, Policy.SCRIPTED, skill=0.5, attempts=4)
    run(tmp_path, Policy.SCRIPTED, skill=1.0, attempts=2)
    lucky = run(tmp_path, Policy.RANDOM, attempts=6)
    assert sum(task.c for task in lucky.tasks) == 0
    with Catalog.open(tmp_path / "c.duckdb", read_only=True) as opened:
        made = list(opened.attempts("model = 'skill=0.5'"))
        assert len({str(one.trace) for one in made}) > 6
        assert all(len(one.trace) == 4 for one in made)
        assert [one.failure for one in opened.attempts("model = 'skill=1'")] == [None] * 6
        assert len({str(one.trace) for one in opened.attempts("policy = 'random'")}) == 18
    with pytest.raises(ConfigError, match=r"skill of 1\.5 is no probability"):
        run(tmp_path, Policy.SCRIPTED, skill=1.5)
    with pytest.raises(ConfigError, match="cannot do without"):
        run(tmp_path, Policy.SCRIPTED)


def step_of(received: Received) -> int:
    """How many answers the model has given in this conversation."""
    return sum(message["role"] == "assistant" for message in received.messages)


def shop_player(received: Received) -> Answer:
    """Right with every other seed, and always with a hint."""
    right = "lamps are four" in received.prompt or received.body["seed"] % 2 == 0
    right |= any("lamps are four" in str(message["content"]) for message in received.messages)
    lamps = LAMPS if right else ("order", {"item": "lamp", "amount": 5})
    return [calls(("look", {}), lamps), calls(NOTE), calls(SUBMIT)][step_of(received)]


def solver_of(model: ScriptedModel, **more: Any) -> RoleSettings:
    from envsynth.llm import Sampling

    return model.settings(sampling=Sampling(max_tokens=500, seed=1), **more)


@pytest.mark.slow
def test_a_model_with_and_without_a_hint(tmp_path: Path) -> None:
    catalog(tmp_path, [rolloutkit.shop_task(Cache(tmp_path / "cache"), hint="The lamps are four.")])
    with ScriptedModel(shop_player) as model:
        solver = solver_of(model)
        plain = run(tmp_path, Policy.MODEL, attempts=8, solver=solver)
        (task,) = plain.tasks
        assert (task.n, plain.model, plain.hint) == (8, "scripted", None)
        assert 0 < task.c < 8
        assert task.failures == {"misread_state": 8 - task.c}
        assert task.mixed[8].chance == 1.0
        assert task.mixed[16].plug_in
        assert plain.cost_usd is not None
        assert plain.cost_usd > 0
        hinted = run(tmp_path, Policy.MODEL, attempts=8, solver=solver, hint=True)
        assert (hinted.tasks[0].c, hinted.hinted) == (8, True)
        assert hinted.hint is not None
        assert hinted.hint.regret.value == pytest.approx(1 - task.c / 8)
        again = run(tmp_path, Policy.MODEL, attempts=8, solver=solver)
        assert (again.made, again.hint) == (0, hinted.hint)
        assert len(model.requests) == 48
    with Catalog.open(tmp_path / "c.duckdb", read_only=True) as opened:
        kept = list(opened.attempts("policy = 'model'"))
        assert [len(one.conversation) for one in kept] == [9] * 16
        assert {one.hinted for one in kept} == {True, False}
    none = rolloutkit.steps_task(Cache(tmp_path / "cache"), 1)
    with pytest.raises(ConfigError, match="there is no model to play"):
        run(tmp_path, Policy.MODEL)
    (tmp_path / "other").mkdir()
    rolloutkit.catalog_of(tmp_path / "other" / "c.duckdb", Cache(tmp_path / "cache"), [none])
    with pytest.raises(ConfigError, match="none of the tasks has a hint"):
        run(tmp_path / "other", Policy.REFERENCE, hint=True)


def test_an_endpoint_that_dies_stops_cleanly_and_the_rest_follows(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    catalog(tmp_path, [rolloutkit.steps_task(cache, 1, n) for n in range(6)])
    mended = threading.Event()

    def answer(received: Received) -> Answer:
        if received.number < 3 or mended.is_set():
            return text("done")
        return failure(401, "the key has expired")

    with ScriptedModel(answer) as model:
        solver = model.settings(concurrency=1)
        with pytest.raises(EndpointDown):
            run(tmp_path, Policy.MODEL, solver=solver)
        with Catalog.open(tmp_path / "c.duckdb", read_only=True) as opened:
            assert len(list(opened.attempts())) == 3
            assert opened.query("SELECT status FROM build ORDER BY id DESC LIMIT 1").rows == [("failed",)]
        mended.set()
        report = run(tmp_path, Policy.MODEL, solver=solver)
        assert (report.made, [task.n for task in report.tasks]) == (3, [1] * 6)


def test_a_budget_stops_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    catalog(tmp_path, [rolloutkit.steps_task(cache, 1, n) for n in range(5)])
    dear = text("done", usage=Usage(prompt_tokens=1000, completion_tokens=1000))
    with ScriptedModel(lambda received: dear) as model:
        solver = model.settings(concurrency=1, max_tokens=1000)
        with pytest.raises(BudgetSpent):
            run(tmp_path, Policy.MODEL, solver=solver, budget=0.009)
        with Catalog.open(tmp_path / "c.duckdb", read_only=True) as opened:
            made = len(list(opened.attempts()))
        assert 1 <= made < 5
        report = run(tmp_path, Policy.MODEL, solver=solver, budget=1.0)
        assert (report.made, len(model.requests)) == (5 - made, 5)


class Broken:
    """A policy whose environment fails."""

    policy = Policy.SCRIPTED
    name = "broken"

    def __init__(self, *, often: int, retryable: bool = True) -> None:
        self.often, self.retryable, self.tried = often, retryable, 0

    def identity(self, told: Any) -> str:
        return "3" * 64

    def play(self, episode: Any, told: Any, k: int) -> Any:
        from envsynth.agents import Played
        from envsynth.models import Ending

        self.tried += 1
        if self.tried <= self.often:
            raise SandboxError("the host hiccuped", where=told.task, retryable=self.retryable)
        episode.stop()
        return Played(Ending.STOPPED)


def test_environment_failures_are_tried_again_kept_apart_and_owed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envsynth.rollout import runner

    catalog(tmp_path, [rolloutkit.steps_task(Cache(tmp_path / "cache"), 1)])

    def play(agent: Broken) -> tuple[RolloutReport, int]:
        monkeypatch.setattr(runner, "agent_of", lambda request, context: agent)
        return run(tmp_path, Policy.SCRIPTED, skill=1.0, attempts=2, jobs=1), agent.tried

    report, tried = play(Broken(often=6))
    assert (tried, report.exit_code, report.environment_errors) == (6, 3, 2)
    assert [(task.n, task.c, task.failures, task.pass_at) for task in report.tasks] == [(0, 0, {}, (None, None))]
    assert report.pass_at == (None, None)
    assert "the host hiccuped" in report.errors[0]
    report, tried = play(Broken(often=1, retryable=False))
    assert (tried, report.exit_code, report.environment_errors, report.tasks[0].n) == (2, 3, 1, 1)
    report, tried = play(Broken(often=2))
    assert (tried, report.exit_code, report.made, report.tasks[0].n) == (3, 0, 1, 2)
    assert report.failures == {"misread_state": 2}
    with Catalog.open(tmp_path / "c.duckdb", read_only=True) as opened:
        assert [one.status for one in opened.attempts()] == [AttemptStatus.FINISHED] * 2


def test_the_same_trouble_again_and_again_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from envsynth.rollout import runner

    cache = Cache(tmp_path / "cache")
    catalog(tmp_path, [rolloutkit.steps_task(cache, 1, n) for n in range(60)])
    agent = Broken(often=1000, retryable=False)
    monkeypatch.setattr(runner, "agent_of", lambda request, context: agent)
    with pytest.raises(EnvsynthError, match="5 equal infrastructure errors in a row"):
        run(tmp_path, Policy.SCRIPTED, skill=1.0, jobs=1)
    assert 5 <= agent.tried < 10


CHILD = """
import sys
from pathlib import Path
from envsynth.config import BuildConfig
from envsynth.llm import LlmSettings, RoleSettings
from envsynth.rollout.runner import RolloutRequest, rollout
folder, solver = Path(sys.argv[1]), RoleSettings.from_json(sys.argv[2])
config = BuildConfig(catalog=folder / "c.duckdb", cache=folder / "cache", llm=LlmSettings(solver=solver))
rollout(config, RolloutRequest(policy="model", attempts=4), lambda event: None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_in_the_middle_goes_on_and_repeats_no_call(tmp_path: Path, how: signal.Signals) -> None:
    cache = Cache(tmp_path / "cache")
    catalog(tmp_path, [rolloutkit.steps_task(cache, 2, n) for n in range(3)])
    arrived, mended = threading.Event(), threading.Event()

    def answer(received: Received) -> Answer:
        if received.number >= 7 and not mended.is_set():
            arrived.set()
            return hang()
        return [calls(("step_0", {"value": 1})), text("done")][step_of(received)]

    with ScriptedModel(answer) as model:
        solver = model.settings(timeout=300.0, concurrency=1)
        with subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), solver.to_json()]) as child:
            assert arrived.wait(300)
            child.send_signal(how)
            child.wait(60)
        mended.set()
        with Catalog.open(tmp_path / "c.duckdb", read_only=True) as opened:
            before = len(list(opened.attempts()))
        report = run(tmp_path, Policy.MODEL, attempts=4, solver=solver)
        # A kill loses what ended in the last half second; an interrupt nothing.
        assert before <= 3 if how is signal.SIGKILL else before == 3
        assert (report.made, [task.n for task in report.tasks]) == (12 - before, [4, 4, 4])
        # Two answers an attempt; the one that hung is asked again, and nothing else is.
        assert len(model.requests) == 24 + 1
