"""build(): the flow of the design, once through.

    Source ──plan──▶ Lead ──develop──▶ Candidate ──validate──▶ Verdicts ──admit──▶ Task ──▶ Catalog ──▶ Pack

What happens between Lead and Task is `envsynth.work`, which runs in worker processes; this file holds the order,
the catalog and the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from envsynth import plugins
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig, write_resolved
from envsynth.context import BuildContext
from envsynth.errors import EnvsynthError, GeneratorError, boundary
from envsynth.executors import make_executor
from envsynth.models import BuildReport, Dropped, Event, Lead, Outcome, OutcomeStatus, Source
from envsynth.sources import read_sources
from envsynth.timing import Stopwatch
from envsynth.work import Unit, Worked, generator, ladder, work

__all__ = ["build"]

Progress = Callable[[Event], None]

SAME_ERRORS = 5
"""So many equal infrastructure errors in a row stop a build: the cause is one, and more tries will not help."""


class Planned(NamedTuple):
    """One source's work."""

    source: Source
    leads: list[Lead]
    dropped: list[Dropped]


def build(config: BuildConfig, progress: Progress) -> BuildReport:
    """Build every source into the catalog, then write the pack of what these sources gave.

    Raises:
        EnvsynthError: the build cannot go on; whatever had finished is in the catalog.
    """
    return _Build(config, progress).run()


