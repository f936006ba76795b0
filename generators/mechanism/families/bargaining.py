"""`bargaining`: asks to buyers who concede up to a hidden limit, one after the other, in few rounds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from random import Random
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._bargaining_solver import (
    Buyer,
    Chooser,
    Known,
    Move,
    Terms,
    best_in_hindsight,
    expected_gain,
    known_talks,
    unknown_talks,
)
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World


class _Size(NamedTuple):
    buyers: int
    rounds: int
    limits: int
    styles: int


_SIZES = {
    1: _Size(2, 5, 3, 2),
    2: _Size(2, 7, 3, 3),
    3: _Size(3, 9, 3, 3),
    4: _Size(3, 11, 4, 3),
    5: _Size(4, 13, 4, 4),
}
_TIGHT = {1: (0.36, 0.55), 2: (0.33, 0.5), 3: (0.3, 0.46), 4: (0.26, 0.4), 5: (0.2, 0.34)}
"""Where a draw's default must lie in expectation, on average over what may be true, by level."""
_EVERY = (0.15, 0.8)
"""Where it must lie whatever is true."""
_TRUTHS = 81
"""Sets of curves that a draw is tried on: all there may be, or so many by lot."""
_CLAIMED = (30, 95)
"""How much of the way from its opening bid to the lowest of its possible limits a buyer claims, in percent."""
_BOWS = (0.25, 0.5, 1.0, 2.0)
"""Exponents of time-dependent concession: below 1 late (Boulware), above 1 early (Faratin et al. 1998)."""


@dataclass(frozen=True)
class Bargaining:
    """Parameters; money in units of `unit` minor units."""

    terms: Terms
    kinds: tuple[int, ...]
    """Which of its possible curves each buyer has."""
    claims: tuple[int, ...]
    """The limit that each says it has; below all that are listed, so that it suits each of them alike."""
    unit: int


@dataclass(frozen=True)
class Breaks:
    """Tape: whether the k-th refusal of a buyer ends the talks, by buyer."""

    broken: tuple[tuple[int, ...], ...]


