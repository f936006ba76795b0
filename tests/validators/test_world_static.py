"""One world for each thing that a world and the texts of its task must not be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import world_bench
import worldkit
from pydantic import ValidationError

from envsynth.cache import Cache
from envsynth.context import BuildContext
from envsynth.models import Candidate, Source, Verdict, VerdictStatus, World
from envsynth.runtime.worlds.authority import Connection, Phase
from envsynth.validators.world_static import WorldStatic
from envsynth.validators.world_static.program import Storage

Judge = Callable[[Candidate], Verdict]


@pytest.fixture
def judge(cache: Cache, source: Source, tmp_path: Path) -> Judge:
    context = BuildContext(tmp_path)
    return lambda candidate: WorldStatic().validate(candidate, source, context)


def rules(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.findings}


def tool(**changes: Any) -> dict[str, Any]:
    return worldkit.with_tool("extra", **changes)


def test_the_shop_and_the_wheel_pass(cache: Cache, judge: Judge) -> None:
    for candidate in (world_bench.candidate(cache, worldkit.shop()), world_bench.wheel_task(cache)):
        verdict = judge(candidate)
        assert (verdict.status, rules(verdict)) == (VerdictStatus.PASS, set())
        assert verdict.evidence["statements"]


STATEMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "no sql": ({"result": "SELEC 1"}, "sql_of_wrong_kind"),
    "broken": ({"result": "SELECT item FROM"}, "sql_invalid"),
    "unknown column": ({"result": "SELECT colour FROM stock ORDER BY 1"}, "sql_invalid"),
    "unknown function": ({"result": "SELECT sha3('x')"}, "sql_invalid"),
    "two statements": ({"result": "SELECT 1; SELECT 2"}, "sql_invalid"),
    "query plan": ({"result": "QUERY PLAN SELECT 1"}, "sql_of_wrong_kind"),
    "pragma": ({"result": "PRAGMA table_info(tape)"}, "sql_of_wrong_kind"),
    "attach": ({"effects": ["ATTACH ':memory:' AS x"], "kind": "write"}, "sql_of_wrong_kind"),
    "commit": ({"effects": ["COMMIT"], "kind": "write"}, "sql_of_wrong_kind"),
    "ddl": ({"effects": ["CREATE TABLE x(y)"], "kind": "write"}, "sql_of_wrong_kind"),
    "a query as an effect": ({"effects": ["SELECT 1"], "kind": "write"}, "sql_of_wrong_kind"),
    "a query behind WITH": (
        {"effects": ["WITH a AS (SELECT 1) SELECT 1 FROM a"], "kind": "write"}, "effect_without_effect",
    ),
    "the schema": ({"result": "SELECT name FROM sqlite_master ORDER BY 1"}, "sql_not_allowed"),
    "pragma table": ({"result": "SELECT name FROM pragma_table_info('tape') ORDER BY 1"}, "sql_not_allowed"),
    "random": ({"result": "SELECT random()"}, "sql_not_allowed"),
    "now": ({"result": "SELECT CURRENT_TIMESTAMP"}, "present_moment"),
    "now as a date": ({"result": "SELECT date('now')"}, "present_moment"),
    "local time": ({"result": "SELECT time(:now, 'localtime')"}, "present_moment"),
    "a result that writes": (
        {"result": "INSERT INTO audit(seen) VALUES ('x') RETURNING id", "kind": "write"}, "sql_of_wrong_kind",
    ),
    "a write behind WITH": (
        {"result": "WITH a AS (SELECT 1) DELETE FROM orders", "kind": "write"}, "sql_not_allowed",
    ),
    "a read tool that writes": ({"effects": ["UPDATE state SET money = 0"]}, "read_tool_writes"),
    "undeclared": ({"result": "SELECT :colour"}, "parameter_undeclared"),
    "unnamed": ({"result": "SELECT ?"}, "parameter_undeclared"),
    "position without a list": ({"result": "SELECT :position"}, "parameter_undeclared"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "rule"), STATEMENTS.values(), ids=STATEMENTS.keys())
def test_a_statement_that_is_not_allowed(cache: Cache, judge: Judge, changes: dict[str, Any], rule: str) -> None:
    verdict = judge(world_bench.candidate(cache, tool(**changes)))
    assert verdict.status is VerdictStatus.FAIL
    assert rules(verdict) == {rule}
    assert verdict.findings[0].where.startswith("tool extra")


@pytest.mark.parametrize("over", ["UPDATE state SET day = 1", "SELECT CURRENT_DATE", "SELECT day FROM", "SELECT :item"])
def test_what_ends_an_episode_only_reads(cache: Cache, judge: Judge, over: str) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop(over=over)))
    assert [finding.where for finding in verdict.findings] == ["over"]


HIDDEN = (
    "SELECT demand FROM tape ORDER BY day",
    "SELECT count(*) FROM suppliers",
    "SELECT EXISTS (SELECT 1 FROM tape)",
    "WITH a AS (SELECT cost FROM stock) SELECT count(*) FROM a",
    "SELECT * FROM stock ORDER BY item",
    "SELECT item FROM stock ORDER BY cost",
    "SELECT item FROM stock WHERE item IN (SELECT item FROM suppliers) ORDER BY item",
    "SELECT rowid FROM tape ORDER BY 1",
)


@pytest.mark.parametrize("sql", HIDDEN)
@pytest.mark.parametrize("part", ["result", "guard"])
def test_nothing_shown_reads_what_is_hidden(cache: Cache, judge: Judge, sql: str, part: str) -> None:
    changes: dict[str, Any] = {"result": sql} if part == "result" else {"guards": [{"sql": sql, "error": "no"}]}
    verdict = judge(world_bench.candidate(cache, tool(**changes)))
    assert rules(verdict) == {"reads_hidden"}


def test_a_read_tool_cannot_write_down_what_is_hidden(cache: Cache, judge: Judge) -> None:
    """By way of a tolerated table it would be seen for nothing; a write tool that asks is the game."""
    effects = ["INSERT INTO audit(seen) SELECT demand FROM tape"]
    for kind, found in (("read", {"reads_hidden"}), ("write", set())):
        verdict = judge(world_bench.candidate(cache, tool(kind=kind, effects=effects)))
        assert rules(verdict) == found


@pytest.mark.parametrize("join", ["JOIN suppliers USING (item)", "NATURAL JOIN suppliers"])
def test_a_world_that_joins_by_name_cannot_be_made(cache: Cache, judge: Judge, join: str) -> None:
    verdict = judge(world_bench.candidate(cache, tool(result=f"SELECT stock.item FROM stock {join} ORDER BY 1")))
    assert rules(verdict) == {"world_invalid"}


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT stock.item FROM stock JOIN suppliers USING (item)", "suppliers"),
        ("SELECT 1 FROM (SELECT 31 AS cost) JOIN stock USING (cost)", "stock.cost"),
        ("SELECT item FROM stock WHERE cost > 3", "stock.cost"),
        ("SELECT count(*) FROM tape", "tape"),
        ("SELECT item, price FROM stock", ""),
        ("SELECT count(*) FROM stock JOIN orders ON orders.item = stock.item", ""),
    ],
)
def test_the_second_proof_needs_no_authorizer(sql: str, read: str) -> None:
    """Prepared as ours, so that nobody is asked; SQLite's own program tells."""
    model = worldkit.model_of(worldkit.shop())
    connection = Connection(model.hidden)
    connection.load(model.image)
    connection.authority.phase = Phase.OURS
    storage = Storage(connection, model.document["tables"])
    program = connection.sql.execute(f"EXPLAIN {sql}").fetchall()
    assert storage.hidden_read(program, model.hidden) == read
    connection.sql.close()


