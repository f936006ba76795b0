"""The views and the example queries answer what they say."""

from __future__ import annotations

from datetime import datetime

import duckdb
import pytest

from envsynth.catalog import Catalog, SourceFlicker, StrengthStats
from envsynth.catalog._rows import outcome_row, verdict_rows
from envsynth.catalog._sql import migrations, statements
from envsynth.errors import ConfigError
from envsynth.models import OutcomeStatus, Strength

OTHER = "./other"
WEAK = Strength(
    attacks=40, attacks_worked=0, controls=2, controlled=0.5, mutants=8, killed=2, equivalents=3, rewrites=5,
    rewrites_rejected=1,
)  # fmt: skip
NOW = datetime(2026, 1, 1)
OLD_VERDICT = (
    "lead", "position", "validator", "version", "status", "reason", "findings", "evidence", "tests",
    "wall_s", "cpu_s", "disk_bytes", "cached",
)  # fmt: skip
BEATEN = Strength(attacks=40, attacks_worked=3)


@pytest.fixture(scope="module")
def catalog(maker, tmp_path_factory: pytest.TempPathFactory):
    outcomes = [
        maker.outcome(1, flicker=True),
        maker.outcome(2, strength=WEAK),
        maker.outcome(3, OutcomeStatus.REJECTED, strength=BEATEN),
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


def test_strength_and_survivors(catalog, maker):
    ids = [maker.outcome(index).task.id for index in (1, 2)]
    found = catalog.query("SELECT * FROM strength ORDER BY attacks NULLS FIRST")
    assert found.columns == (
        "task", "attacks", "attacks_worked", "controls", "controlled", "mutants", "killed", "kill_rate", "equivalents",
        "rewrites", "rewrites_rejected", "false_reject_rate",
    )  # fmt: skip
    assert found.rows == [(ids[0], *[None] * 11), (ids[1], 40, 0, 2, 0.5, 8, 2, 0.25, 3, 5, 1, 0.2)]
    rows = catalog.query("SELECT task, path, line, description FROM survivor WHERE task IS NOT NULL ORDER BY line").rows
    assert rows == [
        (ids[1], "src/m1.py", 0, "a hunk was dropped"), (ids[1], "src/a:b/m 1.py", 31, "`<` became `<=`"),
    ]  # fmt: skip
    # A rejected candidate has survivors too.
    assert catalog.query("SELECT count(*), count(DISTINCT key) FROM survivor").rows == [(4, 2)]
    assert [task.id for task in catalog.tasks("kill_rate < 0.5")] == [ids[1]]


def test_strength_in_stats_counts_attacks_on_rejected_candidates(catalog):
    assert catalog.stats().strength == StrengthStats(
        tasks=1, attacked=2, attacks=80, attacks_worked=3, median_kill_rate=0.25, survivors=6, rewrites=5,
        rewrites_rejected=1,
    )  # fmt: skip


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
    "view",
    [
        "task",
        "lead",
        "verdict",
        "strength",
        "survivor",
        "test_run",
        "test_status",
        "flicker",
        "funnel",
        "cost_per_task",
    ],
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


def test_a_catalog_of_the_first_schema_is_read_and_brought_up_to_date(maker, tmp_path):
    path = tmp_path / "old.duckdb"
    outcome = maker.outcome(1)
    parameters = [*verdict_rows(outcome)]
    with duckdb.connect(path) as connection:
        connection.execute(migrations()[0].sql)
        connection.execute("INSERT INTO migration VALUES (1, 'initial', TIMESTAMP '2026-01-01')")
        connection.execute(statements("write")["begin_build"], {"envsynth": "0", "now": NOW, "configuration": "{}"})
        connection.execute(statements("write")["insert_outcome"], outcome_row(outcome, 1, NOW))
        for row in parameters:
            old = {key: value for key, value in row.items() if key not in ("controls", "strength", "panel")}
            connection.execute(f"INSERT INTO verdict VALUES ({', '.join(f'${key}' for key in OLD_VERDICT)})", old)
    with Catalog.open(path, read_only=True) as catalog:
        found = catalog.outcome(outcome.lead.key)
        assert found.task == outcome.task
        assert [verdict.strength for verdict in found.verdicts] == [None, None]
        assert catalog.query("SELECT kill_rate FROM task").rows == [(None,)]
        assert catalog.query("SELECT max(number) FROM migration").rows == [(len(migrations()),)]
    with Catalog.open(path) as catalog:
        again = maker.outcome(2, strength=WEAK)
        catalog.record(1, [again], maker.blobs)
        assert catalog.outcome(again.lead.key) == again
