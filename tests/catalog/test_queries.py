"""The views and the example queries answer what they say."""

from __future__ import annotations

import pytest

from envsynth.catalog import Catalog, SourceFlicker
from envsynth.catalog._sql import migrations, statements
from envsynth.errors import ConfigError
from envsynth.models import OutcomeStatus

OTHER = "./other"


@pytest.fixture(scope="module")
def catalog(maker, tmp_path_factory: pytest.TempPathFactory):
    outcomes = [
        maker.outcome(1, flicker=True),
        maker.outcome(2),
        maker.outcome(3, OutcomeStatus.REJECTED),
        maker.outcome(4, OutcomeStatus.DROPPED),
        maker.outcome(5, OutcomeStatus.OWED),
        maker.outcome(6, OutcomeStatus.REJECTED, source=OTHER, flicker=True),
    ]
    with Catalog.open(tmp_path_factory.mktemp("queries") / "c.duckdb") as catalog:
        catalog.record(catalog.begin_build({}), outcomes, maker.blobs)
        yield catalog


def example(catalog: Catalog, name: str) -> list[tuple[object, ...]]:
    return catalog.query(statements("examples")[name]).rows


def test_the_three_questions(catalog):
    assert example(catalog, "Yield by reason") == [
        ("admitted", "", 2),
        ("rejected", "fail_rule", 2),
        ("dropped", "no_tests_touched", 1),
        ("owed", "error_rule", 1),
    ]
    assert example(catalog, "Flickering tests by repository") == [(OTHER, 1, 1), ("https://host/owner/boltons", 1, 1)]
    # Four leads of 3 s and one of 0.1 s for two tasks; the other source made none.
    assert example(catalog, "CPU seconds per admitted task") == [
        (OTHER, 0, None),
        ("https://host/owner/boltons", 2, 6.0),
    ]


def test_stats_say_the_same(catalog):
    stats = catalog.stats()
    assert (stats.builds, stats.leads) == (1, 6)
    assert stats.statuses == {"admitted": 2, "rejected": 2, "dropped": 1, "owed": 1}
    assert sum(row.leads for row in stats.funnel) == 6
    assert set(stats.flicker) == {
        SourceFlicker(source=OTHER, tests=1),
        SourceFlicker(source="https://host/owner/boltons", tests=1),
    }
    assert stats.cpu_s == pytest.approx(15.1)
    assert stats.file_bytes > 0
    assert stats.blob_bytes > 0


def test_task_view_and_where(catalog):
    rows = catalog.query(
        "SELECT fail_to_pass, pass_to_pass, flickering, tier, interpreter, criteria, kind FROM task"
    ).rows
    assert sorted(rows) == [
        (1, 4, 0, "verified", "3.11", 1, "workspace"),
        (1, 4, 1, "verified", "3.11", 1, "workspace"),
    ]
    assert catalog.query("SELECT min(patch_bytes) > 10 FROM task").rows == [(True,)]
    assert [task.candidate.provenance.lead.index for task in catalog.tasks("flickering > 0")] == [1]
    assert len(catalog.tasks("fail_to_pass >= 1 -- a comment")) == 2
    assert catalog.tasks("false") == []


def test_test_status_is_one_row_a_test_a_run(catalog, maker):
    key = maker.outcome(1).lead.key
    rows = catalog.query(f"SELECT state, repeat, test, status, id, line FROM test_status WHERE key = '{key}'").rows
    expected = [
        (run.state, run.repeat, record.key, record.status.value, record.id, record.line)
        for verdict in maker.outcome(1, flicker=True).verdicts
        for run in verdict.runs
        for record in run.records
    ]
    assert sorted(rows) == sorted(expected)
    assert catalog.query("SELECT DISTINCT passed, tests FROM test_run WHERE state = 'start' ORDER BY ALL").rows == [
        (4, 5),
        (4, 6),
        (5, 6),
    ]


def test_flicker_shows_the_statuses(catalog):
    rows = catalog.query("SELECT DISTINCT test, state, statuses FROM flicker ORDER BY state").rows
    assert rows == [
        ("tests/test_a.py::test_time", "reference", ["error", "passed"]),
        ("tests/test_a.py::test_time", "start", ["error", "passed"]),
    ]


@pytest.mark.parametrize(
    "view", ["task", "lead", "verdict", "test_run", "test_status", "flicker", "funnel", "cost_per_task"]
)
def test_every_view_answers(catalog, view):
    result = catalog.query(f"SELECT * FROM {view}")
    assert result.rows
    assert len(result.columns) == len(result.rows[0])


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM outcome",
        "SELECT 1; SELECT 2",
        "",
        "SELEKT 1",
        "SELECT nothing FROM task",
        "DROP TABLE outcome",
        "SELECT 1; DROP TABLE outcome",
        "EXPLAIN ANALYZE DELETE FROM outcome",
        "SELECT CAST('a' AS INTEGER)",
        "COPY task TO 'x.csv'",
        "SELECT * FROM no_view",
    ],
)
def test_sql_that_is_no_question(catalog, sql):
    with pytest.raises(ConfigError) as caught:
        catalog.query(sql)
    assert "\n" not in str(caught.value)
    assert len(catalog.tasks()) == 2


@pytest.mark.parametrize("where", ["true); DROP TABLE outcome; --", "nothing = 1", "'"])
def test_where_that_is_no_condition(catalog, where):
    with pytest.raises(ConfigError):
        catalog.tasks(where)
    assert len(catalog.tasks()) == 2


def test_a_reader_cannot_reach_files(tmp_path):
    Catalog.open(tmp_path / "c.duckdb").close()
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with Catalog.open(tmp_path / "c.duckdb", read_only=True) as reader:
        for sql in (f"SELECT * FROM read_text('{secret}')", f"FROM '{secret}'"):
            with pytest.raises(ConfigError, match=r"disabled by configuration|does not exist"):
                reader.query(sql)


def test_migrations_are_numbered_without_gaps():
    assert [step.number for step in migrations()] == list(range(1, len(migrations()) + 1))
