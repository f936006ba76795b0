"""build(): the flow of the design, once through.

    Source ──plan──▶ Lead ──develop──▶ Candidate ──validate──▶ Verdicts ──admit──▶ Task ──▶ Catalog ──▶ Pack

What happens between Lead and Task is `envsynth.work`, which runs in worker processes; this file holds the order,
the catalog and the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from envsynth import plugins
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig, write_resolved
from envsynth.context import BuildContext
from envsynth.errors import ConfigError, EnvsynthError, GeneratorError, boundary
from envsynth.executors import make_executor, work_through
from envsynth.llm.account import Account
from envsynth.models import BuildReport, Dropped, Lead, Outcome, OutcomeStatus, Source, Task
from envsynth.parallel import threads_each
from envsynth.sources import read_sources
from envsynth.telling import Progress, Teller
from envsynth.timing import Stopwatch
from envsynth.work import (
    MODEL_STOPS,
    Unit,
    Worked,
    environment_of,
    generator,
    keyed,
    ladder,
    leave_models,
    roles_asked,
    work,
)  # fmt: skip

__all__ = ["build"]

_OTHER_OUT = "name another folder with --out DIR"


class Planned(NamedTuple):
    """One source's work."""

    source: Source
    environment: str
    """Kind of environment that its generator makes."""
    ladder: str
    """What its leads are judged by."""
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
        self.context = BuildContext(
            config.cache, sandbox=config.sandbox, offline=config.offline, llm=config.llm, ledger=config.ledger
        )
        self.teller = Teller(progress, keep_going=config.keep_going)
        self.account = Account(config.llm, config.ledger)
        self.reused = 0
        self.recalled: Counter[str] = Counter()
        """Answers of models that came from the cache, by role."""

    def run(self) -> BuildReport:
        watch = Stopwatch()
        listed = read_sources(self.config.sources, root=self.config.root, defaults=self.config.source_defaults)
        self.teller.source_failed(*listed.errors)
        if not listed.sources and not listed.errors:
            named = " ".join(self.config.sources)
            raise ConfigError(
                "there is no source in it", where=named, next_step="write one source a line, see README.md"
            )
        # Before any work: a wrong path should not be found out after an hour.
        with boundary(ConfigError, "packs cannot be written", where=str(self.config.out), next_step=_OTHER_OUT):
            self.config.out.mkdir(parents=True, exist_ok=True)
        with Catalog.open(self.config.catalog) as catalog:
            write_resolved(self.config)
            number = catalog.begin_build(self.config.document())
            ending = "failed"
            try:
                planned = [plan for source in listed.sources if (plan := self._plan(source)) is not None]
                self._settle(catalog, number, planned)
                ending = "done"
            except KeyboardInterrupt:
                ending = "interrupted"
                raise
            finally:
                catalog.end_build(number, ending, watch.cost())
                self.context.leave_models()
                leave_models()
            return self._report(catalog, number, planned, watch)

    # --- planning ------------------------------------------------------------------------------------------

    def _plan(self, source: Source) -> Planned | None:
        """List a source's leads; a source that cannot be read stops the build unless it keeps going."""
        self.teller.say("source", f"reading {source.uri}", source.uri)
        leads: list[Lead] = []
        dropped: list[Dropped] = []
        try:
            with boundary(GeneratorError, "the source cannot be planned", where=source.uri):
                for found in generator(source.generator).plan(source, self.context):
                    if isinstance(found, Dropped):
                        dropped.append(found)
                    else:
                        leads.append(keyed(found, source, self.config.llm))
        except MODEL_STOPS:
            raise
        except EnvsynthError as error:
            self.teller.source_failed(error)
            return None
        self.teller.source_read()
        self.teller.notes(self.context.notes, source.uri)
        self.teller.total += len(leads)
        self.teller.say("plan", f"{len(leads)} leads, {len(dropped)} passed over", source.uri)
        kind = environment_of(generator(source.generator))
        return Planned(source, kind, ladder(kind, self.config.llm), leads, dropped)

    # --- working -------------------------------------------------------------------------------------------

    def _settle(self, catalog: Catalog, number: int, planned: Sequence[Planned]) -> None:
        """Work on everything that is not settled yet, the sources in turn but without waiting between them."""
        pending = [(lead, plan) for plan in planned for lead in self._pending(catalog, number, plan)]
        # Only work on workspaces can use several processors; its last leads have those that no other needs any more.
        left = sum(plan.environment == "workspace" for _, plan in pending)
        units = []
        for lead, plan in pending:
            units.append(self._unit(lead, plan, threads_each(self.config.jobs, left)))
            left -= plan.environment == "workspace"
        groups = [f"{plan.source.uri} {lead.group}" if lead.group else "" for lead, plan in pending]
        if not units:
            return
        executor = make_executor(self.config.executor, self.config.jobs, self.teller.note)

        def take(unit: str, result: str | BaseException) -> None:
            self._take(catalog, number, Unit.from_json(unit), result)

        work_through(executor, work, units, take, groups)

    def _pending(self, catalog: Catalog, number: int, plan: Planned) -> list[Lead]:
        """The source's leads that have no final outcome; what was dropped at once is recorded."""
        revision = next((lead.revision for lead in plan.leads), "")
        catalog.record_source(number, plan.source, revision, len(plan.leads))
        settled = catalog.settled([lead.key for lead in _all_leads(plan)], plan.ladder)
        dropped = [drop for drop in plan.dropped if drop.lead.key not in settled]
        if dropped:
            outcomes = [Outcome(lead=drop.lead, ladder=plan.ladder, dropped=drop) for drop in dropped]
            catalog.record(number, outcomes, self.context.blobs)
        pending = [lead for lead in plan.leads if lead.key not in settled]
        self.reused += len(plan.leads) - len(pending)
        self.teller.done += len(plan.leads) - len(pending)
        if pending:
            self._require(plan, pending)
        return pending

    def _require(self, plan: Planned, pending: Sequence[Lead]) -> None:
        """Before any work: a machine without a sandbox, or a model without a key, says so once and not once a lead."""
        if plan.environment == "workspace":
            self.context.backend(plan.source)
            self.teller.notes(self.context.notes, plan.source.uri)
        for role in roles_asked(pending, plan.source, plan.environment):
            self.context.model(role)

    def _unit(self, lead: Lead, plan: Planned, threads: int) -> str:
        config = self.config
        return Unit(
            lead=lead, source=plan.source, ladder=plan.ladder, cache=config.cache, sandbox=config.sandbox,
            offline=config.offline, threads=threads, llm=config.llm, ledger=config.ledger,
        ).to_json()  # fmt: skip

    def _take(self, catalog: Catalog, number: int, unit: Unit, result: str | BaseException) -> None:
        """Record what became of a unit, tell the user, and stop where going on is pointless."""
        if isinstance(result, EnvsynthError) and result.retryable:
            outcome = Outcome(lead=unit.lead, ladder=unit.ladder, trouble=str(result))
            worked = Worked(outcome=outcome, trouble_kind=result.what)
        elif isinstance(result, BaseException):
            raise result
        else:
            worked = Worked.from_json(result)
        self.recalled.update(worked.cached_answers)
        catalog.record(number, [worked.outcome], self.context.blobs)
        catalog.record_attempts(worked.attempts)
        self.teller.notes(worked.notes, unit.source.uri)
        self.teller.settled(worked.outcome, unit.source.uri, worked.trouble_kind)

    # --- reporting -----------------------------------------------------------------------------------------

    def _report(self, catalog: Catalog, number: int, planned: Sequence[Planned], watch: Stopwatch) -> BuildReport:
        leads = [lead for plan in planned for lead in _all_leads(plan)]
        funnel = catalog.funnel([lead.key for lead in leads])
        tasks = catalog.tasks_of([lead.key for lead in leads])
        pack = self._export(catalog, tasks)
        cost = watch.cost()
        statuses: Counter[str] = Counter()
        for row in funnel:
            statuses[row.status] += row.leads
        owed = statuses[OutcomeStatus.OWED.value]
        codes = [error.exit_code for error in self.teller.errors] + ([3] if owed else []) + ([] if tasks else [1])
        return BuildReport(
            build=number, catalog=self.config.catalog, pack=pack, leads=len(leads), reused=self.reused,
            statuses=dict(statuses), funnel=tuple(funnel), tasks=tuple(task.id for task in tasks),
            errors=tuple(str(error) for error in self.teller.errors), models=self.account.uses(self.recalled),
            seconds=cost.wall_s, cpu_s=cost.cpu_s, exit_code=max(codes, default=0),
        )  # fmt: skip

    def _export(self, catalog: Catalog, tasks: Sequence[Task]) -> Path | None:
        if not tasks:
            return None
        exporter = plugins.load("exporters", self.config.format)()
        name = self.config.pack_name
        self.teller.say("export", f"writing {len(tasks)} tasks as {self.config.format} pack {name}")
        return exporter.export(tasks, catalog.blobs, self.config.out / name, {"name": name})


def _all_leads(plan: Planned) -> list[Lead]:
    return [*plan.leads, *(drop.lead for drop in plan.dropped)]