class BargainingFamily(Family[Bargaining, Breaks]):
    """One-sided asks against coded opponents with hidden limit and manner, under breakdown risk and a common deadline.

    Limit and manner of every buyer are drawn evenly from what is listed, independently, after all that is told,
    claims among it. `bayes` is exact: the prior is that law; what was bid and refused leaves a set of possible curves,
    and the programme runs over buyer, refusals, rounds left and that set.
    """

    name: ClassVar[str] = "bargaining"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Bargaining with conceding opponents before a deadline"
    kin: ClassVar[str] = "negotiation"
    band: ClassVar[tuple[float, float]] = (0.1, 0.9)
    sources: ClassVar[tuple[str, ...]] = (
        "Rubinstein 1982, Perfect equilibrium in a bargaining model",
        "Stahl 1972, Bargaining theory",
        "Binmore, Rubinstein and Wolinsky 1986, The Nash bargaining solution in economic modelling",
        "Faratin, Sierra and Jennings 1998, Negotiation decision functions for autonomous agents",
    )

    def sample(self, level: int, rng: Random, unit: int) -> Bargaining:
        """All that is told is drawn first, and what is true evenly after it."""
        terms, claims = draw_told(level, rng)
        return Bargaining(terms, tuple(rng.randrange(len(curves)) for curves in terms.curves), claims, unit)

    def tape(self, parameters: Bargaining, rng: Random) -> Breaks:
        """One draw a buyer and refusal."""
        terms = parameters.terms
        return Breaks(
            tuple(tuple(int(rng.randrange(100) < buyer.breaks) for _ in range(terms.rounds)) for buyer in terms.buyers)
        )

    def labels(self, parameters: Bargaining) -> int:
        """One a buyer."""
        return len(parameters.terms.buyers)

    def world(self, parameters: Bargaining, tape: Breaks, look: Look) -> World:
        """Interactive: `status`, `parties`, `record`, `ask`, `accept`, `leave`; `law_book` where revealed.

        Written: `submit` with a rule for every situation that one may come to.
        """
        terms, unit = parameters.terms, parameters.unit
        numbered = list(enumerate(terms.buyers, 1))
        curves = [terms.curves[number][kind] for number, kind in enumerate(parameters.kinds)]
        return World(
            id="bargaining",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((terms.rounds, 1, 0, terms.buyers[0].opening * unit, 0),),
                "parties": tuple(
                    (n, look.labels[n - 1], buyer.cost * unit, parameters.claims[n - 1] * unit, buyer.breaks)
                    for n, buyer in numbered
                ),
                "limits": tuple((n, limit * unit) for n, buyer in numbered for limit in buyer.limits),
                "curves": tuple(
                    (n, talks, curve.bids[talks] * unit, curve.accepts[talks] * unit)
                    for n, curve in enumerate(curves, 1)
                    for talks in range(terms.rounds)
                ),
                "tape": tuple(
                    (n, talks, broken) for n, breaks in enumerate(tape.broken, 1) for talks, broken in enumerate(breaks)
                ),
            },
            tools=_tools(parameters, look.presentation),
            over=f"SELECT rounds_left = 0 OR party > {len(terms.buyers)} FROM state",
        )

    def utility(self, parameters: Bargaining) -> str:
        """What deals brought over cost."""
        return "SELECT earned FROM state"

    def policies(self, parameters: Bargaining, presentation: Presentation) -> Mapping[str, Policy]:
        """The oracle knows when each buyer has conceded enough; the default asks what they say is their limit."""
        moves = known_talks(parameters.terms, parameters.kinds)[1]
        found = {
            "oracle": _by_moves(parameters, lambda party, talks, left, known: moves[party, talks, left], presentation),
            "default": _by_moves(parameters, _default(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN:
            programme = unknown_talks(parameters.terms)
            found["bayes"] = _by_moves(parameters, programme.move, presentation, learns=True)
        return found

    def attacks(self, parameters: Bargaining, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """The first bid; the claims; the moon; what it costs; nobody but the last; hold out until time is short."""
        terms = parameters.terms
        curves = [terms.curves[number][kind] for number, kind in enumerate(parameters.kinds)]
        dear = terms.out_of_reach + rng.randint(1, 50)

        def hoard(party: int, talks: int, left: int, known: Known) -> Move:
            return curves[party].bids[talks] if left <= len(curves) - party else dear

        def only_the_last(party: int, talks: int, left: int, known: Known) -> Move:
            return curves[party].bids[talks] if party == len(curves) - 1 else None

        choosers: dict[str, Chooser] = {
            "no_probing": lambda party, talks, left, known: terms.buyers[party].opening,
            "greedy": lambda party, talks, left, known: parameters.claims[party],
            "constant": lambda party, talks, left, known: dear,
            "give_away": lambda party, talks, left, known: terms.buyers[party].cost,
            "only_the_last": only_the_last,
            "hoard": hoard,
        }
        return {name: _by_moves(parameters, choose, presentation) for name, choose in choosers.items()}

    def solved(self, parameters: Bargaining, tape: Breaks) -> float:
        """What the oracle's moves bring on the tape."""
        terms, moves = parameters.terms, known_talks(parameters.terms, parameters.kinds)[1]
        party, talks, earned = 0, 0, 0
        left = terms.rounds
        while left and party < len(terms.buyers):
            ask = moves[party, talks, left]
            if ask is None:
                party, talks = party + 1, 0
                continue
            left -= 1
            agreed = ask <= terms.curves[party][parameters.kinds[party]].accepts[talks]
            earned += (ask - terms.buyers[party].cost) * agreed
            party, talks = (party + 1, 0) if agreed or tape.broken[party][talks] else (party, talks + 1)
        return float(parameters.unit * earned)

    def expected(self, parameters: Bargaining) -> Mapping[str, float]:
        """Given the curves, all exact; so `bayes` is not what its player expects, but what the curves let it have."""
        terms, kinds = parameters.terms, parameters.kinds
        gains = {
            "oracle": known_talks(terms, kinds)[0],
            "bayes": expected_gain(terms, kinds, unknown_talks(terms).move, learns=True),
            "default": expected_gain(terms, kinds, _default(parameters)),
            "idle": 0.0,
        }
        return {name: parameters.unit * gain for name, gain in gains.items()}

    def hindsight(self, parameters: Bargaining, tape: Breaks) -> float:
        """Rounds shared out with curves and breaks known."""
        return float(parameters.unit * best_in_hindsight(parameters.terms, parameters.kinds, tape.broken))

    def facts(self, parameters: Bargaining, presentation: Presentation) -> Mapping[str, Fact]:
        """Rounds, buyers, and the manners there are; in `written` what each buyer takes and when."""
        terms, unit = parameters.terms, parameters.unit
        manners = tuple((refusals, *percents) for refusals, percents in enumerate(zip(*terms.styles, strict=True)))
        parties = tuple(
            (n, buyer.cost * unit, buyer.opening * unit, claim * unit,
             ", ".join(str(limit * unit) for limit in buyer.limits), f"{buyer.breaks} %")
            for n, (buyer, claim) in enumerate(zip(terms.buyers, parameters.claims, strict=True), 1)
        )  # fmt: skip
        facts: dict[str, Fact] = {
            "rounds": terms.rounds, "parties_count": len(terms.buyers), "styles_count": len(terms.styles),
            "step": terms.step * unit, "grain": unit, "limits_count": len(terms.buyers[0].limits),
            "dearest": _dearest(parameters),
            "hold_out": str(terms.out_of_reach * unit),
            "manners_grid": Grid(("talks", *(f"manner {n}, %" for n in range(1, len(terms.styles) + 1))), manners),
            "parties_grid": Grid(("party", "cost", "opening bid", "claimed", "possible limits", "breaks"), parties),
        }  # fmt: skip
        if presentation is Presentation.WRITTEN:
            curves = [terms.curves[n][kind] for n, kind in enumerate(parameters.kinds)]
            heads = (f"{{party_word}} {n} takes" for n in range(1, len(curves) + 1))
            rows = tuple((talks, *(curve.accepts[talks] * unit for curve in curves)) for talks in range(terms.rounds))
            facts["curves_grid"] = Grid(("talks", *heads), rows)
        return facts

    def turns(self, parameters: Bargaining, presentation: Presentation) -> int:
        """Every round an ask and two looks."""
        return 5 if presentation is Presentation.WRITTEN else 3 * parameters.terms.rounds + 15


def draw_told(level: int, rng: Random) -> tuple[Terms, tuple[int, ...]]:
    """Terms and claims, drawn again until the default is worth beating and not hopeless, whatever is true."""
    while True:
        terms = _draw_terms(_SIZES[level], rng)
        claims = tuple(
            buyer.opening + (min(buyer.limits) - buyer.opening) * rng.randint(*_CLAIMED) // 100
            for buyer in terms.buyers
        )
        if _is_fair(level, terms, claims, rng):
            return terms, claims


def _is_fair(level: int, terms: Terms, claims: tuple[int, ...], rng: Random) -> bool:
    possible = [range(len(curves)) for curves in terms.curves]
    if prod(map(len, possible)) <= _TRUTHS:
        truths = list(product(*possible))
    else:
        truths = [tuple(map(rng.choice, possible)) for _ in range(_TRUTHS)]
    shares = []
    for kinds in truths:
        share = default_share(Bargaining(terms, kinds, claims, 1))
        if not _EVERY[0] <= share <= _EVERY[1]:
            return False
        shares.append(share)
    return _TIGHT[level][0] <= fmean(shares) <= _TIGHT[level][1]


def default_share(parameters: Bargaining) -> float:
    """What the default expects of what the oracle does; 0 where nothing can be earned."""
    best = known_talks(parameters.terms, parameters.kinds)[0]
    return expected_gain(parameters.terms, parameters.kinds, _default(parameters)) / best if best > 0 else 0.0


def _draw_terms(size: _Size, rng: Random) -> Terms:
    buyers = []
    for _ in range(size.buyers):
        opening, spread = 10 * rng.randint(10, 30), rng.randint(30, 60)
        limits = tuple(opening + spread * (number + 1) + rng.randint(0, 20) for number in range(size.limits))
        buyers.append(Buyer(opening - rng.randint(-10, 30), opening, limits, 2 * rng.randint(2, 6)))
    horizon = max(3, size.rounds // size.buyers + rng.randint(0, 2))
    bows = rng.sample(_BOWS, size.styles)
    styles = tuple(
        tuple(round(100 * min(1.0, k / horizon) ** (1 / bow)) for k in range(size.rounds + 1)) for bow in bows
    )
    return Terms(size.rounds, tuple(buyers), styles, 20)


def _dearest(parameters: Bargaining) -> int:
    return 10 * parameters.terms.out_of_reach * parameters.unit


def _default(parameters: Bargaining) -> Chooser:
    """An even share of the rounds for every buyer: ask what it says is its limit, in the share's last round its bid."""
    terms, claims = parameters.terms, parameters.claims
    share = terms.rounds // len(terms.buyers)

    def choose(party: int, talks: int, left: int, known: Known) -> Move:
        last = talks >= share - 1 or left == 1
        return terms.curves[party][parameters.kinds[party]].bids[talks] if last else claims[party]

    return choose


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    def whole(*names: str, keys: tuple[str, ...] = ()) -> tuple[Column, ...]:
        return tuple(Column(name=name, type="integer", role="key" if name in keys else "hard") for name in names)

    label = Column(name="label", type="text")
    hidden = presentation is not Presentation.REVEALED
    party = whole("party", keys=("party",))
    return (
        Table(name="state", columns=whole("rounds_left", "party", "talks", "bid", "earned")),
        Table(name="parties", columns=(*party, label, *whole("cost", "claimed", "breaks"))),
        Table(name="limits", columns=whole("party", "top", keys=("party", "top"))),
        Table(
            name="moves",
            columns=whole("rounds_left", "party", "talks", "asked", "agreed", "broke", keys=("rounds_left",)),
        ),
        Table(name="curves", hidden=hidden, columns=whole("party", "talks", "bid", "accepts", keys=("party", "talks"))),
        Table(name="tape", hidden=True, columns=whole("party", "talks", "broken", keys=("party", "talks"))),
    )


_BID = (
    "UPDATE state SET bid = coalesce((SELECT curves.bid FROM curves"
    " WHERE curves.party = state.party AND curves.talks = state.talks), 0)"
)
_MADE = "(SELECT moves.{} FROM moves WHERE moves.rounds_left = state.rounds_left)"


def _asking(price: str, condition: str = "") -> tuple[str, ...]:
    """One round: an ask is taken or refused, a refusal may end the talks; then the next bid."""
    ended = f"({_MADE.format('agreed')} OR {_MADE.format('broke')})"
    made = "WHERE EXISTS (SELECT 1 FROM moves WHERE moves.rounds_left = state.rounds_left)"
    return (
        "INSERT INTO moves(rounds_left, party, talks, asked, agreed, broke) SELECT state.rounds_left, state.party,"
        f" state.talks, {price}, {price} <= curves.accepts, {price} > curves.accepts AND tape.broken FROM state"
        " JOIN curves ON curves.party = state.party AND curves.talks = state.talks"
        f" JOIN tape ON tape.party = state.party AND tape.talks = state.talks{condition}",
        f"UPDATE state SET earned = earned + {_MADE.format('agreed')} * ({_MADE.format('asked')}"
        f" - (SELECT parties.cost FROM parties WHERE parties.party = state.party)) {made}",
        f"UPDATE state SET party = party + {ended}, talks = CASE WHEN {ended} THEN 0 ELSE talks + 1 END,"
        f" rounds_left = rounds_left - 1 {made}",
        _BID,
    )


def _tools(parameters: Bargaining, presentation: Presentation) -> tuple[Tool, ...]:
    parties = len(parameters.terms.buyers)
    price = Parameter(name="price", type="integer", minimum=0, maximum=_dearest(parameters))
    if presentation is Presentation.WRITTEN:
        return (_submit(parameters, price),)
    guards = (
        Guard(sql="SELECT rounds_left > 0 FROM state", error="there are no {rounds_word} left"),
        Guard(sql=f"SELECT party <= {parties} FROM state", error="there is no {party_word} left to talk to"),
    )
    answer = (
        "SELECT asked, agreed, broke, state.party, state.talks, bid, state.rounds_left, earned"
        " FROM moves CROSS JOIN state ORDER BY moves.rounds_left LIMIT 1"
    )
    tools = [
        Tool(name="status", kind="read", shape="row",
             result="SELECT state.party, label, cost, claimed, talks, bid, rounds_left, earned FROM state"
                    " LEFT JOIN parties ON parties.party = state.party LIMIT 1"),
        Tool(name="parties_list", kind="read",
             result="SELECT parties.party, label, cost, claimed, breaks, top FROM parties"
                    " JOIN limits ON limits.party = parties.party ORDER BY parties.party, top"),
        Tool(name="record", kind="read",
             result="SELECT rounds_left, party, talks, asked, agreed, broke FROM moves ORDER BY rounds_left DESC"),
        Tool(name="ask", kind="clock", parameters=(price,), guards=guards, effects=_asking(":price"), shape="row",
             result=answer),
        Tool(name="accept", kind="clock", guards=guards, effects=_asking("state.bid"), shape="row", result=answer),
        Tool(name="leave", kind="write", guards=guards, shape="row",
             effects=("UPDATE state SET party = party + 1, talks = 0", _BID),
             result="SELECT party, talks, bid, rounds_left, earned FROM state LIMIT 1"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        tools.append(
            Tool(name="law_book", kind="read",
                 result="SELECT party, talks, bid, accepts FROM curves ORDER BY party, talks")
        )  # fmt: skip
    return tuple(tools)


def _submit(parameters: Bargaining, price: Parameter) -> Tool:
    """Rules in order; each counts where it comes to just that situation, leaving buyers that no rule speaks of."""
    terms = parameters.terms
    party = Parameter(name="party", type="integer", minimum=1, maximum=len(terms.buyers))
    talks = Parameter(name="talks", type="integer", minimum=0, maximum=terms.rounds - 1)
    left = Parameter(name="rounds_left", type="integer", minimum=1, maximum=terms.rounds)
    condition = " WHERE state.party = :party AND state.talks = :talks AND state.rounds_left = :rounds_left"
    leaving = (
        "UPDATE state SET party = :party, talks = 0 WHERE party < :party AND rounds_left = :rounds_left AND :talks = 0"
    )
    return Tool(
        name="submit", kind="submit", parameters=(Parameter(name="plan", type="string"),),
        each=Each(parameter="plan", fields=(party, talks, left, price), maximum=1000),
        effects=(leaving, *_asking(":price", condition)),
    )  # fmt: skip


def _by_moves(parameters: Bargaining, choose: Chooser, presentation: Presentation, *, learns: bool = False) -> Policy:
    """Play a chooser; as a plan, the rules of every situation that it may come to."""
    if presentation is Presentation.WRITTEN:
        plan = json.dumps([rule for _, rule in sorted(_rules(parameters, choose))])
        return lambda player: player.call("submit", plan=plan)
    terms, unit = parameters.terms, parameters.unit

    def play(player: Player) -> None:
        programme = unknown_talks(terms)
        party, talks, left, bid = 0, 0, terms.rounds, terms.buyers[0].opening
        known: Known = programme.start(0) if learns else frozenset()
        while left and party < len(terms.buyers):
            ask = choose(party, talks, left, known)
            if ask is None:
                answer = player.call("leave")
            else:
                answer = player.call("accept") if ask == bid else player.call("ask", price=ask * unit)
            before, party, left, bid = party, answer["party"] - 1, answer["rounds_left"], answer["bid"] // unit
            if learns and left and party < len(terms.buyers):
                stays = party == before and ask is not None
                known = programme.refused(party, talks, known, ask or 0, bid) if stays else programme.start(party)
            talks = answer["talks"]

    return play


def _rules(parameters: Bargaining, choose: Chooser) -> Iterator[tuple[tuple[int, int, int], dict[str, Any]]]:
    """Every situation (buyer, refusals, rounds left) that a chooser may come to, with its rule."""
    terms = parameters.terms
    open_, seen = [(0, 0, terms.rounds)], set()
    while open_:
        party, talks, left = open_.pop()
        if left == 0 or party == len(terms.buyers) or (party, talks, left) in seen:
            continue
        seen.add((party, talks, left))
        ask = choose(party, talks, left, frozenset())
        if ask is None:
            open_.append((party + 1, 0, left))
            continue
        rule = {"party": party + 1, "talks": talks, "rounds_left": left, "price": ask * parameters.unit}
        yield (party, talks, left), rule
        open_.append((party + 1, 0, left - 1))
        if ask > terms.curves[party][parameters.kinds[party]].accepts[talks]:
            open_.append((party, talks + 1, left - 1))