class _Build:
    """The state of one build."""

    def __init__(self, config: BuildConfig, progress: Progress) -> None:
        self.config = config
        self.progress = progress
        self.context = BuildContext(config.cache, sandbox=config.sandbox, offline=config.offline)
        self.ladder = ladder()
        self.errors: list[EnvsynthError] = []
        self.outcomes: dict[str, tuple[OutcomeStatus, str, str]] = {}
        self.done = self.total = self.reused = 0
        self._streak: Counter[str] = Counter()
        self._noted: set[str] = set()

    def run(self) -> BuildReport:
        watch = Stopwatch()
        listed = read_sources(self.config.sources, root=self.config.root, defaults=self.config.source_defaults)
        for error in listed.errors[:-1]:
            # Each bad line is shown, also where the last one then stops the build.
            self.errors.append(error)
            self._say("error", str(error))
        for error in listed.errors[-1:]:
            self._error(error)
        planned = [plan for source in listed.sources if (plan := self._plan(source)) is not None]
        with Catalog.open(self.config.catalog) as catalog:
            write_resolved(self.config)
            number = catalog.begin_build(self.config.document())
            ending = "failed"
            try:
                for plan in planned:
                    self._settle(catalog, number, plan)
                ending = "done"
            except KeyboardInterrupt:
                ending = "interrupted"
                raise
            finally:
                catalog.end_build(number, ending, watch.cost())
            return self._report(catalog, number, planned, watch)

    # --- planning ------------------------------------------------------------------------------------------

    def _plan(self, source: Source) -> Planned | None:
        """List a source's leads; a source that cannot be read stops the build unless it keeps going."""
        self._say("source", f"reading {source.uri}", source.uri)
        leads: list[Lead] = []
        dropped: list[Dropped] = []
        try:
            with boundary(GeneratorError, "the source cannot be planned", where=source.uri):
                for found in generator(source.generator).plan(source, self.context):
                    (dropped if isinstance(found, Dropped) else leads).append(found)  # type: ignore[arg-type]
        except EnvsynthError as error:
            self._error(error)
            return None
        self._notes(self.context.notes, source)
        self.total += len(leads)
        self._say("plan", f"{len(leads)} leads, {len(dropped)} passed over", source.uri)
        return Planned(source, leads, dropped)

    # --- working -------------------------------------------------------------------------------------------

    def _settle(self, catalog: Catalog, number: int, plan: Planned) -> None:
        revision = next((lead.revision for lead in plan.leads), "")
        catalog.record_source(number, plan.source, revision, len(plan.leads))
        settled = catalog.settled([lead.key for lead in _all_leads(plan)], self.ladder)
        dropped = [drop for drop in plan.dropped if drop.lead.key not in settled]
        if dropped:
            outcomes = [Outcome(lead=drop.lead, ladder=self.ladder, dropped=drop) for drop in dropped]
            catalog.record(number, outcomes, self.context.blobs)
        pending = [lead for lead in plan.leads if lead.key not in settled]
        self.reused += len(plan.leads) - len(pending)
        self.done += len(plan.leads) - len(pending)
        if not pending:
            return
        # Before any work: a machine without a sandbox should say so once and not once a lead.
        self.context.backend(plan.source)
        self._notes(self.context.notes, plan.source)
        units = [self._unit(lead, plan.source) for lead in pending]
        for unit, result in make_executor(self.config.executor, self.config.jobs).map(work, units):
            self._take(catalog, number, plan.source, unit, result)

    def _unit(self, lead: Lead, source: Source) -> str:
        config = self.config
        return Unit(
            lead=lead, source=source, ladder=self.ladder, cache=config.cache, sandbox=config.sandbox,
            offline=config.offline,
        ).to_json()  # fmt: skip

    def _take(self, catalog: Catalog, number: int, source: Source, unit: str, result: str | BaseException) -> None:
        """Record what became of a unit, tell the user, and stop where going on is pointless."""
        if isinstance(result, EnvsynthError) and result.retryable:
            lead = Unit.from_json(unit).lead
            worked = Worked(outcome=Outcome(lead=lead, ladder=self.ladder, problem=str(result)))
        elif isinstance(result, BaseException):
            raise result
        else:
            worked = Worked.from_json(result)
        outcome = worked.outcome
        catalog.record(number, [outcome], self.context.blobs)
        self.done += 1
        self._notes(worked.notes, source)
        name = outcome.task.id if outcome.task else outcome.lead.ref[:12]
        reason = f" ({outcome.reason})" if outcome.reason else ""
        detail = {"status": outcome.status.value, "reason": outcome.reason, "lead": outcome.lead.key, "name": name}
        self._say("lead", f"{outcome.status.value} {name}{reason}: {outcome.lead.title}", source.uri, **detail)
        if outcome.problem:
            self._say("error", f"owed {outcome.lead.ref[:12]}: {outcome.problem}", source.uri)
        self._count_problem(outcome)

    def _count_problem(self, outcome: Outcome) -> None:
        if not outcome.problem:
            self._streak.clear()
            return
        cause = outcome.problem.split(": ", 1)[-1]
        self._streak = Counter({cause: self._streak[cause] + 1})
        if self._streak[cause] >= SAME_ERRORS:
            raise EnvsynthError(
                f"stopped after {SAME_ERRORS} equal infrastructure errors in a row", cause=cause,
                next_step="envsynth doctor; then the same command again: finished work is kept", retryable=True,
            )  # fmt: skip

    # --- telling -------------------------------------------------------------------------------------------

    def _report(self, catalog: Catalog, number: int, planned: Sequence[Planned], watch: Stopwatch) -> BuildReport:
        leads = [lead for plan in planned for lead in _all_leads(plan)]
        funnel = catalog.funnel([lead.key for lead in leads])
        tasks = catalog.tasks_of([lead.key for lead in leads])
        pack = self._export(catalog, [task.id for task in tasks])
        cost = watch.cost()
        statuses: Counter[str] = Counter()
        for row in funnel:
            statuses[row.status] += row.leads
        owed = statuses[OutcomeStatus.OWED.value]
        codes = [error.exit_code for error in self.errors] + ([3] if owed else [])
        return BuildReport(
            build=number, catalog=self.config.catalog, pack=pack, leads=len(leads), reused=self.reused,
            statuses=dict(statuses), funnel=tuple(funnel), tasks=tuple(task.id for task in tasks),
            errors=tuple(str(error) for error in self.errors), seconds=cost.wall_s, cpu_s=cost.cpu_s,
            exit_code=max(codes, default=0),
        )  # fmt: skip

    def _export(self, catalog: Catalog, ids: Sequence[str]) -> Path | None:
        if not ids:
            return None
        exporter = plugins.load("exporters", self.config.format)()
        name = self.config.pack_name
        self._say("export", f"writing {len(ids)} tasks as {self.config.format} pack {name}")
        tasks = [catalog.task(task_id) for task_id in sorted(ids)]
        return exporter.export(tasks, catalog.blobs, self.config.out / name, {"name": name})

    def _error(self, error: EnvsynthError) -> None:
        if not self.config.keep_going:
            raise error
        self.errors.append(error)
        self._say("error", str(error))

    def _notes(self, notes: Sequence[str], source: Source) -> None:
        for note in notes:
            if note not in self._noted:
                self._noted.add(note)
                self._say("note", note, source.uri)

    def _say(self, kind: str, text: str, source: str = "", **detail: str) -> None:
        self.progress(Event(kind, text, source, self.done, self.total, dict(detail)))  # type: ignore[arg-type]


def _all_leads(plan: Planned) -> list[Lead]:
    return [*plan.leads, *(drop.lead for drop in plan.dropped)]
