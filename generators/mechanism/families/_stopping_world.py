"""The world of `stopping` in neutral names; by rank, a lower number is good and a study takes no day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envsynth.generators.mechanism.contract import Presentation
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool


class Terms(NamedTuple):
    """What the tools' SQL depends on."""

    looks: int
    lots: int
    grades: int
    """0: by rank."""
    look_cost: int
    study_cost: int
    studies: int

    @property
    def by_rank(self) -> bool:
        """Whether a lower number is a better offer, and a study takes no day."""
        return self.grades == 0


def _columns(*names: str, key: str = "") -> Iterator[Column]:
    for name in names:
        yield Column(name=name, type="integer", role="key" if name == key else "hard")


def tables(presentation: Presentation) -> tuple[Table, ...]:
    """Tape, truth and what has happened."""
    hidden = presentation is not Presentation.REVEALED
    return (
        Table(name="state", columns=tuple(_columns("day", "lots_left", "offer", "closed", "studies", "spent"))),
        Table(name="heard", columns=tuple(_columns("day", "shown", key="day"))),
        Table(name="sales", columns=tuple(_columns("day", key="day"))),
        Table(name="notes", columns=tuple(_columns("id", "study_no", "found", key="id"))),
        Table(name="bars", columns=tuple(_columns("id", "day", "lots", key="id"))),
        Table(name="theta", hidden=hidden, columns=tuple(_columns("truth"))),
        Table(name="tape", hidden=True, columns=tuple(_columns("day", "shown", "pays", key="day"))),
        Table(name="past", hidden=True, columns=tuple(_columns("study_no", "found"))),
    )


_HEAR = (
    "INSERT INTO heard(day, shown) SELECT tape.day, tape.shown FROM tape JOIN state ON tape.day = state.day"
    " WHERE NOT EXISTS (SELECT 1 FROM heard WHERE heard.day = state.day)",
    "UPDATE state SET offer = EXISTS (SELECT 1 FROM heard WHERE heard.day = state.day),"
    " closed = NOT EXISTS (SELECT 1 FROM heard WHERE heard.day = state.day)",
)
_SOLD = "UPDATE state SET lots_left = lots_left - 1, offer = 0"


def tools(terms: Terms, presentation: Presentation) -> tuple[Tool, ...]:
    """One day at a time."""
    more = Guard(sql=f"SELECT day < {terms.looks} FROM state", error="there is no {day_word} left")
    day_passes = f"UPDATE state SET day = day + 1, offer = 0, spent = spent + {terms.look_cost}"
    studied = f"offer = 0, studies = studies + 1, spent = spent + {terms.study_cost}"
    few = Guard(sql=f"SELECT studies < {terms.studies} FROM state", error="no further {study_word} is to be had")
    found = [
        Tool(name="status", kind="read", shape="row",
             result="SELECT day, offer, lots_left, studies, spent, closed FROM state"),
        Tool(name="look", kind="clock", guards=(more,), effects=(day_passes, *_HEAR), shape="row",
             result="SELECT state.day AS day, heard.shown AS shown, closed, spent FROM state"
                    " LEFT JOIN heard ON heard.day = state.day"),
        Tool(name="accept", kind="write", shape="row",
             guards=(Guard(sql="SELECT offer FROM state", error="there is no {offer_word} in hand to accept"),),
             effects=("INSERT INTO sales(day) SELECT day FROM state", _SOLD),
             result="SELECT day, lots_left, spent FROM state"),
        Tool(name="study", kind="clock",
             guards=(few,) if terms.by_rank else (more, few),
             effects=(
                 f"UPDATE state SET {studied}" if terms.by_rank else f"UPDATE state SET day = day + 1, {studied}",
                 "INSERT INTO notes(study_no, found) SELECT past.study_no, past.found FROM past"
                 " JOIN state ON state.studies = past.study_no ORDER BY past.found",
             ),
             result="SELECT study_no, found FROM notes WHERE study_no = (SELECT studies FROM state) ORDER BY id"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        found.append(Tool(name="market", kind="read", shape="row", result="SELECT truth FROM theta"))
    return tuple(found)


def plan_tools(terms: Terms) -> tuple[Tool, ...]:
    """Rows in order of days: a row counts where its day is the next and its lots are those left."""
    top = terms.looks if terms.by_rank else terms.grades
    fields = (
        Parameter(name="day", type="integer", minimum=1, maximum=terms.looks),
        Parameter(name="lots", type="integer", minimum=1, maximum=terms.lots),
        Parameter(name="bar", type="integer", minimum=0, maximum=top),
    )
    in_order = Guard(
        sql="SELECT NOT EXISTS (SELECT 1 FROM bars WHERE day > :day OR day = :day AND lots = :lots)",
        error="the rows must be in the order of `{day}`, with no two for the same `{day}` and `{lots}`",
    )
    good = "heard.shown <= :bar" if terms.by_rank else "heard.shown >= :bar"
    now = "state.day = :day AND state.lots_left = :lots AND NOT state.closed"
    effects = (
        "INSERT INTO bars(day, lots) VALUES (:day, :lots)",
        f"UPDATE state SET day = :day, offer = 0, spent = spent + {terms.look_cost}"
        " WHERE day = :day - 1 AND lots_left = :lots AND NOT closed",
        *(f"{effect} WHERE {now}" if effect.startswith("UPDATE") else f"{effect} AND {now}" for effect in _HEAR),
        "INSERT INTO sales(day) SELECT heard.day FROM state JOIN heard ON heard.day = state.day"
        f" WHERE {now} AND state.offer AND {good}",
        f"{_SOLD} WHERE offer AND EXISTS (SELECT 1 FROM sales WHERE sales.day = state.day)",
    )
    plan = Parameter(name="plan", type="string")
    each = Each(parameter="plan", fields=fields, maximum=terms.looks * terms.lots)
    return (Tool(name="submit", kind="submit", parameters=(plan,), each=each, guards=(in_order,), effects=effects),)
