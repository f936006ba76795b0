"""What `envsynth doctor` says of models."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsynth.cli._endpoints import configured, endpoints
from envsynth.config import BuildConfig
from envsynth.llm import Ledger, LlmSettings, RoleSettings
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import empty, failure


def config(folder: Path, **llm: object) -> BuildConfig:
    return BuildConfig(catalog=folder / "c.duckdb", cache=folder / "cache", llm=LlmSettings(**llm))


def test_a_model_that_answers_is_asked_once_for_all_its_roles_and_each_time_anew(tmp_path):
    with ScriptedModel([empty(), empty()]) as model:
        asked = config(tmp_path, author=model.settings(), judge=model.settings(), budget=1.0)
        first = endpoints(asked)
        assert [(one.status, one.what) for one in first] == [("ok", "model author"), ("ok", "model judge")]
        assert f"scripted at {model.base_url} answers in " in first[0].text
        assert len(model.requests) == 1
        assert model.requests[0].body["max_tokens"] == 16
        endpoints(asked)
        assert len(model.requests) == 2
    assert Ledger(asked.ledger).total().settled == 2


@pytest.mark.parametrize(("status", "said"), [(401, "HTTP 401"), (404, "HTTP 404"), (500, "HTTP 500")])
def test_an_endpoint_that_fails_is_tried_once_and_named(tmp_path, status, said):
    with ScriptedModel(lambda received: failure(status)) as model:
        (found,) = endpoints(config(tmp_path, author=model.settings()))
        assert (found.status, len(model.requests)) == ("fails", 1)
        assert said in found.text
        assert model.base_url in found.text


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("BIG_KEY", raising=False)
    big = RoleSettings(model="big", base_url="https://api.example/v1", api_key_env="BIG_KEY")
    (found,) = endpoints(config(tmp_path, author=big))
    assert (found.status, "$BIG_KEY is not set" in found.text) == ("fails", True)
    (found,) = endpoints(config(tmp_path, author=big, budget=1.0))
    assert "prices of big are not known" in found.text


def test_no_model_is_nothing_to_say_and_a_bad_file_is_a_line(tmp_path):
    assert endpoints(config(tmp_path)) == []
    assert not (tmp_path / "c.spend.sqlite").exists()
    (tmp_path / "bad.toml").write_text("[llm.author]\nmodle = 'x'\n")
    found = configured(tmp_path / "bad.toml", [])
    assert found.status == "fails"
    assert "llm.author.mod" in found.text
