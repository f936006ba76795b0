"""Roles from `envsynth.toml` and `--llm`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from envsynth.cache import Cache
from envsynth.errors import ConfigError
from envsynth.llm import Ledger, LlmSettings, Prices, load_llm, open_client
from envsynth.llm.resolve import llm_settings, parse_override
from envsynth.llm.settings import ROLES, RoleSettings

TOML = """
jobs = 2
[llm]
budget = 5.0
[llm.author]
model = "big"
base_url = "http://127.0.0.1:8000/v1/"
api_key_env = "BIG_KEY"
sampling = { temperature = 0.7, top_p = 0.9, seed = 3, max_tokens = 2000 }
prices = { input = 2.5, cached_input = 0.25, output = 10 }
concurrency = 8
timeout = 60
[llm.judge]
model = "small"
base_url = "http://127.0.0.1:8000/v1"
prices = { input = 0.1, output = 0.2 }
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "envsynth.toml").write_text(TOML)
    return tmp_path


def test_roles_are_read_from_the_file(folder):
    llm = load_llm(cwd=folder)
    author = llm.role("author")
    assert (author.model, author.base_url, author.api_key_env) == ("big", "http://127.0.0.1:8000/v1", "BIG_KEY")
    assert author.sampling.model_dump() == {"temperature": 0.7, "top_p": 0.9, "seed": 3, "max_tokens": 2000}
    assert author.prices == Prices(input=2.5, cached_input=0.25, output=10)
    assert (author.concurrency, author.timeout, llm.budget) == (8, 60, 5.0)
    assert llm.role("judge").sampling.max_tokens == 4096
    assert (llm.role("solver"), llm.role("user")) == (None, None)


def test_no_file_and_no_option_are_no_models(tmp_path):
    assert load_llm(cwd=tmp_path) == LlmSettings()
    assert open_client("author", LlmSettings(), Cache(tmp_path / "c"), Ledger(tmp_path / "l.sqlite")) is None


def test_the_command_line_wins(folder):
    llm = load_llm(cwd=folder, overrides=["judge=other@http://127.0.0.1:9/v1", "solver=big"], budget=0.5)
    assert (llm.author.model, llm.budget) == ("big", 0.5)
    assert (llm.judge.model, llm.judge.base_url) == ("other", "http://127.0.0.1:9/v1")
    assert llm.judge.prices is None  # those of another model say nothing of this one
    assert (llm.solver.model, llm.solver.base_url) == ("big", "https://api.openai.com/v1")
    everyone = load_llm(cwd=folder, overrides=["small"])
    assert [everyone.role(role).model for role in ROLES] == ["small"] * 4
    assert everyone.author.sampling.temperature == 0.7
    assert everyone.author.prices == Prices(input=0.1, output=0.2)  # the file knows it at that address
    assert everyone.user.prices is None


def test_a_resolved_document_resolves_to_itself(folder):
    llm = load_llm(cwd=folder, overrides=["user=tiny"])
    assert llm_settings(llm.document()) == llm
    assert llm_settings("tiny").user == llm.user


@pytest.mark.parametrize(("text", "roles", "model", "url"), [
    ("gpt", ROLES, "gpt", None),
    ("author=org/model:free", ("author",), "org/model:free", None),
    ("org@2024", ROLES, "org@2024", None),
    ("@cf/meta/llama", ROLES, "@cf/meta/llama", None),
    ("judge=m@http://127.0.0.1:1/v1", ("judge",), "m", "http://127.0.0.1:1/v1"),
    ("a=b", ROLES, "a=b", None),
])  # fmt: skip
def test_forms_of_the_option(text, roles, model, url):
    assert parse_override(text) == (roles, model, url)


@pytest.mark.parametrize("text", ["", "two words", "author="])
def test_an_option_that_names_no_model_says_how(text):
    with pytest.raises(ConfigError, match=r"names no model.*judge=my-model"):
        parse_override(text)


