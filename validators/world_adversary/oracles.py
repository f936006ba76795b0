"""Calls that tell what is hidden before its time: found by making them with the hidden rows changed.

A hidden row is told by a call when another row in its place would have shown something else. That is the game where
the row no longer matters afterwards (today's demand, as today ends), and where the call spends something (a probe). It
is foresight where the row still matters and the call is free, or where one call tells many such rows. What still
matters is found in the same way: the row is changed after the call, and the panel's own calls go on differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, product
from typing import NamedTuple

from envsynth.models import Candidate, Finding, Tool
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.authority import Connection
from envsynth.runtime.worlds.sqltext import tokens
from envsynth.validators.world_adversary.bench import Bench, Moment, Shown
from envsynth.validators.world_adversary.hidden_rows import STEPS, HiddenRow, hidden_rows
from envsynth.validators.world_static.program import Storage
from envsynth.validators.world_static.statements import prepare, statements
from envsynth.validators.worlds.opened import Opened
from envsynth.validators.worlds.target import Call, Target

MOST_TOLD = 4
"""Hidden rows that still matter and that one paid call may tell."""
MOST_FOUND = 10
"""Rows that one call tells; with so many found, no more are looked for."""
MAX_CALLS = 2
"""Accepted calls of one tool that are looked into."""
MAX_TRIED = 60
"""Calls of one tool that are tried for what refuses them."""
_GROUPS = 8
"""Of hidden rows that lie evenly apart; neighbours are in different ones."""
_LINES = 3
"""Trajectories of the panel that go on after a call."""
_BY_DATABASE = ("the call is not possible", "the call took too long", "the call has no result")

_FREE = (
    "it shows hidden {table} while the row still matters ({rows}), and costs nothing: have it spend what the outcome or"
    " a guard counts, or show the row only once it has taken effect"
)
_BULK = (
    "one call shows {number} or more rows of hidden {table} that still matter ({rows}): show each one only as it takes"
    " effect, or at most {most} a call"
)
_REFUSED = (
    "{call} was refused by the database and not by a guard, and what it does reads hidden {table}: a refusal is free"
    " and would tell it; refuse by a guard over visible columns, or let the call go through"
)


def oracle_findings(candidate: Candidate, open_: Opened, target: Target) -> Iterator[Finding]:
    """Free or wholesale looks at what is hidden, and refusals that depend on it; nothing where nothing is hidden."""
    if not open_.model.hidden:
        return
    touching = _touching(open_)
    lines = _lines(candidate)
    if not touching or not lines:
        return
    bench = Bench(candidate, open_)
    try:
        for tool, read, written in touching:
            bench.watch(written)
            yield from _Interrogation(tool, read, candidate, target, bench, lines).findings()
    finally:
        bench.close()


class _Touching(NamedTuple):
    """A tool whose effects touch something hidden."""

    tool: Tool
    read: str
    """The hidden table or column."""
    written: frozenset[str]
    """Tables that its effects write to."""


def _touching(open_: Opened) -> list[_Touching]:
    """The tools that agents act with and whose effects read or write something hidden."""
    connection = Connection(open_.model.hidden, lists=open_.model.lists)
    try:
        connection.load(open_.model.image)
        storage = Storage(connection, open_.model.document["tables"])
        read: dict[str, str] = {}
        written: dict[str, frozenset[str]] = {}
        for one in statements(open_.world):
            if one.kind != "effect" or one.tool is None or one.tool.kind == "submit":
                continue
            name, prepared = one.tool.name, prepare(connection, one)
            found = storage.hidden_read(prepared.program, open_.model.hidden)
            written[name] = written.get(name, frozenset()) | prepared.written
            if found:
                read.setdefault(name, found)
        return [_Touching(tool, read[tool.name], written[tool.name]) for tool in open_.world.tools if tool.name in read]
    finally:
        connection.sql.close()


def _lines(candidate: Candidate) -> list[tuple[Call, ...]]:
    """The reference, and the other trajectories that do most."""
    panel = {line.label: tuple((call.tool, call.arguments) for call in line.calls) for line in candidate.panel}
    reference = panel.pop("reference", ())
    others = sorted(panel.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return [reference, *(calls for _, calls in others[: _LINES - 1] if calls)] if reference else []


class _Interrogation:
    """One tool, called at the start, or half way where it takes no call at the start."""

    def __init__(
        self, tool: Tool, read: str, candidate: Candidate, target: Target, bench: Bench, lines: list[tuple[Call, ...]]
    ) -> None:
        self._tool, self._read, self._target, self._bench, self._lines = tool, read, target, bench, lines
        self._candidate = candidate
        self._known: tuple[Moment, Sequence[HiddenRow]] | None = None
        self._course: tuple[Moment, tuple[JSON, ...]] | None = None

    def findings(self) -> Iterator[Finding]:
        """The first of each kind."""
        found: dict[str, Finding] = {}
        reference = self._lines[0]
        for done in dict.fromkeys((0, len(reference) // 2)):
            moment = self._bench.after(reference[:done])
            accepted, refused = self._tried(moment, set(map(str, reference[:done])))
            if refused is not None:
                message = _REFUSED.format(call=str(refused[1])[:100], table=self._read)
                found.setdefault("refusal_tells_hidden", self._finding("refusal_tells_hidden", message))
            for call in accepted:
                for finding in self._of_call(moment, call, done):
                    found.setdefault(finding.rule, finding)
            if accepted:
                break
        yield from found.values()

    def _finding(self, rule: str, message: str) -> Finding:
        return Finding(rule=rule, message=message, where=f"tool {self._tool.name}")

    def _tried(self, moment: Moment, made: set[str]) -> tuple[list[Call], Call | None]:
        """A few calls that are accepted, the panel's first, and the first that the database itself refuses."""
        accepted: list[Call] = []
        refused: Call | None = None
        own = [call for line in self._lines for call in line if call[0] == self._tool.name]
        calls = {str(call): call for call in (*own, *self._target.calls(self._tool), *self._guesses())}
        for call, answer in self._bench.answers(moment, islice(calls.values(), MAX_TRIED)):
            if answer.ok and len(accepted) < MAX_CALLS and str(call) not in made:
                accepted.append(call)
            elif any(words in answer.error for words in _BY_DATABASE) and refused is None:
                refused = call
        return accepted, refused

    def _guesses(self) -> Iterator[Call]:
        """Calls whose arguments are hidden values, and sums of them, as a guesser would hit on."""
        tool = self._tool
        fields = tool.each.fields if tool.each else tool.parameters
        choices = [self._target.guesses(one, self._bench.secrets) for one in fields]
        for values in product(*choices):
            given: JSON = dict(zip((one.name for one in fields), values, strict=True))
            if tool.each is None:
                yield tool.name, given
            else:
                yield self._target.call(tool, "low", **{tool.each.parameter: json.dumps([given])})

    def _of_call(self, moment: Moment, call: Call, done: int) -> Iterator[Finding]:
        bench = self._bench
        shown = bench.shown(moment, call)
        if not _tells(bench, moment, call, shown, self._rows(moment)):
            return
        rest = [line[done:] if number == 0 else line for number, line in enumerate(self._lines)]
        # Where nothing is graded but what was asked for, to ask for a fact is the task.
        free = self._candidate.verifier.utility is not None and not self._spends(moment, call, rest[0])
        if not free and not _tells_much(bench, moment, call, shown, self._rows(moment)):
            return
        told = _told(bench, moment, call, shown, self._rows(moment))
        if not free and len(self._answers(moment, call, told)) <= MOST_TOLD:
            return
        later = bench.then(moment, call)
        mattering = [row for row in told if bench.matters(later, row, rest)]
        if not mattering:
            return
        texts = {"table": mattering[0].table, "rows": ", ".join(row.label for row in mattering[:3])}
        if free:
            yield self._finding("foresight_for_nothing", _FREE.format(**texts))
        number = len(self._answers(moment, call, mattering))
        if number > MOST_TOLD:
            message = _BULK.format(**texts, number=number, most=MOST_TOLD)
            yield self._finding("foresight_in_bulk", message)

    def _answers(self, moment: Moment, call: Call, rows: Sequence[HiddenRow]) -> set[str]:
        """The different things that a call would show if one row or another were different."""
        return {repr(self._bench.shown(moment.with_other([row], 0), call)) for row in rows}

    def _rows(self, moment: Moment) -> Sequence[HiddenRow]:
        if self._known is None or self._known[0] is not moment:
            self._known = (moment, hidden_rows(moment.image, self._bench.world))
        return self._known[1]

    def _spends(self, moment: Moment, call: Call, rest: Sequence[Call]) -> bool:
        """Whether a call takes anything: from what the rest of the reference comes to, or from what is counted."""
        bench = self._bench
        if self._tool.cost and self._candidate.budget.cost is not None:
            return True
        if self._course is None or self._course[0] is not moment:
            self._course = (moment, bench.course(moment, rest))
        if self._course[1] != bench.course(bench.then(moment, call), rest):
            return True
        changed = bench.changed_numbers(moment, call)
        for step in STEPS:
            changed &= bench.changed_numbers(moment.with_other(self._rows(moment), step), call)
        return any(column in self._counted for _, _, column, _, _ in changed)

    @cached_property
    def _counted(self) -> frozenset[str]:
        """Names that guards, the end and the verifier speak of."""
        world, verifier = self._bench.world, self._candidate.verifier
        texts = [world.over, *(guard.sql for tool in world.tools for guard in tool.guards)]
        texts += [check.sql for check in verifier.checks] + ([verifier.utility.sql] if verifier.utility else [])
        return frozenset(piece.text.strip('"`[]').lower() for text in texts for piece in tokens(text))


