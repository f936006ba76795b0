"""envsynth validate: what it hands over and what it shows; judging itself is a stand-in where it is not the point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import envsynth.revalidate
from envsynth.models import Event, FunnelRow
from envsynth.revalidate import Selection, ValidationReport


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list:
    calls: list = []

    def revalidate(config, selection, progress) -> ValidationReport:
        calls.append((config, selection))
        progress(Event("plan", "2 of 3 candidates to be judged"))
        progress(Event("lead", "rejected x-1: Fix\x1b[2J it", "./repo", 2, 3, {"status": "rejected"}))
        return ValidationReport(
            catalog=config.catalog, build=4, selected=3, standing=1, statuses={"admitted": 1, "rejected": 1, "owed": 1},
            funnel=(FunnelRow(source="./repo", status="rejected", reason="attack_worked", leads=1),),
            admitted=("x-2",), demoted=("x-1",), errors=("x-1: rejected, attack_worked (con\x1b[2Jftest)",),
            seconds=1.25, cpu_s=2.5, exit_code=1,
        )  # fmt: skip

    monkeypatch.setattr(envsynth.revalidate, "revalidate", revalidate)
    return calls


def test_options_are_handed_over(envsynth, calls):
    printed = envsynth(
        "validate", "t-1", "t-2", "--only", "adversary", "--only", "mutation", "--force", "--catalog", "c.duckdb",
        "--cache", "cache", "--jobs", "3", "--sandbox", "local", "--offline",
    )  # fmt: skip
    assert printed.code == 1
    ((config, selection),) = calls
    assert selection == Selection(names=("t-1", "t-2"), only=("adversary", "mutation"), force=True)
    assert (config.catalog, config.cache) == (Path.cwd() / "c.duckdb", Path.cwd() / "cache")
    assert (config.jobs, config.sandbox, config.offline) == (3, "local", True)
    envsynth("validate", "--all")
    assert calls[1][1] == Selection(every=True)


def test_the_end_says_what_changed_and_what_next(envsynth, calls):
    printed = envsynth("validate")
    for part in (
        "2 of 3 candidates judged again, 1 as they stood, in 1.2 s (2.5 s CPU)",
        "1\trejected\tattack_worked\t./repo",
        "admitted: x-2\nno task any more: x-1\n",
        "envsynth catalog show x-1\n",
        "the same command again: it tries what is owed",
    ):
        assert part in printed.out
    assert "[2/3] rejected x-1: Fix\\x1b[2J it\n" in printed.err
    assert "envsynth: x-1: rejected, attack_worked (con\\x1b[2Jftest)\n" in printed.err


def test_json_lines(envsynth, calls):
    printed = envsynth("validate", "--json")
    lines = [json.loads(line) for line in printed.out.splitlines()]
    assert [line["event"] for line in lines] == ["plan", "lead", "report"]
    assert (lines[2]["demoted"], lines[2]["exit_code"]) == (["x-1"], 1)
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("t-1", "--all"), "both tasks and --all are named"),
        (("--only", "excution"), "there is no validator named 'excution' (did you mean execution?)"),
        (("--only", "zzz"), "(known: static, determinism, execution"),
        ((), "there is no catalog"),
    ],
)
def test_usage_errors_are_one_line(envsynth, arguments, message):
    printed = envsynth("validate", *arguments)
    assert (printed.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert message in printed.err


def test_an_unknown_task_names_the_nearest(envsynth, task_ids):
    printed = envsynth("validate", task_ids[0].replace("boltons", "bolt0ns"))
    assert printed.code == 2
    assert f"did you mean {task_ids[0]}?" in printed.err
