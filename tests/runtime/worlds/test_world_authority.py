"""Every way out of a world's database that we could think of, and every way to read what is hidden."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
import worldkit

from envsynth.runtime.worlds.authority import Connection, Phase
from envsynth.runtime.worlds.sqltext import joins_by_name, tokens
from envsynth.runtime.worlds.tools import marked


@pytest.fixture
def connection() -> Iterator[Connection]:
    model = worldkit.model_of(worldkit.shop())
    connection = Connection(model.hidden)
    connection.load(model.image)
    yield connection
    connection.sql.close()


def run(connection: Connection, phase: Phase, sql: str, **bound: Any) -> list[Any]:
    connection.steps.refill()
    connection.authority.phase = phase
    return connection.sql.execute(sql, bound).fetchall()


ESCAPES = (
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "PRAGMA table_info(stock)",
    "PRAGMA writable_schema = ON",
    "SELECT * FROM pragma_table_info('tape')",
    "SELECT load_extension('x')",
    "CREATE TEMP TABLE copy AS SELECT 1",
    "CREATE TABLE copy(x)",
    "CREATE VIEW copy AS SELECT * FROM tape",
    "CREATE TRIGGER t AFTER INSERT ON orders BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE v USING fts5(x)",
    "DROP TABLE orders",
    "ALTER TABLE orders RENAME TO gone",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT s",
    "VACUUM INTO '/dev/null'",
    "ANALYZE",
    "SELECT sql FROM sqlite_master",
    "SELECT name FROM sqlite_schema",
    "SELECT count(*) FROM sqlite_temp_master",
    "SELECT ncell FROM dbstat WHERE name = 'tape'",
    "SELECT random()",
    "SELECT hex(randomblob(4))",
    "SELECT changes()",
    "SELECT last_insert_rowid()",
    "SELECT sqlite_version()",
    "SELECT zeroblob(100000000)",
    "SELECT CURRENT_TIMESTAMP",
    "SELECT current_date",
    "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, '')",
    "INSERT INTO sqlite_sequence VALUES ('orders', 5)",
    "SELECT readfile('/etc/hostname')",
    "SELECT fts3_tokenizer('x')",
    "SELECT 1; SELECT 2",
)


@pytest.mark.parametrize("sql", ESCAPES)
@pytest.mark.parametrize("phase", [Phase.SHOWN, Phase.EFFECT, Phase.ENDING])
def test_no_statement_leads_out_of_the_world(connection: Connection, phase: Phase, sql: str) -> None:
    with pytest.raises((sqlite3.Error, sqlite3.Warning)):
        run(connection, phase, sql)


@pytest.mark.parametrize("phase", [Phase.SHOWN, Phase.ENDING])
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO orders(item, amount) VALUES ('lamp', 1)",
        "UPDATE state SET money = 1",
        "DELETE FROM orders",
        "REPLACE INTO state VALUES (1, 1)",
        "INSERT INTO audit(seen) VALUES ('x')",
        "WITH a AS (SELECT 1) INSERT INTO orders(item, amount) SELECT 'lamp', 1 FROM a",
        "INSERT INTO orders(item, amount) VALUES ('lamp', 1) RETURNING id",
    ],
)
def test_only_effects_write(connection: Connection, phase: Phase, sql: str) -> None:
    with pytest.raises(sqlite3.DatabaseError):
        run(connection, phase, sql)


READS_OF_HIDDEN = (
    "SELECT demand FROM tape",
    "SELECT * FROM tape",
    "SELECT count(*) FROM tape",
    "SELECT count(*) FROM TAPE",
    "SELECT 1 FROM main.tape LIMIT 1",
    'SELECT 1 FROM "tape"',
    "SELECT 1 FROM [tape]",
    "SELECT rowid FROM tape",
    "SELECT oid FROM suppliers",
    "SELECT EXISTS (SELECT 1 FROM tape)",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM tape WHERE demand > 3)",
    "SELECT (SELECT max(demand) FROM tape)",
    "WITH a AS (SELECT demand FROM tape) SELECT 1 FROM a",
    "WITH a AS (SELECT * FROM tape) SELECT count(*) FROM a",
    "WITH RECURSIVE a(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM a, tape WHERE n < 3) SELECT n FROM a",
    "SELECT 1 FROM stock UNION SELECT demand FROM tape",
    "SELECT 1 FROM stock EXCEPT SELECT 1 FROM tape",
    "SELECT item FROM stock WHERE price IN (SELECT demand FROM tape)",
    "SELECT item FROM stock WHERE item IN suppliers",
    "SELECT stock.item FROM stock JOIN suppliers ON suppliers.item = stock.item",
    "SELECT stock.item FROM stock LEFT JOIN tape ON 1",
    "SELECT stock.item FROM stock, tape",
    "SELECT item FROM stock ORDER BY (SELECT demand FROM tape LIMIT 1)",
    "SELECT cost FROM stock",
    "SELECT * FROM stock",
    "SELECT stock.* FROM stock",
    "SELECT s.cost AS price FROM stock s",
    "SELECT item FROM stock WHERE cost > 10",
    "SELECT item FROM stock ORDER BY cost",
    "SELECT item FROM stock ORDER BY stock.cost DESC",
    "SELECT count(*) FROM stock GROUP BY cost",
    "SELECT count(*) FROM stock HAVING max(cost) > 3",
    "SELECT sum(cost) OVER () FROM stock",
    "SELECT item, row_number() OVER (ORDER BY cost) FROM stock",
    "SELECT count(*) FILTER (WHERE cost > 3) FROM stock",
    "SELECT item FROM stock LIMIT (SELECT min(cost) FROM stock)",
    "SELECT CASE WHEN cost > 3 THEN 1 ELSE 0 END FROM stock",
    "SELECT json_group_array(cost) FROM stock",
    "SELECT json_object('c', cost) FROM stock",
    "SELECT coalesce(NULL, cost) FROM stock",
    "SELECT typeof(cost) FROM stock",
    "SELECT (price, cost) = (49, 31) FROM stock",
    "SELECT a.item FROM stock a JOIN stock b ON a.price = b.cost",
    "SELECT item FROM (SELECT item, cost FROM stock)",
    "SELECT item FROM (SELECT * FROM stock)",
    "EXPLAIN SELECT demand FROM tape",
    "VALUES ((SELECT demand FROM tape))",
)


@pytest.mark.parametrize("sql", READS_OF_HIDDEN)
def test_nothing_shown_reads_what_is_hidden(connection: Connection, sql: str) -> None:
    with pytest.raises(sqlite3.DatabaseError):
        run(connection, Phase.SHOWN, sql)
    assert any("hidden" in reason for reason in connection.authority.denied)


@pytest.mark.parametrize("sql", READS_OF_HIDDEN[:5])
def test_effects_may_read_everything(connection: Connection, sql: str) -> None:
    assert run(connection, Phase.EFFECT, sql)


def test_visible_columns_of_a_table_with_hidden_ones_can_be_read(connection: Connection) -> None:
    assert run(connection, Phase.SHOWN, "SELECT count(*), max(price) FROM stock") == [(3, 49)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT stock.item FROM stock JOIN suppliers USING (item)",
        "SELECT stock.item FROM stock NATURAL JOIN suppliers",
        "SELECT stock.item FROM stock natural left join suppliers",
        "SELECT 1 FROM (SELECT 31 AS cost) JOIN stock USING (cost)",
        "SELECT 1 FROM stock JOIN suppliers/* */USING/**/(item)",
    ],
)
def test_joins_by_name_are_refused_because_sqlite_asks_nobody(sql: str) -> None:
    """On SQLite 3.40 the authorizer is not asked for the columns of USING and NATURAL."""
    for document in (
        worldkit.with_tool("peek", result=f"{sql} ORDER BY 1"),
        worldkit.with_tool("peek", guards=[{"sql": sql, "error": "no"}]),
    ):
        with pytest.raises(ValueError, match=r"tool peek.*say ON"):
            worldkit.model_of(document)


def test_the_words_of_joins_by_name_are_free_elsewhere() -> None:
    for sql in (
        "SELECT 'using (it), NATURAL'",
        'SELECT "natural" FROM t',
        "SELECT 1 -- NATURAL JOIN\n",
        "SELECT :using",
    ):
        assert not joins_by_name(sql)


def test_what_an_effect_asked_is_not_kept_for_results(connection: Connection) -> None:
    """Prepared statements are kept by their text, and the authorizer is asked when one is prepared."""
    sql = "SELECT demand FROM tape"
    assert run(connection, Phase.EFFECT, marked(Phase.EFFECT, sql))
    with pytest.raises(sqlite3.DatabaseError):
        run(connection, Phase.SHOWN, marked(Phase.SHOWN, sql))


def test_a_query_of_an_effect_does_not_open_a_result() -> None:
    sql = "SELECT demand FROM tape ORDER BY day"
    tools = worldkit.shop()["tools"] | {
        "quiet": {"kind": "write", "effects": [sql]}, "loud": {"kind": "read", "result": sql},
    }  # fmt: skip
    episode = worldkit.episode_of(worldkit.shop(tools=tools))
    assert episode.call("quiet", {}).ok
    assert not episode.call("loud", {}).ok
    episode.close()


@pytest.mark.parametrize(
    "moment",
    ["now", "NOW", " now ", "now\0", "now\0x", "subsec", "subsecond", b"now", b"now\0", "", "tomorrow", "12:00 now"],
)
@pytest.mark.parametrize("function", ["date", "time", "datetime", "julianday", "unixepoch"])
def test_no_moment_is_the_present_one(connection: Connection, function: str, moment: Any) -> None:
    assert run(connection, Phase.SHOWN, f"SELECT {function}(:moment)", moment=moment) == [(None,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT date('n' || 'ow')",
        "SELECT date(CAST(x'6e6f77' AS BLOB))",
        "SELECT date(char(110, 111, 119))",
        "SELECT date(CAST(x'6e6f7700' AS TEXT))",
        "SELECT date((SELECT 'now'))",
        "SELECT date()",
        "SELECT julianday()",
        "SELECT strftime('%Y')",
        "SELECT strftime('%Y', 'now')",
        "SELECT date('2026-03-10', 'localtime')",
        "SELECT date('2026-03-10', ' UTC ')",
        "SELECT datetime('2026-03-10', '+1 day', 'localtime')",
        "SELECT date(json_extract('{\"a\": \"now\"}', '$.a'))",
    ],
)
def test_no_expression_makes_the_present_moment(connection: Connection, sql: str) -> None:
    assert run(connection, Phase.SHOWN, sql) == [(None,)]
    assert date.today().isoformat() not in json.dumps(run(connection, Phase.EFFECT, sql))


def test_dates_are_reckoned_as_ever(connection: Connection) -> None:
    sql = "SELECT date('2026-01-31', '+1 month'), julianday('2026-03-10') - julianday('2026-03-01'), strftime('%H', :t)"
    assert run(connection, Phase.SHOWN, sql, t="2026-03-10T09:30:00") == [("2026-03-03", 9.0, "09")]


BOMBS = (
    "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT count(*) FROM a",
    "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT max(a.n) FROM a, a b",
    "WITH RECURSIVE a(t) AS (SELECT 'x' UNION ALL SELECT t || t FROM a) SELECT max(length(t)) FROM a",
    "SELECT count(*) FROM stock a, stock b, stock c, stock d, stock e, stock f, stock g, stock h, stock i, stock j,"
    " stock k, stock l, stock m, stock n, stock o, stock p",
)


@pytest.mark.parametrize("sql", BOMBS)
def test_a_bomb_is_stopped(connection: Connection, sql: str) -> None:
    with pytest.raises(sqlite3.Error):
        run(connection, Phase.SHOWN, sql)


def test_a_text_full_of_wildcards_is_matched_in_no_time(connection: Connection) -> None:
    bound = {"text": "e" * 19_000, "pattern": "%e" * 400 + "%z"}
    assert run(connection, Phase.SHOWN, "SELECT :text LIKE :pattern", **bound) == [(0,)]


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT 'a''b'", ["word", "string"]),
        ('SELECT "or""der"', ["word", "quoted"]),
        ("SELECT :a, @b, $c, ?1", ["word", *["parameter", "other"] * 3, "parameter"]),
        ("SELECT 1 -- ORDER BY\n", ["word", "other"]),
        ("SELECT /* ( */ 1", ["word", "other"]),
        ("SELECT 'unclosed", ["word", "string"]),
    ],
)
def test_sql_is_taken_apart(sql: str, kinds: list[str]) -> None:
    assert [token.kind for token in tokens(sql)] == kinds


def test_depth_is_the_number_of_open_parentheses() -> None:
    found = {token.text: token.depth for token in tokens("SELECT a FROM (SELECT b FROM (SELECT ')' AS c)) ORDER BY d")}
    assert (found["A"], found["B"], found["C"], found["D"]) == (0, 1, 2, 0)
