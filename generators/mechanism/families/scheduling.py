"""`scheduling`: jobs on one machine whose times are far from their estimates; delay is charged by level's rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._scheduling_solver import (
    INSPECTION,
    LONG,
    SHORT,
    UNKNOWN,
    Hours,
    Order,
    belief_costs,
    best_step,
    earliest_due,
    least_tardiness,
    moore_hodgson,
    smith,
    usual,
)
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World

FLOW, LATE, TARDY = "flow", "late", "tardy"
"""Rules of charging: every hour until a job is finished; once for a late job; every hour after the due hour."""


class _Size(NamedTuple):
    rule: str
    jobs: int
    longs: int
    """How many jobs take the double of their estimate."""
    swing: int
    """Hours by which a time may differ from the usual."""
    charges: tuple[int, int] | None
    """Abstract units; None: one for all jobs."""
    due: tuple[int, int]
    """Due hours, per cent of the sum of estimates."""


_SIZES = {
    1: _Size(FLOW, 6, 3, 0, (5, 7), (0, 0)),
    2: _Size(FLOW, 6, 3, 1, (4, 8), (0, 0)),
    3: _Size(LATE, 10, 5, 0, None, (25, 80)),
    4: _Size(TARDY, 9, 4, 0, None, (10, 40)),
    5: _Size(TARDY, 11, 4, 0, (2, 7), (5, 30)),
}
_THIRDS = (4, 7)
"""Range of a third of an estimate: so narrow that long jobs take longer than short ones whatever was estimated."""


@dataclass(frozen=True)
class Scheduling:
    """Parameters; times are whole hours, jobs are numbered from 0 here, from 1 in the world."""

    rule: str
    """`flow`, `late` or `tardy`."""
    estimates: tuple[int, ...]
    longs: int
    """How many jobs take the double of their estimate."""
    typical: tuple[int, ...]
    """Usual time of each job: a third or the double of its estimate."""
    charges: tuple[int, ...]
    """Minor units, by hour or by late job as the rule has it."""
    dues: tuple[int, ...]
    """Hour at which each job is due; all 0 under `flow`."""
    horizon: int
    """Hour at which all work ends; what is not finished then is charged as if it were finished then."""
    swing: int
    """Hours by which a time may differ from the usual."""
    unit: int


@dataclass(frozen=True)
class Durations:
    """Tape: hours that each job takes."""

    actual: tuple[int, ...]


class SchedulingFamily(Family[Scheduling, Durations]):
    """One machine, no preemption, hidden times.

    A told number of jobs take the double of their estimates and the others a third, every choice of them being equally
    likely; times are drawn once, after all else, so that this is their law. All jobs and an inspection of each fit
    before the end, whichever are long. `bayes` is exact where every hour until completion is charged: the expected cost
    of a step is its time by the charges of unfinished jobs, and what is known of each job (unknown, short, long,
    finished) with the number of long ones among the unknown is the whole state. Where due hours count, the state has
    the hour too, and there are more jobs; `bayes` is left out and the reference is the oracle.
    """

    name: ClassVar[str] = "scheduling"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "One machine, delay charges and wrong estimates"
    kin: ClassVar[str] = "planning"
    sources: ClassVar[tuple[str, ...]] = (
        "Smith 1956, Various optimizers for single-stage production",
        "Jackson 1955, Scheduling a production line to minimize maximum tardiness",
        "Moore 1968, An n job, one machine sequencing algorithm for minimizing the number of late jobs",
        "Held and Karp 1962, A dynamic programming approach to sequencing problems",
        "Rothkopf 1966, Scheduling with random service times",
    )
    band: ClassVar[tuple[float, float]] = (0.15, 0.93)

    def sample(self, level: int, rng: Random, unit: int) -> Scheduling:
        """Everything that is told, then which jobs are long."""
        known = _draw(_SIZES[level], rng, unit)
        return with_longs(known, rng.sample(range(len(known.estimates)), known.longs))

    def tape(self, parameters: Scheduling, rng: Random) -> Durations:
        """One draw a job."""
        swing = parameters.swing
        return Durations(tuple(time + rng.randint(-swing, swing) for time in parameters.typical))

    def labels(self, parameters: Scheduling) -> int:
        """One a job."""
        return len(parameters.typical)

    def world(self, parameters: Scheduling, tape: Durations, look: Look) -> World:
        """Interactive: `start`, `inspect`, `wait`, and views. Written: `submit` with jobs in order."""
        told = zip(look.labels, parameters.charges, parameters.dues, parameters.estimates, strict=True)
        due = parameters.rule != FLOW
        return World(
            id="scheduling",
            clock=look.clock,
            tables=_tables(look.presentation, due=due),
            rows={
                "state": ((0,),),
                "jobs": tuple(
                    (job, label, charge, *((until,) if due else ()), estimate, None, None)
                    for job, (label, charge, until, estimate) in enumerate(told, 1)
                ),
                "durations": tuple(enumerate(parameters.typical, 1)),
                "tape": tuple(enumerate(tape.actual, 1)),
            },
            tools=_tools(parameters, look.presentation, due=due),
            over=f"SELECT hour >= {parameters.horizon} OR NOT EXISTS (SELECT 1 FROM jobs WHERE finished IS NULL)"
            " FROM state",
        )

    def utility(self, parameters: Scheduling) -> str:
        """Charges, negative; what is not finished counts as finished at the horizon."""
        finished = f"coalesce(finished, {parameters.horizon})"
        charged = {
            FLOW: finished,
            LATE: f"({finished} > due)",
            TARDY: f"max(0, {finished} - due)",
        }[parameters.rule]
        return f"SELECT -sum(charge * {charged}) FROM jobs"

    def policies(self, parameters: Scheduling, presentation: Presentation) -> Mapping[str, Policy]:
        """The oracle starts jobs in the best order; the default the quickest by estimate first."""
        found = {
            "oracle": _start(best_order(parameters), presentation),
            "default": _start(_default(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN and parameters.rule == FLOW:
            found["bayes"] = _bayes(parameters)
        return found

    def attacks(self, parameters: Scheduling, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Orders without inspections; letting time pass; and inspecting everything for nothing."""
        found = {name: _start(order, presentation) for name, order in _careless(parameters).items()}
        if presentation is not Presentation.WRITTEN:
            found["wait"] = _wait(parameters)
            found["overprobe"] = _overprobe(parameters)
        return found

    def solved(self, parameters: Scheduling, tape: Durations) -> float:
        """The best order at the tape's times."""
        return float(_utility(parameters, best_order(parameters), tape.actual))

    def expected(self, parameters: Scheduling) -> Mapping[str, float]:
        """`bayes` is the expectation under the player's own prior, as the belief programme values it."""
        found = {
            "oracle": float(_utility(parameters, best_order(parameters), parameters.typical)),
            "default": float(_utility(parameters, _default(parameters), parameters.typical)),
            "idle": float(_utility(parameters, (), parameters.typical)),
        }
        if parameters.rule == FLOW:
            costs = belief_costs(_weights(parameters), parameters.estimates, parameters.longs)
            found["bayes"] = -parameters.unit * costs[-1][-1]
        return found

    def hindsight(self, parameters: Scheduling, tape: Durations) -> float:
        """The best order, times known in advance."""
        order = _best(parameters.rule, _weights(parameters), parameters.dues, tape.actual)
        return float(_utility(parameters, order, tape.actual))

    def variant(self, parameters: Scheduling) -> str:
        """The rule of charging."""
        return parameters.rule

    def facts(self, parameters: Scheduling, presentation: Presentation) -> Mapping[str, Fact]:
        """Jobs, horizon, time of an inspection, the charge where all have the same; in `written` all jobs."""
        facts: dict[str, Fact] = {
            "job_count": len(parameters.typical),
            "long_count": parameters.longs,
            "horizon": parameters.horizon,
            "inspection": INSPECTION,
            "time_swing": parameters.swing,
        }
        if presentation is Presentation.WRITTEN:
            columns = {
                "job": range(1, len(parameters.typical) + 1),
                "charge": parameters.charges,
                "due": parameters.dues,
                "estimate": parameters.estimates,
                "typical": parameters.typical,
            }
            if parameters.rule == FLOW:
                del columns["due"]
            facts["job_grid"] = Grid(tuple(columns), tuple(zip(*columns.values(), strict=True)))
        return facts

    def turns(self, parameters: Scheduling, presentation: Presentation) -> int:
        """Every job inspected, looked at and started."""
        return 5 if presentation is Presentation.WRITTEN else 4 * len(parameters.typical) + 10