ORDERED = {
    "by its key": ("SELECT item FROM stock ORDER BY item", True),
    "without": ("SELECT item FROM stock", False),
    "only inside": ("SELECT item FROM (SELECT item FROM stock ORDER BY item)", False),
    "only in a window": ("SELECT row_number() OVER (ORDER BY item) FROM stock", False),
    "in a text": ("SELECT 'ORDER BY' FROM stock", False),
    "one row table": ("SELECT money FROM state", True),
    "one row table, twice": ("SELECT a.money FROM state a CROSS JOIN state b", True),
    "aggregate": ("SELECT count(*), coalesce(max(price), 0) FROM stock", True),
    "aggregate by group": ("SELECT count(*) FROM stock GROUP BY price", False),
    "larger of two": ("SELECT max(price, 3) FROM stock", False),
    "aggregate of a subquery": ("SELECT (SELECT max(price) FROM stock) FROM orders", False),
    "by integer key": ("SELECT amount FROM orders WHERE id = 3", True),
    "by text key": ("SELECT price FROM stock s WHERE s.item = 'lamp'", True),
    "by no key": ("SELECT price FROM stock WHERE price = 3", False),
    "limit alone": ("SELECT price FROM stock LIMIT 1", False),
    "values": ("VALUES (1), (2)", False),
    "constant": ("SELECT 1", True),
    "union": ("SELECT item FROM stock UNION SELECT item FROM orders", False),
    "union in order": ("SELECT item FROM stock UNION SELECT item FROM orders ORDER BY 1", True),
    "join of a key and one row": ("SELECT o.amount, s.day FROM orders o CROSS JOIN state s WHERE o.id = 1", True),
    "distinct": ("SELECT DISTINCT price FROM stock", False),
    "by a constant": ("SELECT item FROM stock ORDER BY 1=1", False),
    "by a function of nothing": ("SELECT item FROM stock ORDER BY abs(1), 'item' COLLATE NOCASE DESC", False),
    "by a parameter": ("SELECT item FROM stock ORDER BY :now", False),
    "by its number": ("SELECT item FROM stock ORDER BY 1 DESC LIMIT 2", True),
    "by a case": ("SELECT item FROM stock ORDER BY CASE WHEN item = 'lamp' THEN 0 ELSE 1 END, item", True),
}


