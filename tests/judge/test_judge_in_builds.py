"""A whole build with a judge: what it says of a real panel is in the catalog, and asked only once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judgekit import scores

from envsynth import pipeline
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.errors import EndpointDown
from envsynth.llm import JudgeSettings, LlmSettings
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import answer_json, failure, refusal

pytestmark = pytest.mark.slow


def config(folder: Path, model: ScriptedModel, catalog: str) -> BuildConfig:
    settings = model.settings(retries=0, failures=2).model_dump()
    judge = JudgeSettings(**{**settings, "repeats": 2, "runs": 4, "overrides": 2})
    return BuildConfig(
        sources=("scenario:retail limit=1 levels=1 vagueness=0 countries=gb",), root=folder, cache=folder / "cache",
        catalog=folder / f"{catalog}.duckdb", out=folder / "out", jobs=1, llm=LlmSettings(judge=judge),
    )  # fmt: skip


def silent(event: object) -> None:
    """Tell nobody."""


def judged(folder: Path, catalog: str) -> list[Any]:
    sql = "SELECT instrument, used, unused, tp, fp, tn, fn FROM instrument WHERE task NOT NULL ORDER BY instrument"
    with Catalog.open(folder / f"{catalog}.duckdb", read_only=True) as opened:
        return [list(row) for row in opened.query(sql).rows]


def test_a_judge_that_likes_everything_is_asked_once_and_not_used(tmp_path: Path) -> None:
    def lenient(received: Received) -> Any:
        return answer_json(scores(received.prompt, "PASS"))

    with ScriptedModel(lenient) as model:
        report = pipeline.build(config(tmp_path, model, "c"), silent)
        assert report.statuses == {"admitted": 1}
        rows = {row[0]: row[1:] for row in judged(tmp_path, "c")}
        assert rows["judge"] == [False, "it agrees with the labels to 0.50, and 0.90 is wanted", 2, 2, 0, 0]
        assert (rows["grounding"][0], rows["trace_rules"][0], rows["read_back"][0]) == (True, True, True)
        # Four runs, two opinions each; nobody is put under pressure who calls nothing wrong.
        assert len(model.requests) == 8
        assert [(use.role, use.calls) for use in report.models] == [("judge", 8)]
        again = pipeline.build(config(tmp_path, model, "d"), silent)
        assert (len(model.requests), [(use.calls, use.cached) for use in again.models]) == (8, [(0, 8)])
        assert judged(tmp_path, "d") == judged(tmp_path, "c")


def test_a_judge_that_declines_costs_no_task_and_a_dead_one_stops_the_build(tmp_path: Path) -> None:
    with ScriptedModel(lambda received: refusal()) as model:
        assert pipeline.build(config(tmp_path, model, "c"), silent).statuses == {"admitted": 1}
        rows = {row[0]: row[1:] for row in judged(tmp_path, "c")}
        assert rows["judge"][:2] == [False, "it agrees with the labels to 0.00, and 0.90 is wanted"]
    with ScriptedModel(lambda received: failure(401, "the key has expired"), name="dead") as model:
        with pytest.raises(EndpointDown):
            pipeline.build(config(tmp_path, model, "e"), silent)
        assert judged(tmp_path, "e") == []
