"""Rollouts in a workspace: a scripted model with a shell repairs a small project, or does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny_task as tiny

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.context import BuildContext
from envsynth.llm import LlmSettings, Sampling, SolverSettings
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import Answer, calls, text
from envsynth.models import (
    Cost,
    Ending,
    Finding,
    Origin,
    Outcome,
    Policy,
    Source,
    SourceKind,
    SourceOptions,
    Task,
    Verdict,
    VerdictStatus,
)
from envsynth.rollout.runner import RolloutRequest, rollout
from envsynth.runtime.seal import seal
from envsynth.validators.solvability import Solvability

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
REPAIR = "sed -i 's/sum(prices) - discount/sum(prices) * (100 - discount) \\/ 100/' shop/prices.py"
SOURCE = Source(
    uri="https://example.org/shop", kind=SourceKind.GIT, location="https://example.org/shop",
    origin=Origin(file="--source", line=1), options=SourceOptions(),
)  # fmt: skip


@pytest.fixture(scope="module")
def task_and_cache(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, Cache]:
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    cache = Cache(tmp_path_factory.mktemp("cache"))
    environment = cache.root / "environments" / tiny.recipe().digest()
    environment.parent.mkdir()
    tiny.make_environment(environment)
    seal(environment, "tiny")
    return tiny.make_task(cache), cache


def shell_agent(received: Received) -> Answer:
    """Looks, repairs with every other seed, tests, and hands in with those that repaired."""
    right = received.body["seed"] % 2 == 0
    done = sum(message["role"] == "assistant" for message in received.messages)
    script = [
        calls(("bash", {"command": "cat shop/prices.py"})), calls(("bash", {"command": REPAIR if right else "ls"})),
        calls(("bash", {"command": "python -m pytest -q tests"})),
        calls(("submit", {})) if right else text("I give up."),
    ]  # fmt: skip
    return script[done]


def test_a_shell_agent_over_a_catalog(task_and_cache: tuple[Task, Cache], tmp_path: Path) -> None:
    task, cache = task_and_cache
    path = tmp_path / "c.duckdb"
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record_source(build, SOURCE, "1" * 40, 1)
        outcome = Outcome(lead=task.candidate.provenance.lead, ladder="1" * 64, candidate=task.candidate, task=task)
        catalog.record(build, [outcome], cache)
        catalog.end_build(build, "done", Cost())

    def run(policy: Policy, solver: Any = None, **more: Any) -> Any:
        config = BuildConfig(
            catalog=path, cache=cache.root, jobs=2, sandbox="bubblewrap", llm=LlmSettings(solver=solver)
        )
        return rollout(config, RolloutRequest(policy=policy, **more), lambda event: None)

    assert (run(Policy.REFERENCE).exit_code, run(Policy.IDLE).exit_code) == (0, 0)
    with ScriptedModel(shell_agent) as model:
        solver = model.settings(sampling=Sampling(max_tokens=500, seed=3))
        report = run(Policy.MODEL, solver, attempts=6)
        assert run(Policy.MODEL, solver, attempts=6).made == 0
    (rate,) = report.tasks
    assert rate.n == 6
    assert 0 < rate.c < 6
    assert rate.failures == {"misread_state": 6 - rate.c}
    with Catalog.open(path, read_only=True) as catalog:
        for attempt in catalog.attempts("policy = 'model'"):
            assert attempt.grade is not None
            solved = attempt.ending is Ending.SUBMITTED
            assert attempt.grade.checks["fail_to_pass"] == solved
            assert attempt.conversation[3].content.startswith("exit_code: 0\noutput:\ndef total(prices")
            assert [step.tool for step in attempt.trace] == ["bash"] * 3 + ["submit"] * solved


def test_solvability_of_a_code_task(task_and_cache: tuple[Task, Cache]) -> None:
    task, cache = task_and_cache
    earlier = (
        Verdict(validator="execution", version="1", status=VerdictStatus.PASS, tests=task.tests),
        Verdict(validator="controls", version="1", status=VerdictStatus.PASS, controls=task.controls),
    )
    with ScriptedModel(shell_agent) as model:
        settings = model.settings(sampling=Sampling(max_tokens=500, seed=3))
        solver = SolverSettings(**settings.model_dump(), attempts=5, group=4)
        context = BuildContext(cache.root, sandbox="bubblewrap", llm=LlmSettings(solver=solver))
        verdict = Solvability().validate(task.candidate, SOURCE, context, earlier)
        unmeasured = Solvability().validate(task.candidate, SOURCE, context, ())
        context.leave_models()
    solved = sum(attempt.failure is None for attempt in context.attempts)
    assert len(context.attempts) == 5
    assert verdict.evidence["solved"] == solved
    assert verdict.status is (VerdictStatus.PASS if 0 < solved < 5 else VerdictStatus.SKIP)
    assert unmeasured.findings == (
        Finding(rule="no_tests_measured", message="no earlier step says which tests decide"),
    )