@pytest.mark.parametrize(("sql", "ordered"), ORDERED.values(), ids=ORDERED.keys())
def test_results_of_several_rows_have_an_order(cache: Cache, judge: Judge, sql: str, ordered: bool) -> None:
    verdict = judge(world_bench.candidate(cache, tool(result=sql)))
    assert rules(verdict) == (set() if ordered else {"result_without_order"})


_SORTED = "(SELECT item FROM stock ORDER BY item)"
INNER: dict[str, tuple[str, str]] = {
    "joined as they come": ("SELECT group_concat(item) FROM stock", "group_concat"),
    "listed as they come": ("SELECT json_group_array(item) FROM stock WHERE price > 3", "json_group_array"),
    "in a column": ("SELECT (SELECT group_concat(item) FROM orders) AS o FROM stock ORDER BY item", "group_concat"),
    "by a constant": ("SELECT group_concat(item) FROM (SELECT item FROM stock ORDER BY 1=1)", "group_concat"),
    "from a subquery": ("SELECT group_concat(item) FROM (SELECT item FROM stock)", "group_concat"),
    "two one row tables and more": ("SELECT group_concat(money) FROM state, stock", "group_concat"),
    "numbered as they come": ("SELECT item, row_number() OVER () AS n FROM stock ORDER BY item", "row_number"),
    "first of a part": ("SELECT first_value(item) OVER (PARTITION BY price) f FROM stock ORDER BY 1", "first_value"),
    "a window by name": ("SELECT lag(item) OVER w AS f FROM stock WINDOW w AS (PARTITION BY 1) ORDER BY 1", "lag"),
    "joined in order": (f"SELECT group_concat(item) FROM {_SORTED}", ""),
    "in an order by name": (f"WITH s AS {_SORTED} SELECT json_group_array(item) FROM s", ""),
    "a list of one": ("SELECT json_group_array(money) FROM state", ""),
    "of one object": ("SELECT json_group_array(money) FILTER (WHERE money > 3) FROM state", ""),
    "of a list": ("SELECT json_group_array(value) FROM json_each('[1, 2]')", ""),
    "numbered in order": ("SELECT item, row_number() OVER (ORDER BY item) AS n FROM stock ORDER BY item", ""),
    "a window by name in order": ("SELECT lag(item) OVER w AS f FROM stock WINDOW w AS (ORDER BY item) ORDER BY 1", ""),
    "a sum by part": ("SELECT item, sum(price) OVER (PARTITION BY item) s FROM stock ORDER BY item", ""),
}