def best_order(parameters: Scheduling) -> Order:
    """The order of least charges at the usual times; with a swing (`flow` only) of least expected charges."""
    return _best(parameters.rule, _weights(parameters), parameters.dues, parameters.typical)


@lru_cache(maxsize=4096)
def _best(rule: str, weights: tuple[int, ...], dues: Hours, times: Hours) -> Order:
    if rule == FLOW:
        return smith(weights, times)
    return moore_hodgson(dues, times) if rule == LATE else least_tardiness(weights, dues, times)


def _utility(parameters: Scheduling, order: Sequence[int], times: Sequence[int]) -> int:
    """Charges, negative, of jobs started in an order without a break; those not in it stay unfinished."""
    ends = accumulate(times[job] for job in order)
    finished = {job: min(end, parameters.horizon) for job, end in zip(order, ends, strict=True)}
    return _charged(parameters, finished)


def _charged(parameters: Scheduling, finished: Mapping[int, int]) -> int:
    total = 0
    for job, (charge, due) in enumerate(zip(parameters.charges, parameters.dues, strict=True)):
        over = max(0, finished.get(job, parameters.horizon) - due)
        total += charge * (min(over, 1) if parameters.rule == LATE else over)
    return -total


def _weights(parameters: Scheduling) -> tuple[int, ...]:
    """Charges in abstract units, so that no decision depends on the unit."""
    return tuple(charge // parameters.unit for charge in parameters.charges)


def _draw(size: _Size, rng: Random, unit: int) -> Scheduling:
    """Everything but the times."""
    estimates = tuple(3 * rng.randint(*_THIRDS) for _ in range(size.jobs))
    total, charge = sum(estimates), rng.randint(3, 9)
    low, high = (total * percent // 100 for percent in size.due)
    times = [usual(estimate) for estimate in estimates]
    longest = sum(time.short for time in times) + sum(sorted(time.long - time.short for time in times)[-size.longs :])
    return Scheduling(
        rule=size.rule,
        estimates=estimates,
        longs=size.longs,
        typical=estimates,
        charges=tuple(unit * (rng.randint(*size.charges) if size.charges else charge) for _ in estimates),
        dues=tuple(rng.randint(low, high) for _ in estimates),
        horizon=longest + size.jobs * (size.swing + INSPECTION),
        swing=size.swing,
        unit=unit,
    )


def with_longs(known: Scheduling, longs: Sequence[int]) -> Scheduling:
    """The same jobs where these are the long ones."""
    times = [usual(estimate) for estimate in known.estimates]
    return replace(known, typical=tuple(time.long if job in longs else time.short for job, time in enumerate(times)))


def _follow_beliefs(parameters: Scheduling, inspect: Callable[[int], int], start: Callable[[int], int]) -> None:
    """Take the best step from every belief.

    Args:
        parameters: of which only what everybody is told is read.
        inspect: inspects a job; returns its usual time.
        start: starts a job; returns the time that it took.
    """
    weights, estimates = _weights(parameters), parameters.estimates
    belief, left = 4 ** len(weights) - 1, parameters.longs
    while belief:
        job, inspecting = best_step(weights, estimates, parameters.longs, belief, left)
        known = belief >> 2 * job & 3
        belief &= ~(3 << 2 * job)
        is_long = (inspect if inspecting else start)(job) > estimates[job]
        if known == UNKNOWN and is_long:
            left -= 1
        if inspecting:
            belief |= (LONG if is_long else SHORT) << 2 * job


def _default(parameters: Scheduling) -> Order:
    """The quickest by estimate first, as most shops do."""
    estimates = parameters.estimates
    return tuple(sorted(range(len(estimates)), key=lambda job: (estimates[job], job)))


def _careless(parameters: Scheduling) -> dict[str, Order]:
    """Orders that ask for nothing."""
    jobs = range(len(parameters.typical))
    charges, estimates = parameters.charges, parameters.estimates
    found = {
        "no_probing": _best(parameters.rule, _weights(parameters), parameters.dues, estimates),
        "greedy": smith(_weights(parameters), estimates),
        "constant": tuple(jobs),
        "dearest": tuple(sorted(jobs, key=lambda job: (-charges[job], -job))),
        "cheapest": tuple(sorted(jobs, key=lambda job: (charges[job], job))),
    }
    if parameters.rule != FLOW:
        found["earliest"] = earliest_due(parameters.dues)
        found["average"] = _best(parameters.rule, _weights(parameters), parameters.dues, _mean_times(parameters))
    return found


def blind_utilities(parameters: Scheduling) -> dict[str, int]:
    """Utility at the usual times of every order that asks for nothing."""
    return {name: _utility(parameters, order, parameters.typical) for name, order in _careless(parameters).items()}


def _mean_times(parameters: Scheduling) -> Hours:
    """Expected times, rounded to hours; under `flow` they are in the ratio of the estimates."""
    share = parameters.longs / len(parameters.estimates)
    times = [usual(estimate) for estimate in parameters.estimates]
    return tuple(round(share * time.long + (1 - share) * time.short) for time in times)


def _start(order: Order, presentation: Presentation) -> Policy:
    def play(player: Player) -> None:
        if presentation is Presentation.WRITTEN:
            player.call("submit", plan=json.dumps([{"job": job + 1} for job in order]))
            return
        for job in order:
            player.call("start", job=job + 1)

    return play


def _bayes(parameters: Scheduling) -> Policy:
    """Least expected charges where every choice of the long jobs is equally likely."""

    def play(player: Player) -> None:
        hour = 0

        def inspect(job: int) -> int:
            nonlocal hour
            shown = player.call("inspect", job=job + 1)
            hour = shown["hour"]
            return int(shown["typical"])

        def start(job: int) -> int:
            nonlocal hour
            before, hour = hour, player.call("start", job=job + 1)["hour"]
            return int(hour - before)

        _follow_beliefs(parameters, inspect, start)

    return play


def _wait(parameters: Scheduling) -> Policy:
    """Let half of the time go by, then take the usual order."""

    def play(player: Player) -> None:
        player.call("wait", hours=parameters.horizon // 2)
        for job in _default(parameters):
            if player.over:
                return
            player.call("start", job=job + 1)

    return play


def _overprobe(parameters: Scheduling) -> Policy:
    """Inspect every job, then take the usual order all the same."""

    def play(player: Player) -> None:
        for job in range(len(parameters.typical)):
            player.call("inspect", job=job + 1)
        for job in _default(parameters):
            if player.over:
                return
            player.call("start", job=job + 1)

    return play


def _tables(presentation: Presentation, *, due: bool) -> tuple[Table, ...]:
    def column(name: str, *, key: bool = False, nullable: bool = False, references: str = "") -> Column:
        role = "key" if key else "hard"
        return Column(name=name, type="integer", role=role, nullable=nullable, references=references)

    job = column("job", key=True, references="jobs.job")
    return (
        Table(name="state", columns=(column("hour"),)),
        Table(
            name="jobs",
            columns=(
                column("job", key=True),
                Column(name="label", type="text"),
                column("charge"),
                *((column("due"),) if due else ()),
                column("estimate"),
                column("typical", nullable=True),
                column("finished", nullable=True),
            ),
        ),
        Table(name="durations", hidden=presentation is not Presentation.REVEALED, columns=(job, column("typical"))),
        Table(name="tape", hidden=True, columns=(job, column("actual"))),
    )


def _tools(parameters: Scheduling, presentation: Presentation, *, due: bool) -> tuple[Tool, ...]:
    horizon = parameters.horizon
    job = Parameter(name="job", type="integer", minimum=1, maximum=len(parameters.typical))
    going = Guard(sql=f"SELECT hour < {horizon} FROM state", error="all work has ended")
    waiting = Guard(sql="SELECT finished IS NULL FROM jobs WHERE job = :job", error="that {task} is finished already")
    start = (
        f"UPDATE state SET hour = min({horizon}, hour + (SELECT actual FROM tape WHERE job = :job))",
        "UPDATE jobs SET finished = (SELECT hour FROM state) WHERE job = :job",
    )
    if presentation is Presentation.WRITTEN:
        plan = Parameter(name="plan", type="string")
        each = Each(parameter="plan", fields=(job,), maximum=len(parameters.typical))
        guards = (going, waiting)
        return (Tool(name="submit", kind="submit", parameters=(plan,), each=each, guards=guards, effects=start),)
    hours = Parameter(name="hours", type="integer", minimum=1, maximum=horizon)
    unseen = Guard(sql="SELECT typical IS NULL FROM jobs WHERE job = :job", error="that {task} was inspected already")
    shown = "SELECT j.job, j.typical, j.finished, s.hour FROM jobs j CROSS JOIN state s WHERE j.job = :job"
    tools = [
        Tool(name="view", kind="read", shape="row", result="SELECT hour FROM state"),
        Tool(name="board", kind="read",
             result=f"SELECT job, label, charge, {'due, ' * due}estimate, typical, finished FROM jobs ORDER BY job"),
        Tool(name="start", kind="write", parameters=(job,), guards=(going, waiting), effects=start, shape="row",
             result=shown),
        Tool(name="inspect", kind="write", parameters=(job,), guards=(going, waiting, unseen), shape="row",
             effects=(
                 "UPDATE jobs SET typical = (SELECT d.typical FROM durations d WHERE d.job = :job) WHERE job = :job",
                 f"UPDATE state SET hour = min({horizon}, hour + {INSPECTION})",
             ),
             result=shown),
        Tool(name="wait", kind="clock", parameters=(hours,), guards=(going,), shape="row",
             effects=(f"UPDATE state SET hour = min({horizon}, hour + :hours)",), result="SELECT hour FROM state"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        tools.append(Tool(name="reveal", kind="read", result="SELECT job, typical FROM durations ORDER BY job"))
    return tuple(tools)
