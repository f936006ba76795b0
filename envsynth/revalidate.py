"""revalidate(): validators again, on candidates that a catalog already has.

Only what is missing, stale or owed is asked. Everything a candidate needs is in the catalog, so that its source may be
gone; its options, such as `trusted`, are those of the source's latest build. Each outcome is recorded as soon as it is
there: killed anywhere and run again, nothing that had finished is repeated.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from envsynth import admission, work
from envsynth.catalog import Catalog
from envsynth.catalog.blobs import roots_of
from envsynth.config import BuildConfig
from envsynth.context import BuildContext
from envsynth.errors import CatalogError, ConfigError, EnvsynthError
from envsynth.executors import make_executor, work_through
from envsynth.llm.account import Account
from envsynth.models import Candidate, FunnelRow, Model, ModelUse, Outcome, OutcomeStatus, Source, Tree
from envsynth.parallel import threads_each
from envsynth.rework import Revision, owed, plan, rework
from envsynth.telling import Progress, Teller
from envsynth.timing import Stopwatch
from envsynth.work import Worked

__all__ = ["Selection", "ValidationReport", "revalidate"]


class Selection(Model):
    """What is judged again."""

    names: tuple[str, ...] = ()
    """Task ids, lead keys or commits, or beginnings of one that fit one only; empty: every admitted task."""
    every: bool = False
    """Every lead with a candidate: rejected and owed ones too."""
    only: tuple[str, ...] = ()
    """Validators that are looked at; empty: all."""
    force: bool = False
    """Whether verdicts that stand are renewed."""


class ValidationReport(Model):
    """What judging again came to."""

    catalog: Path
    """The file."""
    build: int | None
    """Number under which the catalog has this run; None: nothing was to be done."""
    selected: int = Field(ge=0)
    """Candidates that were looked at."""
    standing: int = Field(ge=0)
    """Those that had nothing missing, stale or owed."""
    statuses: dict[str, int]
    """Candidates by what they came to; `owed`: the environment failed, and what stood in the catalog still stands."""
    funnel: tuple[FunnelRow, ...]
    """How the catalog has them now."""
    admitted: tuple[str, ...] = ()
    """Ids of tasks that were none before."""
    demoted: tuple[str, ...] = ()
    """Ids of what is no task any more."""
    errors: tuple[str, ...] = ()
    """One line each: what named candidates were rejected for, and what is owed."""
    models: tuple[ModelUse, ...] = ()
    """Roles whose models were asked."""
    seconds: float = Field(ge=0)
    """Wall seconds."""
    cpu_s: float = Field(ge=0)
    """User and system seconds, child processes included."""
    exit_code: int = Field(default=0, ge=0)
    """0 done, 1 a task was demoted or something named is rejected, 3 infrastructure."""


def revalidate(config: BuildConfig, selection: Selection, progress: Progress) -> ValidationReport:
    """Judge candidates of a catalog again.

    Args:
        config: catalog, cache, sandbox, executor, jobs and offline are read.
        selection: which candidates and validators.
        progress: is told every step.

    Raises:
        ConfigError: there is no catalog, or a task or validator is not known.
        EnvsynthError: it cannot go on; whatever had finished is in the catalog.
    """
    _require_known(selection.only)
    if not config.catalog.exists():
        raise ConfigError(
            "there is no catalog", where=str(config.catalog), cause="nothing was built yet, or it stands elsewhere",
            next_step="envsynth build --source F, or name it with --catalog",
        )  # fmt: skip
    with Catalog.open(config.catalog) as catalog:
        return _Revalidation(config, selection, catalog, progress).run()


def _require_known(names: tuple[str, ...]) -> None:
    known = [validator.name for kind in admission.REQUIRED for validator in work.validators(kind)]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise ConfigError(
                f"there is no validator named {name!r}", where="--only",
                cause=f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}",
                next_step="envsynth plugins",
            )  # fmt: skip


def _environment(outcome: Outcome) -> str:
    """Kind of environment of a candidate, or of what its generator would have made."""
    if outcome.candidate is not None:
        return outcome.candidate.environment.kind
    return work.environment_of(work.generator(outcome.lead.generator))


class _Word(NamedTuple):
    """What a report says of an outcome."""

    name: str
    status: OutcomeStatus
    reason: str
    detail: str

    @classmethod
    def of(cls, outcome: Outcome) -> _Word:
        name = outcome.candidate.id if outcome.candidate is not None else outcome.lead.ref[:12]
        return cls(name, outcome.status, outcome.reason, outcome.detail or outcome.trouble)


class _Revalidation:
    """The state of one run."""

    def __init__(self, config: BuildConfig, selection: Selection, catalog: Catalog, progress: Progress) -> None:
        self.config, self.selection, self.catalog = config, selection, catalog
        self.context = BuildContext(
            config.cache, sandbox=config.sandbox, offline=config.offline, llm=config.llm, ledger=config.ledger
        )
        self.teller = Teller(progress, keep_going=True)
        self.account = Account(config.llm, config.ledger)
        self.recalled: Counter[str] = Counter()
        """Answers of models that came from the cache, by role."""
        self.build: int | None = None
        self.keys: list[str] = []
        self.before: dict[str, OutcomeStatus] = {}
        self.after: dict[str, _Word] = {}
        self._sources: dict[str, Source] = {}
        self._lent: set[str] = set()
        self._pending = 0
        self._dropped: list[Outcome] = []

    def run(self) -> ValidationReport:
        watch = Stopwatch()
        self.keys = self._selected()
        revisions = list(self._units())
        threads = threads_each(self.config.jobs, len(revisions))
        units = [one.model_copy(update={"threads": threads}).to_json() for one in revisions]
        self._pending = len(units)
        self.teller.total, self.teller.done = len(self.before), len(self.before) - len(units)
        self.teller.say("plan", f"{len(units)} of {len(self.before)} candidates to be judged")
        if units or self._dropped:
            self._work(units, watch)
        return self._report(watch)

    # --- planning ------------------------------------------------------------------------------------------

    def _selected(self) -> list[str]:
        if self.selection.names:
            return sorted({self.catalog.key(name) for name in self.selection.names})
        return self.catalog.keys(admitted=not self.selection.every)

    def _units(self) -> Iterator[Revision]:
        """A unit of work for each candidate that needs one; its outcome and contents are then in the cache."""
        for outcome in self.catalog.outcomes(self.keys):
            kind = _environment(outcome)
            ladder = work.ladder(kind, self.config.llm)
            if outcome.candidate is None:
                if self.selection.names:
                    raise ConfigError(
                        f"the lead was {outcome.status.value} ({outcome.reason}): there is nothing to validate",
                        where=outcome.lead.key[:12], next_step="build its source again to try it again",
                    )  # fmt: skip
                if outcome.status is OutcomeStatus.DROPPED and not self.selection.only and outcome.ladder != ladder:
                    self._dropped.append(outcome.model_copy(update={"ladder": ladder}))
                continue
            self.before[outcome.lead.key] = outcome.status
            steps, selection = work.validators(kind), self.selection
            if plan(outcome, steps, self.config.llm, ladder, selection.only, selection.force) is None:
                self.after[outcome.lead.key] = _Word.of(outcome)
                continue
            source = self._source(outcome)
            self._lend(outcome.candidate)
            yield Revision(
                lead=outcome.lead, source=source, ladder=ladder, cache=self.config.cache,
                sandbox=self.config.sandbox, offline=self.config.offline, only=self.selection.only,
                llm=self.config.llm, ledger=self.config.ledger, force=self.selection.force,
                standing=self.context.blobs.put(outcome.to_json().encode()),
            )  # fmt: skip

    def _source(self, outcome: Outcome) -> Source:
        """The source, once it is known that its code can be run here."""
        uri = outcome.lead.source
        if uri not in self._sources:
            source = self.catalog.source(uri)
            if _environment(outcome) == "workspace":
                self.context.backend(source)
            for role in work.roles_asked((), source, _environment(outcome)):
                self.context.model(role)
            self.teller.notes(self.context.notes, uri)
            self._sources[uri] = source
        return self._sources[uri]

    def _lend(self, candidate: Candidate) -> None:
        """Put what a candidate names into the cache, from the catalog."""
        trees, plain = roots_of(candidate)
        for digest in trees:
            if digest not in self._lent:
                plain.extend(entry.blob for entry in Tree.from_json(self._content(digest, candidate)).entries)
        for digest in plain:
            self._content(digest, candidate)

    def _content(self, digest: str, candidate: Candidate) -> bytes:
        if digest in self._lent:
            return b""
        self._lent.add(digest)
        try:
            return self.context.blobs.get(digest)
        except KeyError:
            pass
        try:
            content = self.catalog.blobs.get(digest)
        except KeyError:
            raise CatalogError(
                "a content of the candidate is missing or damaged in the catalog",
                where=f"{candidate.id} {digest[:12]}",
                next_step=f"envsynth catalog rm {candidate.id}, then build its source again",
            ) from None  # fmt: skip
        self.context.blobs.put(content)
        return content

    # --- working -------------------------------------------------------------------------------------------

    def _work(self, units: list[str], watch: Stopwatch) -> None:
        document = {"command": "validate", **self.selection.document(), "settings": self.config.document()}
        self.build = self.catalog.begin_build(document)
        ending = "failed"
        try:
            # No validator has a say in these: they are the same under every ladder.
            self.catalog.record(self.build, self._dropped, self.context.blobs)
            executor = make_executor(self.config.executor, self.config.jobs, self.teller.note)
            work_through(executor, rework, units, lambda unit, result: self._take(Revision.from_json(unit), result))
            ending = "done"
        except KeyboardInterrupt:
            ending = "interrupted"
            raise
        finally:
            self.catalog.end_build(self.build, ending, watch.cost())
            self.context.leave_models()
            work.leave_models()

    def _take(self, unit: Revision, result: str | BaseException) -> None:
        """Record what became of a candidate, tell the user, and stop where going on is pointless."""
        if isinstance(result, EnvsynthError) and result.retryable:
            standing = Outcome.from_json(self.context.blobs.get(unit.standing))
            outcome = owed(standing, unit.ladder).model_copy(update={"trouble": str(result)})
            worked = Worked(outcome=outcome, trouble_kind=result.what)
        elif isinstance(result, BaseException):
            raise result
        else:
            worked = Worked.from_json(result)
        outcome = worked.outcome
        self.recalled.update(worked.cached_answers)
        if self.build is not None:
            self.catalog.record(self.build, [outcome], self.context.blobs, judged_again=True)
            self.catalog.record_attempts(worked.attempts)
        self.after[outcome.lead.key] = _Word.of(outcome)
        self.teller.notes(worked.notes, unit.source.uri)
        self.teller.settled(outcome, unit.source.uri, worked.trouble_kind)

    # --- reporting -----------------------------------------------------------------------------------------

    def _report(self, watch: Stopwatch) -> ValidationReport:
        admitted, demoted, errors, codes = [], [], [], [0]
        for key, word in sorted(self.after.items()):
            was = self.before[key]
            lost = was is OutcomeStatus.ADMITTED and word.status is OutcomeStatus.REJECTED
            if word.status is OutcomeStatus.OWED:
                codes.append(EnvsynthError.exit_code)
                errors.append(
                    f"{word.name}: owed a verdict; in the catalog it is {was.value} as before ({word.detail})"
                )
            if lost or (word.status is OutcomeStatus.REJECTED and self.selection.names):
                codes.append(1)
                errors.append(f"{word.name}: rejected, {word.reason} ({word.detail})")
            if lost:
                demoted.append(word.name)
            if word.status is OutcomeStatus.ADMITTED and was is not OutcomeStatus.ADMITTED:
                admitted.append(word.name)
        cost = watch.cost()
        return ValidationReport(
            catalog=self.config.catalog, build=self.build, selected=len(self.before),
            statuses=dict(Counter(word.status.value for word in self.after.values())),
            standing=len(self.before) - self._pending, funnel=tuple(self.catalog.funnel(sorted(self.before))),
            admitted=tuple(admitted), demoted=tuple(demoted), errors=tuple(errors),
            models=self.account.uses(self.recalled), seconds=cost.wall_s, cpu_s=cost.cpu_s, exit_code=max(codes),
        )  # fmt: skip
