"""Solve rates of one policy: per task and over tasks, with intervals that say how they were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from pydantic import Field

from envsynth.catalog.reports import AttemptFigures
from envsynth.models import Model
from envsynth.rollout.statistics import (
    clustered,
    mixed_chance,
    mixed_chance_of_rate,
    pass_at_k,
    wilson,
)

__all__ = ["GROUPS", "Mixed", "Rated", "RolloutReport", "TaskRate", "rate_of", "rated_over"]

GROUPS = (4, 8, 16)
"""Sizes of groups of attempts that trainers compare."""


class Mixed(Model):
    """Chance that a group of attempts at one task holds both successes and failures, and so teaches anything."""

    chance: float = Field(ge=0, le=1)
    plug_in: bool
    """True: there are fewer attempts than the group has, and the measured rate was put into 1 - p^G - (1-p)^G, which
    gives too little on average. False: unbiased."""


class Rated(Model):
    """A figure with its 95 % interval."""

    value: float
    low: float | None
    """None: one task alone says nothing of others."""
    high: float | None


class TaskRate(Model):
    """What attempts of one policy at one task came to."""

    task: str
    n: int = Field(ge=0)
    """Attempts that finished."""
    c: int = Field(ge=0)
    """Successes among them."""
    environment_errors: int = Field(ge=0)
    """Attempts that the environment kept from an end: in no other figure."""
    pass_at: tuple[float | None, ...]
    """pass@1, pass@2, ... unbiased; None where there are fewer attempts than that."""
    low: float
    """Of pass@1: Wilson's 95 % interval."""
    high: float
    mean_outcome: float | None
    """Graded outcomes count as they are; the gate is not applied."""
    mean_calls: float | None
    mean_turns: float | None
    failures: dict[str, int]
    """Failed attempts by kind, as `envsynth.rollout.failures.failure_of` has them."""
    mixed: dict[int, Mixed]
    """By size of the group; empty without attempts."""


class Hinted(Model):
    """What a hint is worth: attempts with it beside attempts without it."""

    tasks: int = Field(ge=0)
    """Those that were tried both ways."""
    with_hint: float
    """Mean over tasks of the pass rate."""
    without_hint: float
    regret: Rated
    """Mean over tasks of the difference."""
    by_task: dict[str, float]
    """The difference, by task."""


class RolloutReport(Model):
    """What a run of rollouts came to. Figures over tasks weigh each task alike."""

    catalog: str
    policy: str
    model: str
    hinted: bool
    attempts: int = Field(ge=0)
    """Attempts a task that were asked for."""
    made: int = Field(ge=0)
    """Attempts that this run made; the others stood in the catalog."""
    tasks: tuple[TaskRate, ...]
    pass_at: tuple[Rated | None, ...]
    """pass@1, pass@2, ... over the tasks with so many attempts; intervals as `clustered` makes them."""
    mean_outcome: Rated | None
    mean_calls: float | None
    failures: dict[str, int]
    mixed: dict[int, Mixed]
    """Mean over tasks: the share of groups that would teach anything."""
    hint: Hinted | None
    """None: no task was tried both ways."""
    without_hint: int = Field(ge=0)
    """Tasks that were left out, for they have no hint."""
    tokens: int = Field(ge=0)
    """Read and written in the counted attempts."""
    cost_usd: float | None
    """Of new calls in the counted attempts; None: not known."""
    environment_errors: int = Field(ge=0)
    errors: tuple[str, ...]
    """One line each: attempts that the environment kept from an end, equal ones once."""
    unexpected: tuple[str, ...]
    """Tasks whose reference did not succeed, or whose idle policy did."""
    seconds: float = Field(ge=0)
    exit_code: int = 0
    """0 done, 1 a reference failed or an idle policy succeeded, 3 the environment kept attempts from an end."""


def rate_of(task: str, attempts: Sequence[AttemptFigures], most: int) -> TaskRate:
    """The figures of one task.

    Args:
        task: its id.
        attempts: of one policy at it.
        most: pass@k is told up to this k.
    """
    done = [one for one in attempts if one.success is not None]
    n, c = len(done), sum(bool(one.success) for one in done)
    interval = wilson(c, n)
    return TaskRate(
        task=task, n=n, c=c, environment_errors=len(attempts) - n,
        pass_at=tuple(pass_at_k(n, c, k) for k in range(1, most + 1)), low=interval.low, high=interval.high,
        mean_outcome=_mean(one.outcome for one in done), mean_calls=_mean(one.calls for one in done),
        mean_turns=_mean(one.turns for one in done),
        failures=dict(Counter(one.failure for one in done if one.failure is not None)),
        mixed={group: _mixed(n, c, group) for group in GROUPS} if n else {},
    )  # fmt: skip


def _mixed(n: int, c: int, group: int) -> Mixed:
    found = mixed_chance(n, c, group)
    return Mixed(chance=mixed_chance_of_rate(c / n, group) if found is None else max(0.0, found), plug_in=found is None)


def rated_over(tasks: Sequence[TaskRate], figure: Callable[[TaskRate], float | None]) -> Rated | None:
    """The mean of a figure over those tasks that have it, each weighed alike."""
    values = [found for task in tasks if (found := figure(task)) is not None]
    return rated(values)


def rated(values: Sequence[float], span: tuple[float, float] = (0.0, 1.0)) -> Rated | None:
    """The mean with its interval over tasks; None without values. Arguments as for `clustered`."""
    if not values:
        return None
    interval = clustered(values, span)
    return Rated(
        value=fmean(values), low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
    )  # fmt: skip


def mixed_over(tasks: Sequence[TaskRate]) -> dict[int, Mixed]:
    """Chances over tasks: the mean, and whether any of it is a plug-in."""
    counted = [task.mixed for task in tasks if task.mixed]
    return {
        group: Mixed(
            chance=fmean(mixed[group].chance for mixed in counted),
            plug_in=any(mixed[group].plug_in for mixed in counted),
        )
        for group in GROUPS
        if counted
    }


def hint_over(plain: Mapping[str, TaskRate], hinted: Mapping[str, TaskRate]) -> Hinted | None:
    """What hints are worth, over the tasks that were tried both ways."""
    both = sorted(task for task in plain.keys() & hinted.keys() if plain[task].n and hinted[task].n)
    if not both:
        return None
    with_hint = {task: hinted[task].c / hinted[task].n for task in both}
    without = {task: plain[task].c / plain[task].n for task in both}
    by_task = {task: with_hint[task] - without[task] for task in both}
    regret = rated(list(by_task.values()), (-1.0, 1.0))
    assert regret is not None
    return Hinted(
        tasks=len(both), with_hint=fmean(with_hint.values()), without_hint=fmean(without.values()), regret=regret,
        by_task=by_task,
    )  # fmt: skip


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