@pytest.mark.parametrize(("sql", "function"), INNER.values(), ids=INNER.keys())
def test_what_depends_on_an_order_states_it(cache: Cache, judge: Judge, sql: str, function: str) -> None:
    verdict = judge(world_bench.candidate(cache, tool(result=sql)))
    assert rules(verdict) == ({"order_inside_missing"} if function else set())
    assert not function or verdict.findings[0].message.startswith(f"what {function} gives depends")


@pytest.mark.parametrize(
    "over", ["SELECT day > 3 OR 7 = (SELECT demand FROM tape WHERE day = 2) FROM state", "SELECT count(*) FROM tape"]
)
def test_the_end_tells_nothing_hidden(cache: Cache, judge: Judge, over: str) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop(over=over)))
    assert rules(verdict) == {"over_reads_hidden"}
    assert "tape" in verdict.findings[0].message


@pytest.mark.parametrize(("written", "found"), [(True, {"refers_to_hidden"}), (False, set())])
def test_nobody_tries_out_which_hidden_rows_there_are(
    cache: Cache, judge: Judge, written: bool, found: set[str]
) -> None:
    world = worldkit.shop()
    key = {"type": "text", "role": "key", "references": "suppliers.item"}
    world["tables"]["asked"] = {"tolerated": True, "columns": {"item": key}}
    parameters = {"item": {"type": "string", "doc": "A name."}}
    effects = ["INSERT INTO asked VALUES (:item)" if written else "INSERT INTO audit(seen) VALUES (:item)"]
    world["tools"]["ask"] = {"kind": "write", "doc": "Ask.", "parameters": parameters, "effects": effects}
    verdict = judge(world_bench.candidate(cache, world))
    assert rules(verdict) == found
    assert [one.where for one in verdict.findings] == ["table asked, column item"] * len(found)


def test_a_table_that_grows_has_no_single_row(cache: Cache, judge: Judge) -> None:
    more = worldkit.with_tool("more", kind="write", effects=["INSERT INTO state SELECT day, money FROM state"])
    more["tools"]["extra"] = {"kind": "read", "doc": "Money.", "result": "SELECT money FROM state"}
    verdict = judge(world_bench.candidate(cache, more))
    assert {finding.where for finding in verdict.findings} == {"tool extra, result", "tool wait, result"}


SCHEMAS: dict[str, tuple[dict[str, Any], str]] = {
    "no doc": ({"doc": " "}, "tool_without_doc"),
    "no parameter doc": ({"parameters": {"a": {"type": "string"}}}, "parameter_without_doc"),
    "now": ({"parameters": {"now": {"type": "string", "doc": "x"}}}, "parameter_name_taken"),
    "nothing fits": (
        {"parameters": {"a": {"type": "integer", "doc": "x", "minimum": 2, "maximum": 1}}}, "parameter_bounds",
    ),
    "text with bounds": ({"parameters": {"a": {"type": "string", "doc": "x", "minimum": 2}}}, "parameter_bounds"),
    "number with a length": (
        {"parameters": {"a": {"type": "number", "doc": "x", "max_length": 2}}}, "parameter_bounds",
    ),
    "half an integer": ({"parameters": {"a": {"type": "integer", "doc": "x", "minimum": 0.5}}}, "parameter_bounds"),
    "enum of another type": ({"parameters": {"a": {"type": "integer", "doc": "x", "enum": ["1"]}}}, "parameter_bounds"),
    "enum out of bounds": (
        {"parameters": {"a": {"type": "integer", "doc": "x", "enum": [1, 5], "maximum": 4}}}, "parameter_bounds",
    ),
    "no length fits": (
        {"parameters": {"a": {"type": "string", "doc": "x", "min_length": 5, "max_length": 4}}}, "parameter_bounds",
    ),
    "position in a list": (
        {
            "parameters": {"list": {"type": "string", "doc": "x"}},
            "each": {"parameter": "list", "fields": {"position": {"type": "integer", "doc": "x"}}},
        },
        "parameter_name_taken",
    ),
    "field like a parameter": (
        {
            "parameters": {"list": {"type": "string", "doc": "x"}},
            "each": {"parameter": "list", "fields": {"list": {"type": "integer", "doc": "x"}}},
        },
        "parameter_name_taken",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "rule"), SCHEMAS.values(), ids=SCHEMAS.keys())
