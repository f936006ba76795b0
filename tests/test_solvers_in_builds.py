"""A build with a solver: attempts are stored with the lead, calibrate it, and are not made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envsynth import pipeline
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.llm import LlmSettings, Sampling, SolverSettings
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import Answer, text
from envsynth.models import Policy, Tier
from envsynth.rollout.runner import RolloutRequest, rollout


def silent(event: object) -> None:
    """Tell nobody."""


@pytest.mark.slow
def test_attempts_of_a_build_stand_in_the_catalog_and_a_rollout_takes_them(tmp_path: Path) -> None:
    def idle(received: Received) -> Answer:
        return text("There is nothing to do.")

    def config(model: ScriptedModel, **more: Any) -> BuildConfig:
        settings = model.settings(sampling=Sampling(max_tokens=200, seed=3))
        solver = SolverSettings(**settings.model_dump(), attempts=3, **more)
        return BuildConfig(
            sources=("mechanism:bandit limit=1 presentations=hidden",), root=tmp_path, cache=tmp_path / "cache",
            catalog=tmp_path / "c.duckdb", out=tmp_path / "out", jobs=1, llm=LlmSettings(solver=solver),
        )  # fmt: skip

    with ScriptedModel(idle) as model:
        report = pipeline.build(config(model), silent)
        assert report.statuses == {"admitted": 1}
        with Catalog.open(tmp_path / "c.duckdb", read_only=True) as catalog:
            (task,) = catalog.tasks()
            (outcome,) = catalog.outcomes()
            made = [(one.policy, one.k) for one in catalog.attempts("policy = 'model'")]
        assert task.tier is Tier.VERIFIED
        said = {verdict.validator: verdict for verdict in outcome.verdicts}["world_solvability"]
        assert (said.status.value, said.reason, said.evidence["attempts"]) == ("SKIP", "unsolved", 3)
        assert made == [(Policy.MODEL, k) for k in range(3)]
        assert len(model.requests) == 3
        again = rollout(config(model), RolloutRequest(policy=Policy.MODEL, attempts=3), silent)
        assert (again.made, len(model.requests), again.tasks[0].c) == (0, 3, 0)
        strict = pipeline.build(config(model, must_solve=True), silent)
        assert strict.statuses == {"rejected": 1}
        assert [row.reason for row in strict.funnel] == ["unsolved"]
        assert len(model.requests) == 3
