"""Judging again with models: whose verdicts are stale, what it costs, and what --offline lets through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envsynth import pipeline
from envsynth.catalog import Catalog
from envsynth.cli.main import run
from envsynth.errors import BudgetSpent, EndpointDown
from envsynth.llm import RoleSettings
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import Answer, answer_json, text
from envsynth.revalidate import Selection, ValidationReport, revalidate
from tests.modelkit import DEAR, Asking, Judge, config, install, outcomes, silent

FAR = RoleSettings(model="scripted", base_url="https://api.example/v1", api_key_env="")


class Critic(Judge):
    """A validator that asks the judge."""

    models = ("judge",)


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setattr)
    judges = (Judge("static", 10), Critic("style", 20))
    monkeypatch.setattr("envsynth.work.validators", lambda kind: judges)


def answer(received: Any) -> Answer:
    asks_author = received.prompt in "abc"
    return answer_json({"number": 1}, usage=DEAR) if asks_author else text("fine", usage=DEAR)


def again(folder: Path, judge: RoleSettings | None, author: RoleSettings, **more: Any) -> ValidationReport:
    selection = more.pop("selection", Selection(every=True))
    return revalidate(config(folder, "", author, judge=judge, **more), selection, silent)


def versions(folder: Path) -> list[list[str]]:
    with Catalog.open(folder / "c.duckdb", read_only=True) as catalog:
        return [[f"{verdict.validator} {verdict.version}" for verdict in one.verdicts] for one in catalog.outcomes()]


def test_a_verdict_is_stale_once_another_model_would_be_asked(tmp_path: Path) -> None:
    with ScriptedModel(answer) as model:
        author, judge = model.settings(), model.settings()
        pipeline.build(config(tmp_path, "a,b", author, judge=judge), silent)
        assert len(model.requests) == 3  # the judge is asked the same about both
        before = versions(tmp_path)
        assert [one[0] for one in before] == ["static 1", "static 1"]
        assert before[0][1] == before[1][1] != "style 1"
        assert again(tmp_path, judge, author).standing == 2

        moved = judge.model_copy(update={"timeout": 3.0, "concurrency": 2})
        assert again(tmp_path, moved, author).standing == 2
        other = judge.model_copy(update={"max_chars": 999})
        report = again(tmp_path, other, author)
        assert (report.standing, report.statuses) == (0, {"admitted": 2})
        assert [(use.role, use.calls, use.cached) for use in report.models] == [("judge", 0, 2)]
        assert versions(tmp_path)[0][1] not in ("style 1", before[0][1])
        assert again(tmp_path, other, author).standing == 2
        # A build with these models takes the outcomes as its own.
        Asking.developed.clear()
        assert pipeline.build(config(tmp_path, "a,b", author, judge=other), silent).reused == 2
        assert Asking.developed == []
        # Without a judge, the verdict is the validator's own again.
        assert again(tmp_path, None, author).standing == 0
        assert versions(tmp_path) == [["static 1", "style 1"]] * 2
        # Only the other validator is looked at: this one's stands, though a judge is configured.
        only = Selection(every=True, only=("static",))
        assert again(tmp_path, judge, author, selection=only).standing == 2


def test_judging_again_keeps_to_the_budget_and_goes_on_from_there(tmp_path: Path) -> None:
    with ScriptedModel(answer) as model:
        author = model.settings()
        pipeline.build(config(tmp_path, "a,b", author), silent)  # $0.006
        with pytest.raises(BudgetSpent):
            again(tmp_path, model.settings(), author, budget=0.007)
        assert versions(tmp_path) == [["static 1", "style 1"]] * 2
        report = again(tmp_path, model.settings(), author, budget=1.0)
        assert [(use.calls, use.cost_usd) for use in report.models] == [(1, pytest.approx(0.003))]
        assert report.statuses == {"admitted": 2}


def test_the_command_takes_a_model_and_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedModel(answer) as model:
        pipeline.build(config(tmp_path, "a", model.settings()), silent)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ENVSYNTH_CACHE", str(tmp_path / "cache"))
        options = ["--catalog", "c.duckdb", "--jobs", "1", "--sandbox", "local"]
        assert run(["validate", *options, "--llm", f"judge=scripted@{model.base_url}", "--budget", "1"]) == 2
        assert "the prices of scripted are not known" in capsys.readouterr().err
        assert run(["validate", *options, "--llm", f"judge=scripted@{model.base_url}"]) == 0
        assert "judge\tscripted\t1\t0" in capsys.readouterr().out
    assert run(["catalog", "stats", "--catalog", "c.duckdb"]) == 0
    printed = capsys.readouterr().out
    assert f"author\tscripted\t{model_url(printed)}\t1\t1000\t1000\t0.0030" in printed
    assert run(["catalog", "stats", "--catalog", "c.duckdb", "--json"]) == 0
    spend = json.loads(capsys.readouterr().out)["spend"]
    assert [(row["role"], row["settled"], row["uncertain"]) for row in spend] == [("author", 1, 0), ("judge", 1, 0)]


def model_url(printed: str) -> str:
    """The endpoint that a table names."""
    return next(word for word in printed.split() if word.startswith("http://127.0.0.1"))


def test_offline_stops_at_the_first_call_that_would_leave_the_machine(tmp_path: Path) -> None:
    here = config(tmp_path, "a,b", FAR, offline=True)
    said = r"https://api\.example/v1: a model would be asked that is not on this machine .*--offline.*llm\.author"
    with pytest.raises(EndpointDown, match=said):
        pipeline.build(here, silent)
    assert outcomes(tmp_path) == {}
    # On loopback it may be asked; what it answered there stands in the cache for the same model elsewhere.
    with ScriptedModel(answer) as model:
        near = model.settings(sampling=FAR.sampling)
        pipeline.build(config(tmp_path, "a", near, catalog="d", offline=True), silent)
        assert len(model.requests) == 1
    with pytest.raises(EndpointDown, match=said):
        pipeline.build(here, silent)
    assert outcomes(tmp_path) == {"a": ("admitted", "")}
