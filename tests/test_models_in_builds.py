"""Builds whose generator asks a model: what its faults come to, what stops, what is kept, and what it all cost."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from envsynth import pipeline, work
from envsynth.catalog import Catalog
from envsynth.errors import BudgetSpent, ConfigError, EndpointDown
from envsynth.llm import Ledger, LlmSettings, RoleSettings, Sampling
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import Answer, answer_json, calls, empty, failure, hang, refusal, text, truncated
from envsynth.models import Lead
from tests.modelkit import CHILD, DEAR, ROOT, SOURCE, Asking, Judge, config, install, outcomes, silent


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setattr)


ANSWERS = {
    "good": answer_json({"number": 3}), "refused": refusal(), "cut": truncated(), "empty": empty(),
    "long": text("x" * 500), "prose": text("no number at all"), "tool": calls(("push", {})),
}  # fmt: skip
REASONS = {
    "good": ("admitted", ""), "refused": ("dropped", "model_refused"), "cut": ("dropped", "model_truncated"),
    "empty": ("dropped", "model_empty"), "long": ("dropped", "model_overlong"),
    "prose": ("dropped", "model_malformed"), "tool": ("dropped", "model_bad_tool_call"),
}  # fmt: skip


def test_each_fault_of_an_answer_drops_its_lead_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    with ScriptedModel(lambda received: ANSWERS[received.messages[0]["content"].split()[0]]) as model:
        author = model.settings(max_chars=400)
        first = pipeline.build(config(tmp_path, ",".join(ANSWERS), author), silent)
        assert outcomes(tmp_path) == REASONS
        (use,) = first.models
        assert (use.role, use.model, use.endpoint) == ("author", "scripted", model.base_url)
        assert (use.calls, use.cached, use.uncertain) == (7, 0, 0)
        assert use.cost_usd == pytest.approx((use.prompt_tokens + 2 * use.completion_tokens) / 1e6)
        assert use.cost_usd > 0
        again = pipeline.build(config(tmp_path, ",".join(ANSWERS), author), silent)
        assert (again.reused, again.models) == (7, ())
        elsewhere = pipeline.build(config(tmp_path, ",".join(ANSWERS), author, catalog="d"), silent)
        assert [(use.calls, use.cached, use.cost_usd) for use in elsewhere.models] == [(0, 7, 0.0)]
        assert outcomes(tmp_path, "d") == REASONS
        assert len(model.requests) == 7


def test_an_endpoint_that_is_down_stops_the_build_and_nothing_is_owed(tmp_path: Path) -> None:
    mended = threading.Event()

    def answer(received: Any) -> Answer:
        if received.prompt.startswith("a") or mended.is_set():
            return answer_json({"number": 1})
        return failure(401, "the key has expired")

    with ScriptedModel(answer) as model:
        asked = config(tmp_path, "a,b,c", model.settings())
        with pytest.raises(EndpointDown, match=r"127\.0\.0\.1.*HTTP 401.* Next: mend or start the endpoint") as caught:
            pipeline.build(asked, silent)
        assert caught.value.exit_code == 3
        assert outcomes(tmp_path) == {"a": ("admitted", "")}
        assert Asking.developed == ["a", "b"]
        mended.set()
        assert pipeline.build(asked, silent).statuses == {"admitted": 3}


def test_a_budget_stops_the_build_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    with ScriptedModel(lambda received: answer_json({"number": 1}, usage=DEAR)) as model:
        with pytest.raises(BudgetSpent, match=r"budget of \$0\.008 .*\$0\.006000 are spent.*higher --budget") as caught:
            pipeline.build(config(tmp_path, "a,b,c,d", model.settings(), budget=0.008), silent)
        assert caught.value.exit_code == 3
        assert outcomes(tmp_path) == {"a": ("admitted", ""), "b": ("admitted", "")}
        assert (len(model.requests), Asking.developed) == (2, ["a", "b", "c"])
        report = pipeline.build(config(tmp_path, "a,b,c,d", model.settings(), budget=1.0), silent)
        assert (report.statuses, report.reused, len(model.requests)) == ({"admitted": 4}, 2, 4)
        assert [(use.calls, use.cost_usd) for use in report.models] == [(2, pytest.approx(0.006))]


def test_a_model_that_says_nothing_of_use_to_a_validator_is_a_finding(tmp_path: Path) -> None:
    with ScriptedModel(lambda received: answer_json({"number": 1})) as model:
        report = pipeline.build(config(tmp_path, "mute-static,mute-style", model.settings()), silent)
    assert outcomes(tmp_path) == {"mute-static": ("rejected", "model_refused"), "mute-style": ("admitted", "")}
    assert report.exit_code == 0
    with Catalog.open(tmp_path / "c.duckdb", read_only=True) as catalog:
        (admitted,) = [one for one in catalog.outcomes() if one.task is not None]
    assert [(said.status.value, said.reason) for said in admitted.verdicts] == [
        ("PASS", "pass"), ("SKIP", "model_refused"),
    ]  # fmt: skip


def test_a_key_that_is_not_set_is_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUTHOR_KEY", raising=False)
    author = RoleSettings(model="big", base_url="https://api.example/v1", api_key_env="AUTHOR_KEY")
    with pytest.raises(ConfigError, match=r"\$AUTHOR_KEY is not set"):
        pipeline.build(config(tmp_path, "a", author), silent)
    assert (Asking.developed, outcomes(tmp_path)) == ([], {})


def test_work_is_keyed_by_what_decides_the_answers_of_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    lead = Lead(generator="repository", generator_version="1", source="s", name="x", revision="r", strategy="history",
                ref="a", index=0)  # fmt: skip
    author = RoleSettings(model="big", base_url="https://api.example/v1")

    def key(settings: RoleSettings | None) -> str:
        return work.keyed(lead, SOURCE, LlmSettings(author=settings, judge=author, budget=1.0)).key

    assert key(None) == lead.key
    other = [author, author.model_copy(update={"model": "small"}),
             author.model_copy(update={"sampling": Sampling(temperature=0.5)})]  # fmt: skip
    assert len({lead.key, *map(key, other)}) == 4
    moved = author.model_copy(update={"base_url": "http://127.0.0.1:1/v1", "timeout": 5.0, "api_key_env": "B"})
    assert key(moved) == key(author)
    llm = LlmSettings(author=author, judge=author)
    before = work.ladder("workspace")
    assert work.ladder("workspace", llm) == before
    monkeypatch.setattr(Judge, "models", ("judge",), raising=False)
    assert work.ladder("workspace") == before != work.ladder("workspace", llm)
    # A generator may ask for some leads only: the others keep their keys.
    monkeypatch.setattr(Asking, "asks", lambda self, one, source: ("author",) if one.ref == "a" else (), raising=False)
    other_lead = lead.model_copy(update={"ref": "b"})
    assert (key(author) != lead.key, work.keyed(other_lead, SOURCE, llm)) == (True, other_lead)
    assert work.roles_asked([other_lead], SOURCE, "workspace") == ("judge",)
    assert work.roles_asked([other_lead, lead], SOURCE, "workspace") == ("author", "judge")
    monkeypatch.setattr(Asking, "asks", lambda self, one, source: ("writer",))
    with pytest.raises(ConfigError, match=r"plug-in repository: there is no role 'writer' for a model"):
        work.keyed(lead, SOURCE, llm)
    monkeypatch.delattr(Asking, "asks")
    monkeypatch.setattr(Asking, "models", ())
    assert work.keyed(lead, SOURCE, llm) == lead
    monkeypatch.setattr(Asking, "models", ("writer",))
    with pytest.raises(ConfigError, match=r"plug-in repository: there is no role 'writer' for a model"):
        work.keyed(lead, SOURCE, llm)


@pytest.mark.slow
def test_a_build_that_is_killed_during_a_call_loses_nothing_that_was_settled(tmp_path: Path) -> None:
    arrived = threading.Event()

    def answer(received: Any) -> Answer:
        if received.number == 1:
            arrived.set()
            return hang()
        return answer_json({"number": 1}, usage=DEAR)

    with ScriptedModel(answer) as model:
        author = model.settings(timeout=300.0)
        command = [sys.executable, "-c", CHILD, str(tmp_path), "a,b,c", author.to_json(), "1"]
        with subprocess.Popen(command, cwd=ROOT) as child:
            assert arrived.wait(300)
            child.send_signal(signal.SIGKILL)
        asked = config(tmp_path, "a,b,c", author)
        spent = Ledger(asked.ledger).total()
        assert (spent.settled, spent.uncertain, spent.settled_usd) == (1, 1, pytest.approx(0.003))
        report = pipeline.build(asked, silent)
        assert (report.statuses, len(model.requests)) == ({"admitted": 3}, 4)
        spent = Ledger(asked.ledger).total()
        assert (spent.settled, spent.uncertain, spent.settled_usd) == (3, 1, pytest.approx(0.009))
        assert [(use.calls, use.uncertain) for use in report.models] == [(2, 0)]