@pytest.mark.parametrize(("text", "message"), [
    ("[llm.author]\nmodle = 'x'", r"envsynth.toml: .*llm\.author\.mod"),
    ("[llm.writer]\nmodel = 'x'", r"unknown setting 'llm\.writer'.*author, judge, solver, user, budget"),
    ("[llm.author]\nmodel = 'x'\ntimeout = 0", r"llm\.author\.timeout: .*greater than 0 .it is 0"),
    ("[llm.author]\nmodel = 'x'\nbase_url = 'localhost:80'", r"llm\.author\.base_url: is not an http or https URL"),
    ("[llm.author]\nmodel = 'x'\nbase_url = 'http://me:pw@h/v1'", "has a password in it; name a variable"),
    ("[llm.author]\nmodel = 'x'\nsampling = {temperature = 9}", r"llm\.author\.sampling\.temperature"),
    ("[llm.author]\nbase_url = 'http://h/v1'", r"llm\.author\.model: Field required"),
    ("[llm]\nbudget = -1", r"llm\.budget"),
    ("[llm]\nbudget = inf", r"llm\.budget: .*finite"),
    ("[llm.author]\nmodel = 'x'\ntimeout = inf", r"llm\.author\.timeout"),
    ("[llm.judge]\nmodel = 'x'\npatience = inf", r"llm\.judge\.patience"),
    ("[llm.solver]\nmodel = 'x'\nattempt_seconds = inf", r"llm\.solver\.attempt_seconds"),
    ('[llm.author]\nmodel = "a\\nb"', r"llm\.author\.model: has line breaks"),
    ("[llm.solver]\nmodel = 'x'\nagreement = 0.9", r"unknown setting 'llm\.solver\.agreement'.*must_solve"),
    ("[llm.judge]\nmodel = 'x'\nattempts = 9", r"unknown setting 'llm\.judge\.attempts'.*overrides"),
    ("llm = 3", "llm"),
])  # fmt: skip
def test_a_wrong_setting_is_named(tmp_path, text, message):
    (tmp_path / "envsynth.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_llm(cwd=tmp_path)


@pytest.mark.parametrize(("url", "here"), [
    ("http://localhost:8000/v1", True), ("http://127.1.2.3/v1", True), ("http://[::1]:80/v1", True),
    ("https://api.example/v1", False), ("http://10.0.0.1/v1", False),
])  # fmt: skip
def test_loopback_is_told_apart(url, here):
    assert RoleSettings(model="m", base_url=url).on_loopback is here


def test_the_address_of_the_endpoint_may_be_given_in_full():
    assert RoleSettings(model="m", base_url="http://h/v1/chat/completions").base_url == "http://h/v1"


def test_the_library_is_loaded_by_the_first_call_and_not_before(tmp_path):
    code = (
        "import sys, envsynth.llm, envsynth.llm.scripted; print([m for m in ('openai', 'httpx2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_demanded_of_a_judge_is_part_of_who_it_is() -> None:
    usual = llm_settings({"judge": {"model": "m"}})
    assert usual.judge is not None
    assert (usual.judge.agreement, usual.judge.repeats, usual.judge.runs, usual.judge.overrides) == (0.9, 3, 8, 5)
    stricter = llm_settings({"judge": {"model": "m", "agreement": 0.95}}, ["judge=n"])
    assert stricter.judge is not None
    assert (stricter.judge.model, stricter.judge.agreement) == ("n", 0.95)
    assert usual.identity(["judge"]) != llm_settings({"judge": {"model": "m", "agreement": 0.95}}).identity(["judge"])
    assert LlmSettings(judge=RoleSettings(model="m")).identity(["judge"]) == usual.identity(["judge"])
    with pytest.raises(ConfigError, match=r"unknown setting 'llm\.judge\.agree'.*agreement, repeats, runs, overrides"):
        llm_settings({"judge": {"model": "m", "agree": 1}})
    with pytest.raises(ConfigError, match=r"unknown setting 'llm\.author\.agreement'"):
        llm_settings({"author": {"model": "m", "agreement": 0.95}})
    with pytest.raises(ConfigError, match=r"llm\.judge\.agreement: .*less than or equal to 1"):
        llm_settings({"judge": {"model": "m", "agreement": 90}})