def _tells(bench: Bench, moment: Moment, call: Call, shown: Shown, rows: Sequence[HiddenRow]) -> bool:
    """Whether a call shows anything of some hidden rows."""
    return any(bench.shown(moment.with_other(rows, step), call) != shown for step in STEPS)


def _tells_much(bench: Bench, moment: Moment, call: Call, shown: Shown, rows: Sequence[HiddenRow]) -> bool:
    """Whether more than so many rows may be told: of a few groups with every so many rows, that most are."""
    silent = 0
    for first in range(_GROUPS):
        silent += not _tells(bench, moment, call, shown, rows[first::_GROUPS])
        if _GROUPS - silent <= MOST_TOLD:
            return False
    return True


def _told(bench: Bench, moment: Moment, call: Call, shown: Shown, rows: Sequence[HiddenRow]) -> list[HiddenRow]:
    """The hidden rows that a call shows something of, found by halving; not many more than may be told at once."""
    found: list[HiddenRow] = []
    left = [list(rows)] if rows else []
    while left and len(found) <= MOST_FOUND:
        group = left.pop()
        if not _tells(bench, moment, call, shown, group):
            continue
        if len(group) == 1:
            found += group
        else:
            left += [group[len(group) // 2 :], group[: len(group) // 2]]
    return found
