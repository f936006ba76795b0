"""envsynth catalog ls | show | stats | sql | merge | rm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsynth.catalog import Catalog, examples
from envsynth.cli._output import clean, size


def test_ls(envsynth, task_ids):
    lines = envsynth("catalog", "ls").out.splitlines()
    assert lines[0].split("\t") == ["id", "tier", "strength", "fail_to_pass", "pass_to_pass", "source", "title"]
    assert [line.split("\t")[0] for line in lines[1:]] == task_ids
    assert [line.split("\t")[2] for line in lines[1:]] == ["attacks 0/40 killed 6/8 rejected 0/5", ""]
    (row,) = json.loads(envsynth("catalog", "ls", "--json", "--where", "flickering > 0").out)
    assert (row["id"], row["fail_to_pass"], row["interpreter"]) == (task_ids[0], 1, "3.11")
    leads = envsynth("catalog", "ls", "--leads", "--where", "status <> 'admitted'").out.splitlines()[1:]
    assert [line.split("\t")[:2] for line in leads] == [["rejected", "fail_rule"], ["dropped", "no_tests_touched"]]


def test_show_a_task(envsynth, task_ids):
    printed = envsynth("catalog", "show", task_ids[0])
    assert printed.code == 0
    for part in (
        f"{task_ids[0]}: admitted",
        "Case 1 is wrong; it should be right.",
        "FAIL_TO_PASS (1)",
        "PASS_TO_PASS (4)",
        "flickering (1)",
        "check tests_pass",
        "important ran_tests",
        "PASS    execution 2",
        '{"repeats": [2, 3]}',
        "reference 2: 5 of 6 passed",
        "pytest==8.0.0",
        "python 3.11",
        "strategy history",
    ):
        assert part in printed.out
    for part in (
        "attacks          40 tried, 0 worked",
        "controls         2 changed tests that a right solution fails, for 50% of FAIL_TO_PASS",
        "mutants          6 of 8 wrong variants noticed (75%); 3 that behave like the reference left out",
        "rewrites         0 of 5 right variants rejected",
        "what the tests do not notice (2)\n  src/a:b/m 1.py:31: `<` became `<=`\n  src/m1.py: a hunk was dropped\n",
    ):
        assert part in printed.out
    assert "mutant_survived" not in printed.out
    assert "strength of the grader" not in envsynth("catalog", "show", task_ids[1]).out
    assert envsynth("catalog", "show", task_ids[0], "--patch").out.startswith("--- a/src/changing.py\n")
    assert json.loads(envsynth("catalog", "show", task_ids[0], "--json").out)["task"]["tier"] == "verified"


def test_show_a_lead_that_became_no_task(envsynth, task_ids, maker):
    dropped, rejected = maker.lead(4), maker.lead(3)
    printed = envsynth("catalog", "show", dropped.key)
    assert printed.code == 0
    assert "no_tests_touched" in printed.out
    assert "only README.md" in printed.out
    assert "fail_rule: why" in envsynth("catalog", "show", rejected.ref).out
    assert envsynth("catalog", "show", dropped.key, "--patch").code == 2


def test_stats(envsynth, task_ids):
    printed = envsynth("catalog", "stats")
    assert "2 tasks of 4 leads in 1 builds" in printed.out
    assert (
        "\ngraders: 0 of 40 attacks worked on 1 candidates; median kill rate 75%, 2 mutants survive;"
        " 0 of 5 right rewrites rejected\n"
    ) in printed.out
    assert "tasks that nearly repeat another: 1; export without them: --where" in printed.out
    assert "https://host/owner/boltons\trejected\tfail_rule\t1" in printed.out
    assert "https://host/owner/boltons\t2\t18.1\t9.1\t4.5\t300 B" in printed.out
    assert json.loads(envsynth("catalog", "stats", "--json").out)["statuses"] == {
        "admitted": 2,
        "dropped": 1,
        "rejected": 1,
    }


def test_stats_before_anything_was_measured(envsynth, maker):
    with Catalog.open(Path("catalogs/envsynth.duckdb")) as catalog:
        catalog.record(catalog.begin_build({}), [maker.outcome(2)], maker.blobs)
    assert "graders: strength not measured; envsynth validate measures it\n" in envsynth("catalog", "stats").out


def test_sql(envsynth, task_ids, monkeypatch):
    assert envsynth("catalog", "sql", "SELECT count(*) AS n FROM task").out == "n\n2\n"
    assert json.loads(envsynth("catalog", "sql", "--json", "SELECT count(*) AS n FROM task").out) == [{"n": 2}]
    assert json.loads(envsynth("catalog", "sql", "--json", "SELECT recorded_at FROM task LIMIT 1").out)
    wrong = envsynth("catalog", "sql", "DELETE FROM outcome")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "envsynth: sql: " in envsynth("catalog", "sql", "SELECT nothing FROM task").err


def test_sql_help_has_examples_that_work(envsynth, task_ids):
    shown = envsynth("catalog", "sql", "--help").out
    assert len(examples()) >= 4
    for query in examples().values():
        assert query in shown
        printed = envsynth("catalog", "sql", query)
        assert printed.code == 0
        # The catalog of these tests has no worlds, and nothing was attempted.
        missing = ("mechanism", "reference_score", "solve_rate", "failure", "regret", "instrument")
        if not any(view in query for view in missing):
            assert len(printed.out.splitlines()) > 1


def test_merge_and_rm(envsynth, task_ids, maker):
    with Catalog.open(Path("other.duckdb")) as other:
        other.record(other.begin_build({}), [maker.outcome(9)], maker.blobs)
    assert "1 leads added" in envsynth("catalog", "merge", "other.duckdb").out
    assert "0 leads added" in envsynth("catalog", "merge", "other.duckdb").out
    assert envsynth("catalog", "rm", task_ids[0]).out.startswith("1 tasks removed")
    again = envsynth("catalog", "rm", task_ids[0])
    assert again.code == 2
    assert "there is no task or lead" in again.err
    assert len(envsynth("catalog", "ls").out.splitlines()) == 3


@pytest.mark.parametrize("command", ["ls", "show x", "stats", "rm x"])
def test_no_catalog_is_one_line_and_none_is_made(envsynth, command):
    printed = envsynth("catalog", *command.split())
    assert (printed.code, printed.out) == (2, "")
    assert "there is no catalog" in printed.err
    assert not Path("catalogs").exists()


def test_the_configured_catalog_is_used(envsynth, maker):
    Path("envsynth.toml").write_text('catalog = "mine.duckdb"\n')
    with Catalog.open(Path("mine.duckdb")) as catalog:
        catalog.record(catalog.begin_build({}), [maker.outcome(1)], maker.blobs)
    assert len(envsynth("catalog", "ls").out.splitlines()) == 2
    assert envsynth("catalog", "ls", "--catalog", "other.duckdb").code == 2


def test_what_repositories_say_cannot_steer_a_terminal():
    assert clean("a\x1b[31mb\rc\x07\x9b\nd\te") == "a\\x1b[31mb\\x0dc\\x07\\x9b\nd\te"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e9, "2.5 GB"), (3e15, "3000.0 TB")]
)
def test_sizes(count, text):
    assert size(count) == text
