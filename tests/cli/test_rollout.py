"""`envsynth rollout` as people type it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import calls, text

TESTS = Path(__file__).parent.parent
for place in (TESTS / "worldkit.py", TESTS / "validators" / "world_bench.py", TESTS / "rolloutkit.py"):
    if place.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(place.stem, place)
        assert spec
        assert spec.loader
        sys.modules[place.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[place.stem])
import rolloutkit  # noqa: E402


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    cache = Cache(tmp_path / "cache")
    tasks = [rolloutkit.steps_task(cache, 2, n) for n in range(3)]
    catalog = rolloutkit.catalog_of(tmp_path / "c.duckdb", cache, tasks)
    return ["--catalog", str(catalog), "--cache", str(tmp_path / "cache")]


def test_the_reference_and_a_model_of_the_command_line(envsynth, options):
    printed = envsynth("rollout", "--policy", "reference", "-k", "2", *options)
    assert printed.code == 0
    assert "reference: 3 tasks, 2 attempts each, 6 of them made now" in printed.out
    assert "pass@2\t1.00\t0.44 to 1.00" in printed.out
    assert "~ the measured rate put into" in printed.out
    lines = envsynth("rollout", "--policy", "idle", "--json", *options).out.splitlines()
    report = json.loads(lines[-1])
    assert [json.loads(line)["event"] for line in lines] == ["plan", "lead", "lead", "lead", "report"]
    assert (report["policy"], report["made"], report["failures"]) == ("idle", 3, {"misread_state": 3})
    answers = [calls(("step_0", {"value": 1})), text("done")]
    with ScriptedModel(lambda received: answers[min(1, len(received.messages) // 2 - 1)]) as model:
        named = f"{model.name}@{model.base_url}"
        printed = envsynth("rollout", "--policy", "model", "--model", named, "--max-tokens", "50", *options)
        assert printed.code == 0
        assert "model scripted: 3 tasks" in printed.out
        assert "3 misread_state" in printed.out.replace("failures: misread_state\t3", "3 misread_state")
        assert len(model.requests) == 6
        assert "at most 50 tokens" in model.requests[0].messages[0]["content"]
    shown = envsynth("catalog", "show", "steps-00000000", *options[:2]).out
    assert "reference\t\tFalse\t2\t2\t1\t1\t2\t0" in shown
    assert "model\tscripted\tFalse\t1\t0\t0\t0\t1\t0" in shown


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--policy", "model"], 2, "llm.solver: there is no model to play"),
        (["--policy", "modle"], 2, "--policy 'modle': Input should be"),
        (["--policy", "harness"], 2, "Next: envsynth proxy "),
        (["--policy", "scripted"], 2, "cannot do without"),
        (["--policy", "idle", "--skill", "0.5"], 2, "a skill is for --policy scripted"),
        (["--policy", "idle", "--where", "nonsense"], 2, "the SQL cannot be answered"),
        (["--policy", "idle", "--where", "false"], 2, "no task is selected (none fits false)"),
        (["--policy", "idle", "no-such-task"], 2, "there is no task or lead 'no-such-task'"),
        (["--policy", "idle", "a", "--where", "true"], 2, "both tasks and --where are given"),
        (["--policy", "idle", "--hint"], 2, "none of the tasks has a hint"),
        (["--policy", "idle", "--max-seconds", "-1"], 2, "--max-seconds -1.0"),
        (["--policy", "idle", "--malformed", "shrug"], 2, "--malformed 'shrug'"),
        ([], 2, "--policy"),
    ],
)
def test_what_is_wrong_is_one_line(envsynth, options, words, code, said):
    printed = envsynth("rollout", *words, *options)
    assert printed.code == code
    assert said in printed.err
    assert printed.err.count("\n") == 1


def test_without_a_catalog(envsynth, tmp_path):
    printed = envsynth("rollout", "--policy", "idle", "--catalog", str(tmp_path / "none.duckdb"))
    assert (printed.code, printed.err.count("\n")) == (2, 1)
    assert "there is no catalog" in printed.err
