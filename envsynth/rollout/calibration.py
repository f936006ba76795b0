"""What a solver's attempts say of a candidate: whether groups of them would teach anything, and whether skill shows.

A trainer compares attempts at one task in groups. A group whose attempts all succeed, or all fail, gives no gradient;
so a task is calibrated for a model where a group of the configured size is mixed with at least the configured chance,
and where the model does better than luck, so clearly that luck would not come so far once in twenty. Everything else is
said and kept, but rejects nothing: what this model never solves may be right for a stronger one, and what it always
solves for a weaker one. The tier then stays `verified`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import comb
from statistics import fmean
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.agents import Agent, BlindAgent, Limits, ModelAgent
from envsynth.errors import ValidatorError
from envsynth.llm import Client, SolverSettings
from envsynth.models import Attempt, Finding
from envsynth.rollout.attempting import attempted
from envsynth.rollout.failures import is_success
from envsynth.rollout.playable import Playable
from envsynth.rollout.statistics import better_by_chance, mixed_chance, mixed_chance_of_rate, wilson

__all__ = ["Calibration", "Trial", "calibrate", "mixed_levels", "solver_settings"]

_DOUBT = 0.05
"""Greatest chance, of a solver that only calls tools by chance, to pass for better than that."""
_LUCKY = 24
"""Draws of luck for each attempt of the solver: one success where luck has none in so many is clear."""

Each = Callable[[Callable[[int], Attempt], Iterable[int]], list[Attempt]]
"""Makes attempts by their numbers, some at once; the result in their order."""


class Trial(NamedTuple):
    """How attempts are made and kept."""

    each: Each
    keep: Callable[[Attempt], None]
    """Told every attempt, for the catalog."""
    graded: bool
    """Whether outcomes lie between 0 and 1; a group is then mixed where rewards differ by a tenth."""
    luck: bool
    """Whether calls by chance are tried too; in a workspace they come to nothing."""


class Calibration(NamedTuple):
    """What attempts came to."""

    findings: tuple[Finding, ...]
    """Why the task is not calibrated for the model; empty: it is."""
    unsolved: bool
    """Whether no attempt got anything."""
    evidence: dict[str, JsonValue]


def solver_settings(client: Client) -> SolverSettings:
    """What is asked of a solver; a role without the solver's own settings has the usual ones."""
    settings = client.settings
    return settings if isinstance(settings, SolverSettings) else SolverSettings(**settings.model_dump())


def calibrate(task: Playable, client: Client, trial: Trial) -> Calibration:
    """Let the solver attempt a candidate, with its hint too where it has one, and chance beside it.

    Raises:
        ValidatorError: an attempt could not be made, for the environment's sake; those that were are kept, and are
            answered from the cache next time.
        BudgetSpent, DiskFull, EndpointDown, SandboxUnavailable: no other candidate would fare better.
    """
    settings = solver_settings(client)
    limits = Limits(max_tokens=settings.attempt_tokens, max_seconds=settings.attempt_seconds)
    agent, plain = ModelAgent(client, limits), task.without_hint()
    made = _made(plain, agent, settings.attempts, trial)
    lucky = _made(plain, BlindAgent(), settings.attempts, trial) if trial.luck else []
    evidence: dict[str, JsonValue] = {"model": agent.name, **_figures(made, task.threshold)}
    chance, plug_in = mixed_levels(_levels(made, task.threshold, graded=trial.graded), settings.group)
    evidence |= {"group": settings.group, "mixed": round(chance, 6), "mixed_is_plug_in": plug_in}
    evidence["luck"] = _mean_reward(lucky) if lucky else None
    if task.told.hint:
        hinted = _made(task, agent, settings.attempts, trial)
        told = _figures(hinted, task.threshold)
        evidence |= {"hinted": told, "regret": _rate(hinted, task.threshold) - _rate(made, task.threshold)}
    findings = _findings(made, _rate(made, task.threshold), chance, settings)
    if not findings and trial.luck:
        doubt, mean = _doubt(plain, made, trial)
        evidence["luck_comes_so_far"] = round(doubt, 6)
        if doubt > _DOUBT:
            message = (
                f"{agent.name} has a mean reward of {_mean_reward(made):.2f}, calls by chance {mean:.2f}: luck would "
                f"come so far with chance {doubt:.2f}"
            )
            findings.append(Finding(rule="luck_does_as_well", message=message))
    return Calibration(tuple(findings), _best(made) == 0.0, evidence)


