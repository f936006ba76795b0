"""One attempt: an agent plays an episode, the episode is graded, and all of it is written down."""

from __future__ import annotations

import json
import time

from envsynth.agents import Agent, Played
from envsynth.errors import (
    BudgetSpent,
    ConfigError,
    DiskFull,
    EndpointDown,
    EnvsynthError,
    SandboxError,
    SandboxUnavailable,
    boundary,
)
from envsynth.models import Attempt, AttemptGrade, AttemptStatus, TraceStep
from envsynth.rollout.failures import failure_of
from envsynth.rollout.playable import Playable
from envsynth.runtime.contract import JSON, Episode, Grade

__all__ = ["STOPS", "TRIES", "attempted"]

TRIES = 3
"""How often an attempt is made that fails for the environment's sake, before it is kept as such."""
STOPS = (BudgetSpent, ConfigError, DiskFull, EndpointDown, SandboxUnavailable)
"""Errors after which no other attempt would fare better."""


def attempted(task: Playable, agent: Agent, k: int) -> Attempt:
    """Draw `k` of an agent at a task.

    An environment that fails is tried again; what was answered by a model before is then in the cache. Whoever wants no
    hint told passes a task without one.

    Raises:
        BudgetSpent, ConfigError, DiskFull, EndpointDown, SandboxUnavailable: no other attempt would fare better.
    """
    began = time.monotonic()
    for left in reversed(range(TRIES)):
        try:
            with boundary(SandboxError, "the episode failed", where=task.task):
                return _played(task, agent, k)
        except STOPS:
            raise
        except EnvsynthError as error:
            failure = error
            if not error.retryable or not left:
                break
    return Attempt(
        **_named(task, agent, k), status=AttemptStatus.ENVIRONMENT_ERROR, trouble=str(failure),
        wall_s=time.monotonic() - began,
    )  # fmt: skip


def _played(task: Playable, agent: Agent, k: int) -> Attempt:
    began = time.monotonic()
    episode = task.open()
    try:
        episode.reset()
        played = agent.play(episode, task.told, k)
        trace, grade = trace_of(episode), episode.grade()
    finally:
        episode.close()
    attempt = Attempt(
        **_named(task, agent, k), status=AttemptStatus.FINISHED, trace=trace, grade=_kept(grade),
        **_told(played), wall_s=time.monotonic() - began,
    )  # fmt: skip
    return attempt.model_copy(update={"failure": failure_of(attempt, task.threshold)})


def _named(task: Playable, agent: Agent, k: int) -> dict[str, JSON]:
    return {
        "task": task.task, "lead": task.lead, "played": task.told.played, "policy": agent.policy, "model": agent.name,
        "settings": agent.identity(task.told), "hinted": bool(task.told.hint), "k": k,
    }  # fmt: skip


def _told(played: Played) -> dict[str, JSON]:
    return {
        "ending": played.ending, "fault": played.fault, "turns": played.turns, "tools": played.tools,
        "conversation": played.conversation, "tokens": played.tokens, "cost_usd": played.cost_usd,
        "model_s": played.model_s,
    }  # fmt: skip


def _kept(grade: Grade) -> AttemptGrade:
    return AttemptGrade.model_validate(_plain(grade._asdict()))


def trace_of(episode: Episode) -> tuple[TraceStep, ...]:
    """The calls of an episode as grading sees them, of either kind of environment."""
    return tuple(_step(turn) for turn in getattr(episode, "trace", ()))


def _step(turn: JSON) -> TraceStep:
    called = getattr(turn, "called", None)
    if called is not None:  # a world's
        arguments, result, error = turn.arguments, called.result, called.error
    else:
        arguments, result, error = json.loads(turn.arguments), json.loads(turn.result), turn.error or ""
    return TraceStep(
        tool=_whole(turn.tool), arguments=_plain(arguments), ok=not error, result=_plain(result), error=_whole(error)
    )


def _plain(value: JSON) -> JSON:
    """A value as JSON has it, without lone surrogates, which no database takes."""
    return json.loads(_whole(json.dumps(value, ensure_ascii=False)))


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