def test_a_tool_that_cannot_be_called_as_it_says(
    cache: Cache, judge: Judge, changes: dict[str, Any], rule: str
) -> None:
    document = tool(kind="write", effects=["DELETE FROM orders"], **changes)
    verdict = judge(world_bench.candidate(cache, document))
    assert verdict.status is VerdictStatus.FAIL
    assert verdict.reason == rule


def test_a_statement_may_be_shared(cache: Cache, judge: Judge) -> None:
    verdict = judge(
        world_bench.candidate(cache, tool(kind="write", effects=["DELETE FROM orders", "DELETE FROM orders"]))
    )
    assert "effect_without_effect" not in rules(verdict)


def test_a_parameter_that_nothing_reads_is_noted(cache: Cache, judge: Judge) -> None:
    verdict = judge(world_bench.candidate(cache, tool(parameters={"a": {"type": "string", "doc": "x"}})))
    assert (verdict.status, rules(verdict)) == (VerdictStatus.PASS, {"parameter_unused"})


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Do it.", "instruction_too_short"),
        (worldkit.INSTRUCTION + " Use {tool}.", "unfilled_braces"),
        (worldkit.INSTRUCTION + f" The lamps come from {worldkit.SECRET}.", "text_names_hidden_value"),
        (worldkit.INSTRUCTION + " Write to erika.m@example-shop.de about it.", "instruction_has_email"),
        (worldkit.INSTRUCTION + " The key is AKIA" + "Q3EGWXZP7RTK2VNB.", "secret_in_task"),
    ],
)
def test_an_instruction_that_cannot_be_given(cache: Cache, judge: Judge, text: str, rule: str) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop(), instruction=text))
    assert (verdict.status, rules(verdict)) == (VerdictStatus.FAIL, {rule})


def test_json_in_an_instruction_is_no_unfilled_brace(cache: Cache, judge: Judge) -> None:
    text = worldkit.INSTRUCTION + ' The plan looks like [{"item": "lamp", "amount": 1}] or {}.'
    assert judge(world_bench.candidate(cache, worldkit.shop(), instruction=text)).status is VerdictStatus.PASS


def test_texts_of_tools_are_looked_at_too(cache: Cache, judge: Judge) -> None:
    guards = [{"sql": "SELECT 1", "error": "no {pulls} left"}]
    verdict = judge(world_bench.candidate(cache, tool(doc=f"Ask {worldkit.SECRET}.", guards=guards)))
    assert rules(verdict) == {"unfilled_braces", "text_names_hidden_value"}


def test_numbers_of_the_tape_are_not_for_the_instruction(cache: Cache, judge: Judge) -> None:
    rows = worldkit.shop()["rows"] | {"tape": [[day, 83_511 + 7 * day] for day in range(5)]}
    document = worldkit.shop(rows=rows)
    text = worldkit.INSTRUCTION + " Demand will be 83,511, then 83518 and 83,525."
    assert rules(judge(world_bench.candidate(cache, document, instruction=text))) == {"text_names_hidden_value"}
    one = worldkit.INSTRUCTION + " There are at most 83,511 people in town."
    assert judge(world_bench.candidate(cache, document, instruction=one)).status is VerdictStatus.PASS
    written = {"instruction": text, "tells": "instruction"}
    assert judge(world_bench.candidate(cache, document, **written)).status is VerdictStatus.PASS


def test_an_address_of_the_world_may_be_named(cache: Cache, judge: Judge) -> None:
    document = tool(doc="Write to desk@shop.example for help.")
    text = worldkit.INSTRUCTION + " Write to desk@shop.example about it."
    assert judge(world_bench.candidate(cache, document, instruction=text)).status is VerdictStatus.PASS


@pytest.mark.parametrize(
    "content",
    [b"{}", b"no json", b'{"id": "x", "clock": "2026-03-10T09:00:00", "tables": [], "tools": []}'],
)
def test_what_is_no_world_fails(cache: Cache, judge: Judge, content: bytes) -> None:
    assert rules(judge(world_bench.candidate(cache, content))) == {"world_invalid"}


