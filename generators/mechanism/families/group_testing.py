"""`group_testing`: rows of items, some faulty; pooled tests of neighbours, then a mark for every item."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._group_testing_solver import (
    Run,
    Terms,
    Tree,
    best_marks,
    best_tree,
    prior,
    worth,
)
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World

_OF = 20
"""Chances are multiples of 1/20, so that they are stated exactly."""
_RISKS = (1, 3, 8)
"""Risks that an item can have, each as likely as the others, in twentieths."""
_TIGHT = (0.35, 0.65)
"""Where a draw's default must lie in expectation, so that what one tape realises lies in the band as a rule."""


class _Size(NamedTuple):
    items: int
    tests: int
    alarm: int
    """In twentieths."""
    miss: int


_SIZES = {
    1: _Size(4, 2, 0, 0),
    2: _Size(5, 3, 0, 0),
    3: _Size(6, 3, 0, 0),
    4: _Size(6, 3, 1, 1),
    5: _Size(6, 3, 2, 2),
}
_ROWS = 5


@dataclass(frozen=True)
class Rows:
    """Parameters."""

    risks: tuple[tuple[int, ...], ...]
    """By row and item: chance of a fault, in twentieths."""
    claims: tuple[tuple[int, ...], ...]
    """What is said of `risks`."""
    tests: int
    """Most tests of a row."""
    alarm: int
    miss: int
    gain: int
    """Minor units for a sound item that is passed."""
    loss: int
    """Minor units lost with a faulty one that is passed."""
    price: int
    """Minor units of one test."""

    @property
    def items(self) -> int:
        """Length of a row."""
        return len(self.risks[0])

    @property
    def terms(self) -> Terms:
        """As the solver has them."""
        return Terms(self.loss / self.gain, self.price / self.gain, self.tests, self.alarm / _OF, self.miss / _OF)


@dataclass(frozen=True)
class Faults:
    """Tape."""

    faulty: tuple[tuple[int, ...], ...]
    """By row and item."""
    alarms: tuple[tuple[int, ...], ...]
    """By row and number of the test: whether it hits where all is sound."""
    misses: tuple[tuple[int, ...], ...]
    """By row and number of the test: whether it is clear where something is faulty."""


