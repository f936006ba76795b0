"""rollout(): attempts of one policy at tasks of a catalog, made at once, stored as they end, and counted.

What stands in the catalog is not made again: killed anywhere and run again, a rollout goes on with the rest, and what a
model had answered by then is in the cache. What the environment kept from an end is owed, and tried by the next run.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from statistics import fmean
from typing import NamedTuple

from envsynth.agents import Agent
from envsynth.catalog import Catalog
from envsynth.catalog.reports import AttemptFigures
from envsynth.config import BuildConfig
from envsynth.context import BuildContext
from envsynth.errors import ConfigError, EnvsynthError
from envsynth.models import Attempt, AttemptStatus, Event, EventKind, Policy, Task, attempt_key
from envsynth.rollout.attempting import attempted
from envsynth.rollout.crew import Crew
from envsynth.rollout.playable import Playable, Playables
from envsynth.rollout.report import RolloutReport, TaskRate, hint_over, mixed_over, rate_of, rated_over
from envsynth.rollout.request import RolloutRequest, agent_of
from envsynth.runtime.contract import Backend
from envsynth.sandbox.docker import DockerBackend
from envsynth.telling import SAME_ERRORS, Progress
from envsynth.timing import Stopwatch

__all__ = ["RolloutRequest", "agent_of", "rollout"]

_AT_ONCE, _EVERY_S = 256, 0.5
"""So many attempts are stored together, or what ended in so many seconds."""


class _Wanted(NamedTuple):
    """One attempt that is to be there."""

    task: Playable
    k: int
    key: str


def rollout(config: BuildConfig, request: RolloutRequest, progress: Progress) -> RolloutReport:
    """Make the attempts that are not there yet, and count all that were asked for.

    Args:
        config: catalog, cache, sandbox, jobs, offline and models are read.
        request: which attempts.
        progress: is told every attempt.

    Raises:
        ConfigError: there is no catalog or no such task, or the policy lacks something.
        EnvsynthError: it cannot go on; every attempt that had ended is in the catalog.
    """
    if not config.catalog.exists():
        raise ConfigError(
            "there is no catalog", where=str(config.catalog), cause="nothing was built yet, or it stands elsewhere",
            next_step="envsynth build --source F, or name it with --catalog",
        )  # fmt: skip
    context = BuildContext(
        config.cache, sandbox=config.sandbox, offline=config.offline, llm=config.llm, ledger=config.ledger
    )
    try:
        agent = agent_of(request, context)
        with Catalog.open(config.catalog) as catalog:
            return _Rollout(config, request, context, catalog, progress).run(agent)
    finally:
        context.leave_models()


class _Rollout:
    """The state of one run."""

    def __init__(
        self,
        config: BuildConfig,
        request: RolloutRequest,
        context: BuildContext,
        catalog: Catalog,
        progress: Progress,
    ) -> None:
        self.config, self.request, self.context, self.catalog = config, request, context, catalog
        self._progress = progress
        self._lock = threading.Lock()
        """Around the catalog: threads read contents from it."""
        self._playables = Playables(self._content, config.cache)
        self._backends: dict[str, Backend] = {}
        self._one_by_one = False
        self._total = self._made = 0
        self._trouble, self._times = "", 0

    def run(self, agent: Agent) -> RolloutReport:
        watch = Stopwatch()
        playables = [self._playable(task) for task in self._selected()]
        chosen = [one for one in playables if one.told.hint] if self.request.hint else playables
        if not chosen:
            raise ConfigError(
                "none of the tasks has a hint", where=str(self.config.catalog),
                next_step="leave --hint out, or select others with --where",
            )  # fmt: skip
        wanted = self._wanted(chosen if self.request.hint else _plain(chosen), agent)
        standing = self.catalog.attempted([one.key for one in wanted])
        pending = [one for one in wanted if standing.get(one.key) is not AttemptStatus.FINISHED]
        self._total, self._made = len(wanted), len(wanted) - len(pending)
        self._say("plan", f"{len(pending)} of {len(wanted)} attempts to be made, at {len(chosen)} tasks")
        if pending:
            self._make(pending, agent, watch)
        other = self._wanted(_plain(chosen) if self.request.hint else [one for one in chosen if one.told.hint], agent)
        report = self._report(wanted, other, agent)
        return report.model_copy(
            update={
                "made": len(pending), "seconds": watch.cost().wall_s, "without_hint": len(playables) - len(chosen),
            }
        )  # fmt: skip

    # --- planning ------------------------------------------------------------------------------------------

    def _selected(self) -> list[Task]:
        names, where = self.request.names, self.request.where
        tasks = [self.catalog.task(name) for name in names] if names else self.catalog.tasks(where)
        if not tasks:
            raise ConfigError(
                "no task is selected", where=str(self.config.catalog),
                cause=f"none fits {where}" if where else "the catalog has none", next_step="envsynth catalog ls",
            )  # fmt: skip
        return list({task.id: task for task in tasks}.values())

    def _playable(self, task: Task) -> Playable:
        return self._playables.of_task(task, lambda: self._backend(task.candidate.provenance.lead.source))

    def _backend(self, uri: str) -> Backend:
        """The sandbox for a source's code, asked for before any work: a machine without one says so at once."""
        if uri not in self._backends:
            backend = self.context.backend(self.catalog.source(uri))
            # Without isolation one agent could find what another has on the disk; Docker's client wants one thread.
            self._one_by_one |= not backend.isolates or isinstance(backend, DockerBackend)
            self._backends[uri] = backend
            for note in self.context.notes:
                self._say("note", note)
            self.context.notes.clear()
        return self._backends[uri]

    def _wanted(self, playables: Sequence[Playable], agent: Agent) -> list[_Wanted]:
        wanted = []
        for task in playables:
            settings, hinted = agent.identity(task.told), bool(task.told.hint)
            for k in range(self.request.attempts):
                key = attempt_key(task.told.played, agent.policy, settings, hinted=hinted, k=k)
                wanted.append(_Wanted(task, k, key))
        return wanted

    # --- working -------------------------------------------------------------------------------------------

    def _make(self, pending: list[_Wanted], agent: Agent, watch: Stopwatch) -> None:
        document = {"command": "rollout", **self.request.document(), "settings": self.config.document()}
        number = self.catalog.begin_build(document)
        ending = "failed"
        try:
            self._work(pending, agent)
            ending = "done"
        except KeyboardInterrupt:
            ending = "interrupted"
            raise
        finally:
            with self._lock:
                self.catalog.end_build(number, ending, watch.cost())

    def _work(self, pending: list[_Wanted], agent: Agent) -> None:
        """Make attempts, and store each as soon as it has ended.

        Raises:
            EnvsynthError: no other attempt would fare better. Those under way then were waited for.
        """

        def work(one: _Wanted) -> Attempt:
            return attempted(one.task, agent, one.k)

        crew: Crew[_Wanted, Attempt] = Crew(work, pending, self._threads(agent))
        ended: list[Attempt] = []
        watch = Stopwatch()
        failure: BaseException | None = None
        with closing(iter(crew)) as results:
            try:
                for done in results:
                    if done.error is not None:
                        failure = failure or done.error
                        crew.stop()
                    if done.result is not None:
                        ended.append(done.result)
                        failure = failure or self._repeated(done.result)
                    if failure is not None:
                        crew.stop()
                    if len(ended) >= _AT_ONCE or watch.cost().wall_s >= _EVERY_S or failure is not None:
                        self._store(ended)
                        watch = Stopwatch()
            finally:
                self._store(ended)
        if failure is not None:
            raise failure

    def _threads(self, agent: Agent) -> int:
        if self._one_by_one:
            return 1
        if self.request.jobs is not None:
            return self.request.jobs
        settings = self.config.llm.solver
        return settings.concurrency if agent.policy is Policy.MODEL and settings is not None else self.config.jobs

    def _store(self, ended: list[Attempt]) -> None:
        """Keep attempts and tell of them; the list is empty afterwards."""
        if not ended:
            return
        attempts = ended[:]
        ended.clear()
        with self._lock:
            self.catalog.record_attempts(attempts)
        for attempt in attempts:
            self._made += 1
            self._say("lead", _line(attempt), task=attempt.task, key=attempt.key, status=attempt.status.value)

    def _repeated(self, attempt: Attempt) -> EnvsynthError | None:
        """Whether the same trouble came so often that its cause is one."""
        trouble = attempt.trouble.partition(": ")[2] or attempt.trouble
        self._times = self._times + 1 if trouble == self._trouble else 1
        self._trouble = trouble
        if not trouble or self._times < SAME_ERRORS:
            return None
        return EnvsynthError(
            f"stopped after {SAME_ERRORS} equal infrastructure errors in a row", cause=trouble,
            next_step="envsynth doctor; then the same command again: finished work is kept", retryable=True,
        )  # fmt: skip

    def _content(self, digest: str) -> bytes:
        with self._lock:
            return self.catalog.blobs.get(digest)

    def _say(self, kind: EventKind, text: str, **detail: str) -> None:
        self._progress(Event(kind, text, "", self._made, self._total, dict(detail)))

    # --- reporting -----------------------------------------------------------------------------------------

    def _report(self, wanted: list[_Wanted], other: list[_Wanted], agent: Agent) -> RolloutReport:
        """What was asked for, and beside it what stands of the same with, or without, the hint."""
        figures = self.catalog.attempt_figures([one.key for one in wanted])
        rates, others = self._rates(figures), self._rates(self.catalog.attempt_figures([one.key for one in other]))
        tasks = list(rates.values())
        plain, hinted = (others, rates) if self.request.hint else (rates, others)
        costs = [one.cost_usd for one in figures if one.success is not None]
        troubles = Counter(one.trouble for one in figures if one.trouble)
        unexpected = [task.task for task in tasks if _unexpected(agent.policy, task)]
        codes = [0, *([1] if unexpected else []), *([3] if troubles else [])]
        return RolloutReport(
            catalog=str(self.config.catalog), policy=agent.policy.value, model=agent.name, hinted=self.request.hint,
            attempts=self.request.attempts, made=0, tasks=tuple(tasks),
            pass_at=tuple(rated_over(tasks, _pass_at(k)) for k in range(self.request.attempts)),
            mean_outcome=rated_over(tasks, lambda task: task.mean_outcome),
            mean_calls=_mean_calls(tasks), failures=_summed(tasks), mixed=mixed_over(tasks),
            hint=hint_over(plain, hinted), without_hint=0, tokens=sum(one.tokens for one in figures),
            cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
            environment_errors=sum(task.environment_errors for task in tasks), errors=tuple(troubles),
            unexpected=tuple(unexpected), seconds=0.0, exit_code=max(codes),
        )  # fmt: skip

    def _rates(self, figures: Sequence[AttemptFigures]) -> dict[str, TaskRate]:
        by_task: dict[str, list[AttemptFigures]] = defaultdict(list)
        for one in figures:
            by_task[one.task].append(one)
        return {task: rate_of(task, found, self.request.attempts) for task, found in sorted(by_task.items())}


def _plain(playables: Sequence[Playable]) -> list[Playable]:
    return [one.without_hint() for one in playables]


def _pass_at(place: int) -> Callable[[TaskRate], float | None]:
    return lambda task: task.pass_at[place]


def _mean_calls(tasks: Sequence[TaskRate]) -> float | None:
    known = [task.mean_calls for task in tasks if task.mean_calls is not None]
    return fmean(known) if known else None


def _summed(tasks: Sequence[TaskRate]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for task in tasks:
        total.update(task.failures)
    return dict(total)


def _unexpected(policy: Policy, task: TaskRate) -> bool:
    """Whether a task is not as admission found it."""
    if policy is Policy.REFERENCE:
        return task.mean_outcome is not None and (task.c < task.n or task.mean_outcome < 1.0)
    return policy is Policy.IDLE and task.c > 0


def _line(attempt: Attempt) -> str:
    name = f"{attempt.task} {attempt.policy.value} {attempt.k}"
    if attempt.grade is None:
        return f"{name}: environment error, owed [{attempt.trouble[:200]}]"
    said = attempt.failure.value if attempt.failure is not None else "solved"
    return f"{name}: {said}, outcome {attempt.grade.outcome:g}, {len(attempt.trace)} calls"