def test_rows_that_do_not_fit_fail(cache: Cache, judge: Judge) -> None:
    rows = worldkit.shop()["rows"] | {"orders": [[1, "sofa", 2]]}
    verdict = judge(world_bench.candidate(cache, worldkit.shop(rows=rows)))
    assert verdict.findings[0].message == "row 1 of table orders points at nothing in stock"


LOOSE = (
    ("notes", "cents", {"role": "semantic"}, "semantic_no_text"),
    ("orders", "item", {"role": "semantic"}, "semantic_no_text"),
    ("notes", "cents", {"tolerance": 50}, "tolerance_too_large"),
    ("orders", "amount", {"tolerance": 1}, "tolerance_too_large"),
)


@pytest.mark.parametrize(("table", "column", "change", "rule"), LOOSE)
def test_what_can_be_right_or_wrong_is_not_forgiven(
    cache: Cache, judge: Judge, table: str, column: str, change: dict[str, Any], rule: str
) -> None:
    document = worldkit.shop()
    document["tables"][table]["columns"][column] = document["tables"][table]["columns"][column] | change
    verdict = judge(world_bench.candidate(cache, document))
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, rule)
    assert verdict.findings[0].where == f"table {table}, column {column}"


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\U000e0041", "\x07"])
def test_what_people_do_not_see_has_no_place_in_a_text(cache: Cache, judge: Judge, hidden: str) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop(), instruction=worldkit.INSTRUCTION + hidden))
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "unseen_characters")
    joined = worldkit.INSTRUCTION + " \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert judge(world_bench.candidate(cache, worldkit.shop(), instruction=joined)).status is VerdictStatus.PASS


def test_a_row_whose_text_reads_backwards_is_found(cache: Cache, judge: Judge) -> None:
    document = worldkit.shop()
    document["rows"]["stock"].append(["lamp\u202e", 49, 31, 1.25])
    assert "unseen_characters" in rules(judge(world_bench.candidate(cache, document)))


def test_a_hint_stays_out_of_the_instruction(cache: Cache, judge: Judge) -> None:
    hint = "Remember that a lamp costs forty-nine, so the note says one hundred and ninety-six."
    good = world_bench.candidate(cache, worldkit.shop(), hint=hint)
    assert judge(good).status is VerdictStatus.PASS
    told = good.model_copy(update={"instruction": f"{worldkit.INSTRUCTION} {hint.upper()}"})
    verdict = judge(told)
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "hint_in_instruction")


def test_a_world_that_takes_too_much_to_copy_is_none(cache: Cache, judge: Judge) -> None:
    document = worldkit.shop()
    document["rows"]["notes"] = [[number, "x" * 100_000, 1.0] for number in range(90)]
    verdict = judge(world_bench.candidate(cache, document))
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "world_too_large")


@pytest.mark.parametrize("name", ["json_each", "json_tree", "trace", "initial"])
def test_no_table_takes_the_place_of_what_grading_reads(name: str) -> None:
    document = worldkit.shop()
    document["tables"][name] = {"columns": {"a": {"type": "integer"}}}
    with pytest.raises(ValidationError, match="taken by grading or by SQLite"):
        World.model_validate(document)


EVERY = (
    ("UPDATE stock SET price = :cents", {"effect_on_every_row"}),
    ("UPDATE OR IGNORE stock SET price = (SELECT :cents FROM state WHERE day = 0)", {"effect_on_every_row"}),
    ("DELETE FROM stock RETURNING item", {"effect_on_every_row"}),
    ("UPDATE stock SET price = :cents WHERE price > :cents", set()),
    ("UPDATE state SET money = :cents", set()),
)


@pytest.mark.parametrize(("effect", "found"), EVERY)
def test_an_effect_says_which_rows_it_means(cache: Cache, judge: Judge, effect: str, found: set[str]) -> None:
    cents = {"cents": {"type": "integer", "doc": "How much."}}
    document = tool(kind="write", parameters=cents, effects=[effect])
    assert rules(judge(world_bench.candidate(cache, document))) - {"parameter_unused"} == found
    document = tool(kind="clock", parameters=cents, effects=[effect])
    assert judge(world_bench.candidate(cache, document)).status is VerdictStatus.PASS