def _doubt(task: Playable, made: Sequence[Attempt], trial: Trial) -> tuple[float, float]:
    """Chance that luck comes as far as the solver, and the mean reward of luck; whichever luck is the better.

    Luck may make as many calls as the reference, or as many as the budget allows. Its draws here are too many to keep.
    """
    unkept = trial._replace(keep=lambda _: None)
    found = []
    for agent in (BlindAgent(), BlindAgent(whole=True)):
        lucky = _made(task, agent, _LUCKY * len(made), unkept)
        found.append((better_by_chance(_rewards(made), _rewards(lucky)), _mean_reward(lucky)))
    return max(found)


def mixed_levels(levels: Sequence[float], group: int) -> tuple[float, bool]:
    """Chance that a group of attempts does not all come to the same, and whether it is a plug-in.

    With two levels it is `mixed_chance`. Unbiased where there are at least as many attempts as the group has; else the
    shares of the levels are put into 1 - Σ p^G, which gives too little on average.
    """
    counts, n = Counter(levels).values(), len(levels)
    if group <= n:
        return max(0.0, 1.0 - sum(comb(count, group) for count in counts) / comb(n, group)), False
    return max(0.0, 1.0 - sum((count / n) ** group for count in counts)), True


def _made(task: Playable, agent: Agent, attempts: int, trial: Trial) -> list[Attempt]:
    made = trial.each(lambda k: attempted(task, agent, k), range(attempts))
    for attempt in made:
        trial.keep(attempt)
    failed = next((attempt for attempt in made if not attempt.finished), None)
    if failed is not None:
        count = sum(not attempt.finished for attempt in made)
        raise ValidatorError(f"{count} of {attempts} attempts could not be made", where=task.task, cause=failed.trouble)
    return made


def _findings(made: Sequence[Attempt], rate: float, chance: float, settings: SolverSettings) -> list[Finding]:
    name = settings.model
    if _best(made) == 0.0:
        return [Finding(rule="unsolved", message=f"{name} got nothing in {len(made)} attempts")]
    if rate == 1.0:
        return [Finding(rule="always_solved", message=f"{name} solved it in all of {len(made)} attempts")]
    if chance < settings.mixed:
        message = f"a group of {settings.group} is mixed with chance {chance:.3f}, below {settings.mixed:g}"
        return [Finding(rule="hardly_mixed", message=message)]
    return []


def _levels(made: Sequence[Attempt], threshold: float, *, graded: bool) -> list[float]:
    if not graded:
        return [float(is_success(attempt, threshold)) for attempt in made]
    return [round(attempt.grade.reward, 1) for attempt in made if attempt.grade is not None]


def _figures(made: Sequence[Attempt], threshold: float) -> dict[str, JsonValue]:
    n, c = len(made), sum(is_success(attempt, threshold) for attempt in made)
    interval = wilson(c, n)
    chances: dict[str, JsonValue] = {}
    for group in (4, 8, 16):
        found = mixed_chance(n, c, group)
        chances[str(group)] = round(mixed_chance_of_rate(c / n, group) if found is None else found, 6)
    failures = Counter(attempt.failure.value for attempt in made if attempt.failure is not None)
    return {
        "attempts": n, "solved": c, "pass_rate": c / n, "low": round(interval.low, 6), "high": round(interval.high, 6),
        "mean_reward": _mean_reward(made), "mean_calls": fmean(len(attempt.trace) for attempt in made),
        "mixed_by_group": chances, "failures": dict(sorted(failures.items())),
    }  # fmt: skip


def _rate(made: Sequence[Attempt], threshold: float) -> float:
    return sum(is_success(attempt, threshold) for attempt in made) / len(made)


def _best(made: Sequence[Attempt]) -> float:
    return max((attempt.grade.reward for attempt in made if attempt.grade is not None), default=0.0)


def _mean_reward(made: Sequence[Attempt]) -> float:
    rewards = _rewards(made)
    return fmean(rewards) if rewards else 0.0


def _rewards(made: Sequence[Attempt]) -> list[float]:
    return [attempt.grade.reward for attempt in made if attempt.grade is not None]