class GroupTestingFamily(Family[Rows, Faults]):
    """Adaptive group testing of several rows, exact at levels 1 to 3 and noisy above.

    Hidden are the items' risks. `bayes` is exact under the stated prior, by which every risk is equally likely and
    independent of the others: a single row tells nothing of another, so that each item is as likely faulty as any.
    """

    name: ClassVar[str] = "group_testing"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Adaptive group testing"
    kin: ClassVar[str] = "search"
    sources: ClassVar[tuple[str, ...]] = (
        "Dorfman 1943, The detection of defective members of large populations",
        "Sobel and Groll 1959, Group testing to eliminate efficiently all defectives in a binomial sample",
    )
    band: ClassVar[tuple[float, float]] = (0.1, 0.9)

    def sample(self, level: int, rng: Random, unit: int) -> Rows:
        """Risks by the prior; drawn again until the default, misled by claims, is worth beating."""
        while True:
            found = _draw(_SIZES[level], rng, unit)
            default, bayes = (
                sum(_worth(found, number, tree) for number, tree in enumerate(trees))
                for trees in (_default_trees(found), _bayes_trees(found))
            )
            if bayes > 0 and _TIGHT[0] <= default / bayes <= _TIGHT[1]:
                return found

    def tape(self, parameters: Rows, rng: Random) -> Faults:
        """Faults of every item, and errors of every test that may be made."""
        faulty = tuple(tuple(int(rng.randrange(_OF) < risk) for risk in row) for row in parameters.risks)
        alarms, misses = (
            tuple(tuple(int(rng.randrange(_OF) < chance) for _ in range(parameters.tests)) for _ in faulty)
            for chance in (parameters.alarm, parameters.miss)
        )
        return Faults(faulty, alarms, misses)

    def labels(self, parameters: Rows) -> int:
        """One a row."""
        return len(parameters.risks)

    def variant(self, parameters: Rows) -> str:
        """Tests that err are told of apart."""
        return "noisy" if parameters.alarm or parameters.miss else ""

    def world(self, parameters: Rows, tape: Faults, look: Look) -> World:
        """Interactive: `status`, `probe`, `decide`; `risks` where revealed. Written: `submit` with trees."""
        written = look.presentation is Presentation.WRITTEN
        rows = range(1, len(parameters.risks) + 1)
        spots = [(row, item) for row in rows for item in range(parameters.items)]
        return World(
            id="group-testing",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((1, 1, 0, 0),),
                "batches": tuple((row, look.labels[row - 1]) for row in rows),
                "items": tuple((row, item, parameters.claims[row - 1][item] / _OF) for row, item in spots),
                "theta": tuple((row, item, parameters.risks[row - 1][item] / _OF) for row, item in spots),
                "tape": tuple((row, item, tape.faulty[row - 1][item]) for row, item in spots),
                "noise": tuple(
                    (row, test + 1, tape.alarms[row - 1][test], tape.misses[row - 1][test])
                    for row in rows
                    for test in range(parameters.tests)
                ),
            },
            tools=_plan_tools(parameters) if written else _tools(parameters, look),
            over=f"SELECT batch > {len(parameters.risks)} FROM state",
        )

    def utility(self, parameters: Rows) -> str:
        """Gains and losses with what was passed, less the price of tests."""
        return "SELECT earned - spent FROM state"

    def policies(self, parameters: Rows, presentation: Presentation) -> Mapping[str, Policy]:
        """The default tests both halves, and where one hits holds back the item of the highest claimed risk."""
        found = {
            "oracle": _policy(_oracle_trees(parameters), presentation),
            "default": _policy(_default_trees(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN:
            found["bayes"] = _policy(_bayes_trees(parameters), presentation)
        return found

    def attacks(self, parameters: Rows, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Pass by the claims alone; pass everything; test everything at once; test the worst claims one by one."""
        trees: dict[str, list[Tree]] = {
            "no_probing": [_by_claims(parameters, claims) for claims in parameters.claims],
            "constant": [{1: "1" * parameters.items}] * len(parameters.claims),
            "greedy": [_singly(parameters, claims) for claims in parameters.claims],
            "all_at_once": [_whole(parameters)] * len(parameters.claims),
        }
        return {name: _policy(rows, presentation) for name, rows in trees.items()}

    def solved(self, parameters: Rows, tape: Faults) -> float:
        """The oracle's trees on the tape."""
        total = 0
        for number, tree in enumerate(_oracle_trees(parameters)):
            node, faulty = 1, tape.faulty[number]
            while isinstance(act := tree[node], Run):
                test = node.bit_length() - 1
                touched = any(faulty[act.head : act.tail + 1])
                hit = 1 - tape.misses[number][test] if touched else tape.alarms[number][test]
                total, node = total - parameters.price, 2 * node + hit
            for mark, fault in zip(act, faulty, strict=True):
                if mark == "1":
                    total += -parameters.loss if fault else parameters.gain
        return float(total)

    def expected(self, parameters: Rows) -> Mapping[str, float]:
        """Given the risks; exact for all."""
        chosen = {
            "oracle": _oracle_trees(parameters),
            "bayes": _bayes_trees(parameters),
            "default": _default_trees(parameters),
        }
        found = {
            name: parameters.gain * sum(_worth(parameters, number, tree) for number, tree in enumerate(trees))
            for name, trees in chosen.items()
        }
        return {**found, "idle": 0.0}

    def hindsight(self, parameters: Rows, tape: Faults) -> float:
        """Pass every sound item, without a test."""
        return float(parameters.gain * sum(row.count(0) for row in tape.faulty))

    def facts(self, parameters: Rows, presentation: Presentation) -> Mapping[str, Fact]:
        """Everything but the risks; in `written` those too."""
        heads = ("batch", *(f"{{item_word}} {item}" for item in range(parameters.items)))

        def table(chances: Sequence[Sequence[int]]) -> Grid:
            return Grid(heads, tuple((row, *(one / _OF for one in line)) for row, line in enumerate(chances, 1)))

        facts: dict[str, Fact] = {
            "row_count": len(parameters.risks), "length": parameters.items, "last_item": parameters.items - 1,
            "most_tests": parameters.tests, "gain": parameters.gain, "loss": parameters.loss, "price": parameters.price,
            "alarm_chance": parameters.alarm / _OF, "miss_chance": parameters.miss / _OF,
            "risk_levels": " or ".join(str(risk / _OF) for risk in _RISKS), "claim_table": table(parameters.claims),
            "half": (parameters.items + 1) // 2 - 1, "all_pass": "1" * parameters.items,
            "all_held": "0" * parameters.items, "last_node": 2**parameters.tests - 1,
        }  # fmt: skip
        if presentation is Presentation.WRITTEN:
            facts["risk_table"] = table(parameters.risks)
        return facts

    def turns(self, parameters: Rows, presentation: Presentation) -> int:
        """Every test and decision, and a look at the state before each."""
        return 5 if presentation is Presentation.WRITTEN else 2 * len(parameters.risks) * (parameters.tests + 1) + 10


def _draw(size: _Size, rng: Random, unit: int) -> Rows:
    def chances() -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(rng.choice(_RISKS) for _ in range(size.items)) for _ in range(_ROWS))

    step = unit * rng.randint(1, 3)
    return Rows(
        risks=chances(), claims=chances(), tests=size.tests, alarm=size.alarm, miss=size.miss,
        gain=10 * step, loss=step * rng.randint(20, 35), price=step * rng.randint(2, 4),
    )  # fmt: skip


def _worth(parameters: Rows, number: int, tree: Tree) -> float:
    return worth(tree, [risk / _OF for risk in parameters.risks[number]], parameters.terms)


def _oracle_trees(parameters: Rows) -> list[Tree]:
    return [best_tree(tuple(risk / _OF for risk in row), parameters.terms) for row in parameters.risks]


def _bayes_trees(parameters: Rows) -> list[Tree]:
    mean = sum(_RISKS) / len(_RISKS) / _OF
    return [best_tree((mean,) * parameters.items, parameters.terms)] * len(parameters.risks)


def _default_trees(parameters: Rows) -> list[Tree]:
    return [_halves(parameters, claims) for claims in parameters.claims]


def _halves(parameters: Rows, claims: Sequence[int]) -> Tree:
    """Test one half and the other; hold the worst claim of a half that hits."""
    items = range(parameters.items)
    middle = (parameters.items + 1) // 2
    tree: dict[int, Run | str] = {1: Run(0, middle - 1)}
    for first in (0, 1):
        tree[2 + first] = Run(middle, parameters.items - 1)
        for second in (0, 1):
            held = {max(items[:middle], key=claims.__getitem__)} if first else set()
            held |= {max(items[middle:], key=claims.__getitem__)} if second else set()
            tree[4 + 2 * first + second] = "".join("0" if item in held else "1" for item in items)
    return tree


def _by_claims(parameters: Rows, claims: Sequence[int]) -> Tree:
    return {1: best_marks(prior([claim / _OF for claim in claims]), parameters.terms)}


def _singly(parameters: Rows, claims: Sequence[int]) -> Tree:
    """Test the worst claims each on its own; hold what hits."""
    worst = sorted(range(parameters.items), key=lambda item: (-claims[item], item))[: parameters.tests]
    tree: dict[int, Run | str] = {}
    for depth in range(parameters.tests + 1):
        for node in range(2**depth, 2 ** (depth + 1)):
            if depth < parameters.tests:
                tree[node] = Run(worst[depth], worst[depth])
                continue
            held = {worst[step] for step in range(depth) if node >> (depth - 1 - step) & 1}
            tree[node] = "".join("0" if item in held else "1" for item in range(parameters.items))
    return tree


def _whole(parameters: Rows) -> Tree:
    return {1: Run(0, parameters.items - 1), 2: "1" * parameters.items, 3: "0" * parameters.items}


def _policy(trees: Sequence[Tree], presentation: Presentation) -> Policy:
    def rows() -> Iterator[dict[str, int | str]]:
        for batch, tree in enumerate(trees, 1):
            for node, act in sorted(tree.items()):
                spot: dict[str, int | str] = {"batch": batch, "node": node}
                yield {**spot, "marks": act} if isinstance(act, str) else {**spot, **act._asdict()}

    def play(player: Player) -> None:
        if presentation is Presentation.WRITTEN:
            player.call("submit", plan=json.dumps(list(rows())))
            return
        for tree in trees:
            node = 1
            while isinstance(act := tree[node], Run):
                node = 2 * node + player.call("probe", head=act.head, tail=act.tail)["hit"]
            player.call("decide", marks=act)

    return play


def _columns(*names: str, keys: Sequence[str] = ()) -> Iterator[Column]:
    for name in names:
        yield Column(name=name, type="integer", role="key" if name in keys else "hard")


def _chance(name: str) -> Column:
    return Column(name=name, type="real", decimals=2)


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    hidden = presentation is not Presentation.REVEALED
    spot, test = ("batch", "item"), ("batch", "turn")
    return (
        Table(name="state", columns=tuple(_columns("batch", "node", "earned", "spent"))),
        Table(name="batches", columns=(*_columns("batch", keys=spot), Column(name="label", type="text"))),
        Table(name="items", columns=(*_columns(*spot, keys=spot), _chance("claimed"))),
        Table(name="tests", columns=tuple(_columns("id", "batch", "node", "head", "tail", "hit", keys=["id"]))),
        Table(name="verdicts", columns=tuple(_columns(*spot, "passed", keys=spot))),
        Table(name="steps", columns=tuple(_columns("batch", "node", keys=["batch", "node"]))),
        Table(name="theta", hidden=hidden, columns=(*_columns(*spot, keys=spot), _chance("risk"))),
        Table(name="tape", hidden=True, columns=tuple(_columns(*spot, "faulty", keys=spot))),
        Table(name="noise", hidden=True, columns=tuple(_columns(*test, "alarm", "miss", keys=test))),
    )


# The number of the test follows from the node: node 1 is before the first, 2 and 3 before the second, 4 to 7 the third.
_TURN = "CASE WHEN state.node < 2 THEN 1 WHEN state.node < 4 THEN 2 ELSE 3 END"


def _test(price: int, *, now: str) -> tuple[str, ...]:
    """Statements of a test of `:head` to `:tail`, where the state fits."""
    among = "tape.batch = state.batch AND tape.item BETWEEN :head AND :tail"
    touched = f"EXISTS (SELECT 1 FROM tape WHERE {among} AND tape.faulty)"
    return (
        "INSERT INTO tests(batch, node, head, tail, hit) SELECT state.batch, state.node, :head, :tail,"
        f" CASE WHEN {touched} THEN 1 - noise.miss ELSE noise.alarm END FROM state"
        f" JOIN noise ON noise.batch = state.batch AND noise.turn = {_TURN} WHERE {now}",
        f"UPDATE state SET spent = spent + {price}, node = 2 * node"
        f" + (SELECT tests.hit FROM tests ORDER BY tests.id DESC LIMIT 1) WHERE {now}",
    )


def _decide(parameters: Rows, *, now: str) -> tuple[str, ...]:
    """Statements that pass the items marked in `:marks`, where the state fits."""
    worth_of = f"CASE WHEN tape.faulty THEN -{parameters.loss} ELSE {parameters.gain} END"
    return (
        "INSERT INTO verdicts(batch, item, passed) SELECT tape.batch, tape.item,"
        " substr(:marks, tape.item + 1, 1) = '1' FROM tape JOIN state ON state.batch = tape.batch"
        f" WHERE {now} ORDER BY tape.item",
        "UPDATE state SET earned = earned + coalesce((SELECT sum("
        f"{worth_of}) FROM tape JOIN verdicts ON verdicts.batch = tape.batch AND verdicts.item = tape.item"
        f" WHERE tape.batch = state.batch AND verdicts.passed), 0), batch = batch + 1, node = 1 WHERE {now}",
    )


def _fields(parameters: Rows, *, required: bool) -> tuple[Parameter, Parameter, Parameter]:
    last, length = parameters.items - 1, parameters.items
    return (
        Parameter(name="head", type="integer", minimum=0, maximum=last, required=required),
        Parameter(name="tail", type="integer", minimum=0, maximum=last, required=required),
        Parameter(name="marks", type="string", min_length=length, max_length=length, required=required),
    )


_MARKED = "`{marks}` must be made of 0 and 1"
_ORDERED = "`{head}` must not be greater than `{tail}`"


def _tools(parameters: Rows, look: Look) -> tuple[Tool, ...]:
    head, tail, marks = _fields(parameters, required=True)
    left = Guard(sql=f"SELECT batch <= {len(parameters.risks)} FROM state", error="every {row_word} has been decided")
    few = Guard(
        sql=f"SELECT node < {2**parameters.tests} FROM state",
        error="no further {test_word} is allowed in this {row_word}",
    )
    tools = [
        Tool(name="status", kind="read",
             result="SELECT state.batch AS batch, label, item, claimed, earned, spent FROM state"
                    " JOIN items ON items.batch = state.batch"
                    " JOIN batches ON batches.batch = state.batch ORDER BY item"),
        Tool(name="history", kind="read", result="SELECT id, batch, head, tail, hit FROM tests ORDER BY id"),
        Tool(name="probe", kind="write", parameters=(head, tail), shape="row",
             guards=(left, few, Guard(sql="SELECT :head <= :tail", error=_ORDERED)),
             effects=_test(parameters.price, now="1"),
             result="SELECT tests.batch AS batch, head, tail, hit, spent FROM tests CROSS JOIN state"
                    " ORDER BY id DESC LIMIT 1"),
        Tool(name="decide", kind="clock", parameters=(marks,), shape="row",
             guards=(left, Guard(sql="SELECT trim(:marks, '01') = ''", error=_MARKED)),
             effects=_decide(parameters, now="1"), result="SELECT batch, earned, spent FROM state"),
    ]  # fmt: skip
    if look.presentation is Presentation.REVEALED:
        tools.append(Tool(name="risks", kind="read", result="SELECT batch, item, risk FROM theta ORDER BY batch, item"))
    return tuple(tools)


def _plan_tools(parameters: Rows) -> tuple[Tool, ...]:
    """Rows of a tree for every batch; a row counts where the results lead to its node."""
    head, tail, marks = _fields(parameters, required=False)
    fields = (
        Parameter(name="batch", type="integer", minimum=1, maximum=len(parameters.risks)),
        Parameter(name="node", type="integer", minimum=1, maximum=2 ** (parameters.tests + 1) - 1),
        head, tail, marks,
    )  # fmt: skip
    guards = (
        Guard(
            sql="SELECT NOT EXISTS (SELECT 1 FROM steps WHERE batch > :batch OR batch = :batch AND node >= :node)",
            error="the rows must be in the order of `{batch}`, and within one in the order of `{node}`",
        ),
        Guard(
            sql="SELECT (:marks IS NULL) = (:head IS NOT NULL) AND (:head IS NULL) = (:tail IS NULL)",
            error="a row has either `{marks}`, or both `{head}` and `{tail}`",
        ),
        Guard(sql="SELECT :marks IS NULL OR trim(:marks, '01') = ''", error=_MARKED),
        Guard(sql="SELECT :head IS NULL OR :head <= :tail", error=_ORDERED),
        Guard(
            sql=f"SELECT :head IS NULL OR :node < {2**parameters.tests}",
            error="no further {test_word} is allowed at this `{node}`",
        ),
    )
    here = "state.batch = :batch AND state.node = :node"
    effects = (
        "INSERT INTO steps(batch, node) VALUES (:batch, :node)",
        *_test(parameters.price, now=f"{here} AND :head IS NOT NULL"),
        *_decide(parameters, now=f"{here} AND :marks IS NOT NULL"),
    )
    plan = Parameter(name="plan", type="string")
    most = len(parameters.risks) * (2 ** (parameters.tests + 1) - 1)
    each = Each(parameter="plan", fields=fields, maximum=most)
    return (Tool(name="submit", kind="submit", parameters=(plan,), each=each, guards=guards, effects=effects),)
