"""The `diff` check: the exact change that an episode must have made, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..contract import JSON
from .image import key_columns
from .states import Changed, Row, TableDiff, compared_columns

_UNCOMPARED = ("semantic", "exempt")


def diff_fault(check: JSON, diffs: Mapping[str, TableDiff], tables: Sequence[JSON], answer: Mapping[str, JSON]) -> str:
    """Why the change is not the expected one; empty when it is.

    Changes within a column's tolerance are none. The order is AppWorld's (arXiv:2407.18901): changed tables, counts,
    columns, values with tolerance, answer.

    Args:
        check: document of a `models.Check` of kind `diff`.
        diffs: what happened, by table.
        tables: documents of the world's tables.
        answer: what was submitted.
    """
    known = {table["name"]: table for table in tables}
    expected = check["expect"]
    diffs = {name: forgiven(known[name], diff) for name, diff in diffs.items()}
    for name, diff in diffs.items():
        if diff and name not in expected and not known[name]["tolerated"]:
            return f"the table {name} was changed"
    pairs = [(known[name], expected[name], diffs.get(name, TableDiff([], [], []))) for name in sorted(expected)]
    for fault in (_count_fault, _column_fault, _value_fault):
        for table, change, diff in pairs:
            found = fault(table, change, diff)
            if found:
                return f"{table['name']}: {found}"
    return _answer_fault(check["answer"], answer)


def forgiven(table: JSON, diff: TableDiff) -> TableDiff:
    """A difference without the changes of a row that its columns' tolerances forgive."""
    loose = {column["name"]: column["tolerance"] for column in table["columns"] if column["tolerance"]}
    if not loose or not diff.changed:
        return diff
    changed = []
    for one in diff.changed:
        same = [name for name in loose if equal(one.before[name], one.after[name], loose[name])]
        after = {**one.after, **{name: one.before[name] for name in same}}
        if after != one.before:
            changed.append(one._replace(after=after))
    return diff._replace(changed=changed)


def _count_fault(table: JSON, change: JSON, diff: TableDiff) -> str:
    for kind in ("added", "changed", "removed"):
        wanted, got = len(change[kind]), len(getattr(diff, kind))
        if wanted != got:
            return f"{got} rows {kind}, {wanted} expected"
    return ""


def _column_fault(table: JSON, change: JSON, diff: TableDiff) -> str:
    compared = {column["name"] for column in table["columns"] if column["role"] not in _UNCOMPARED}
    for wanted in change["changed"]:
        row = _of_key(wanted["key"], diff.changed)
        if row is None:
            return f"row {_named(wanted['key'])} was not changed"
        more = sorted((row.columns & compared) ^ (wanted["values"].keys() & compared))
        if more:
            return f"row {_named(wanted['key'])}: other columns changed than expected ({', '.join(more)})"
    return ""


def _value_fault(table: JSON, change: JSON, diff: TableDiff) -> str:
    columns = {column["name"]: column for column in table["columns"]}
    for wanted in change["changed"]:
        row = _of_key(wanted["key"], diff.changed)
        if row is None or not _matches(wanted["values"], row.after, columns):
            return f"row {_named(wanted['key'])} has other values than expected"
    if fault := _removal_fault(table, change["removed"], diff.removed):
        return fault
    if not _added_fit(change["added"], diff.added, columns):
        return "a new row has other values than expected"
    return ""


def _added_fit(wanted: Sequence[Row], rows: Sequence[Row], columns: Mapping[str, JSON]) -> bool:
    names = {name for line in wanted for name in line if columns[name]["role"] not in _UNCOMPARED}
    if all(names <= line.keys() for line in wanted) and not any(columns[name]["tolerance"] for name in names):
        # Nothing is left to choose: equal numbers of equal rows, however many there are.
        return Counter(_said(line, names) for line in wanted) == Counter(_said(row, names) for row in rows)
    return _matching(wanted, rows, lambda line, row: _matches(line, row, columns))


def _said(row: Row, names: Iterable[str]) -> tuple[tuple[str, JSON], ...]:
    """Values of some columns, told apart as `equal` does it."""
    return tuple((name, (isinstance(row.get(name), str), row.get(name))) for name in sorted(names))


def _removal_fault(table: JSON, wanted: Sequence[JSON], removed: Sequence[Row]) -> str:
    keys = key_columns(table)
    if not compared_columns(table):
        # Its rows say nothing that could be compared, and how many are gone was asked before.
        return ""
    if not keys:
        # What stood there before the episode is known to the last column, free texts too.
        known = _matching(wanted, removed, lambda line, row: isinstance(line, Mapping) and _says(line, row))
        return "" if known else "another row than expected was removed"
    gone = [[row[name] for name in keys] for row in removed]
    missing = next((key for key in wanted if not any(_same_key(key, found) for found in gone)), None)
    return "" if missing is None else f"row {_named(missing)} was not removed"


def _says(wanted: Row, row: Row) -> bool:
    """Whether a row has all the values of a description that names at least one."""
    return bool(wanted) and all(name in row and equal(value, row[name]) for name, value in wanted.items())


def _matching(wanted: Sequence[Row], rows: Sequence[Row], fits: Callable[[Row, Row], bool]) -> bool:
    """Whether every expected row can have a row of its own; equal numbers of both."""
    partner: dict[int, int] = {}

    def place(number: int, seen: set[int]) -> bool:
        for index, row in enumerate(rows):
            if index not in seen and fits(wanted[number], row):
                seen.add(index)
                if index not in partner or place(partner[index], seen):
                    partner[index] = number
                    return True
        return False

    return all(place(number, set()) for number in range(len(wanted)))


def _matches(wanted: Row, row: Row, columns: Mapping[str, JSON]) -> bool:
    return all(
        columns[name]["role"] in _UNCOMPARED or equal(value, row.get(name), columns[name]["tolerance"])
        for name, value in wanted.items()
    )


def equal(wanted: JSON, got: JSON, tolerance: float = 0.0) -> bool:
    """Whether two values are the same: 25 and 25.0 are, 25 and "25" are not."""
    if isinstance(wanted, bool) or isinstance(got, bool):
        wanted, got = _number(wanted), _number(got)
    if isinstance(wanted, int | float) and isinstance(got, int | float):
        return wanted == got or abs(wanted - got) <= tolerance
    return type(wanted) is type(got) and bool(wanted == got)


def _number(value: JSON) -> JSON:
    return int(value) if isinstance(value, bool) else value


def _of_key(key: Sequence[JSON], rows: Sequence[Changed]) -> Changed | None:
    return next((row for row in rows if _same_key(key, row.key)), None)


def _same_key(wanted: Sequence[JSON], got: Sequence[JSON]) -> bool:
    """Keys of documents written by hand may be texts of numbers, because JSON objects have no other keys."""
    return len(wanted) == len(got) and all(
        equal(left, right) or (isinstance(left, str) and not isinstance(right, str) and left == str(right))
        for left, right in zip(wanted, got, strict=True)
    )


def _named(key: Sequence[JSON]) -> str:
    return ", ".join(map(str, key))


def _answer_fault(wanted: JSON, got: Mapping[str, JSON]) -> str:
    if wanted is None:
        return ""
    if wanted.keys() != got.keys():
        return f"the answer has {', '.join(sorted(got)) or 'nothing'} where {', '.join(sorted(wanted))} is expected"
    wrong = sorted(name for name, value in wanted.items() if not equal(value, got[name], 1e-9))
    return f"the answer is wrong in {', '.join(wrong)}" if wrong else ""
