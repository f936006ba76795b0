"""One unit of work: a lead becomes an outcome. Runs in a worker process; units and results travel as JSON text."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

from pydantic import Field

from envsynth import admission, plugins
from envsynth.asking import asked_for, fault_reason, roles_of, version_of
from envsynth.context import BuildContext
from envsynth.errors import (
    BudgetSpent,
    ConfigError,
    DiskFull,
    EndpointDown,
    EnvsynthError,
    ModelOutputError,
    SandboxTimeout,
    SandboxUnavailable,
    ValidatorError,
    boundary,
)
from envsynth.llm import ROLES, LlmSettings, Role
from envsynth.models import (
    Attempt,
    Candidate,
    Cost,
    Dropped,
    Finding,
    Lead,
    Model,
    Outcome,
    Source,
    Verdict,
    VerdictStatus,
    digest_of,
)  # fmt: skip
from envsynth.panel import first_panel
from envsynth.protocols import Generator, Validator
from envsynth.runtime.version import world_digest
from envsynth.timing import Stopwatch

__all__ = [
    "MODEL_STOPS",
    "STOPS",
    "Lent",
    "Unit",
    "Worked",
    "concluded",
    "environment_of",
    "generator",
    "judge",
    "keyed",
    "ladder",
    "leave_models",
    "measured_work",
    "roles_asked",
    "validators",
    "work",
]

MODEL_STOPS = (EndpointDown, BudgetSpent)
STOPS = (DiskFull, SandboxUnavailable, *MODEL_STOPS)
"""Errors after which no other lead would fare better: the build ends, and goes on from there when it is run again."""

_CLIMBS = (VerdictStatus.PASS, VerdictStatus.SKIP)
_NONE: Mapping[str, Verdict] = MappingProxyType({})
_NO_MODELS = LlmSettings()
_LENT: list[BuildContext] = []
"""What this process has lent to plug-ins."""
_REHEARSED: list[tuple[str, Mapping[str, Verdict]]] = []
"""The candidate that a generator had judged last, by digest, and what let it climb."""


class Lent(Model):
    """What a worker process needs, whatever it does with a lead."""

    lead: Lead
    source: Source
    ladder: str
    cache: Path
    sandbox: str
    offline: bool
    threads: int = 1
    """How many pieces of the work may be done at once."""
    llm: LlmSettings = LlmSettings()
    ledger: Path | None = None
    """What models cost is entered here; None: in the cache's folder."""


class Unit(Lent):
    """A lead to be worked on."""


class Worked(Model):
    """What a worker sends back."""

    outcome: Outcome
    trouble_kind: str = ""
    """What failed for the environment's sake, without where and why: equal for equal errors."""
    notes: tuple[str, ...] = ()
    cached_answers: dict[str, int] = Field(default_factory=dict)
    """Answers of models that came from the cache, by role."""
    attempts: tuple[Attempt, ...] = ()
    """Attempts that validators had made on the candidate."""


@cache
def generator(name: str) -> Generator:
    """A generator plug-in, made once a process."""
    return plugins.load("generators", name)()


def environment_of(plugin: Generator | Validator) -> str:
    """The kind of environment that a generator makes or a validator judges: `workspace` where it does not say."""
    return str(getattr(plugin, "environment", "workspace"))


@cache
def validators(kind: str) -> tuple[Validator, ...]:
    """Every validator of one kind of environment, in the order of the ladder.

    Raises:
        ConfigError: one without which nothing can be admitted is not installed.
    """
    missing = {*admission.REQUIRED[kind], *admission.HEARD[kind]}.difference(plugins.names("validators"))
    if missing:
        raise ConfigError(
            f"validators that admission asks for are not installed: {', '.join(sorted(missing))}",
            where="entry points envsynth.validators", cause="envsynth was updated in place and not installed again",
            next_step="install envsynth again, as its README says",
        )  # fmt: skip
    found = (plugins.load("validators", name)() for name in plugins.names("validators"))
    wanted = [validator for validator in found if environment_of(validator) == kind]
    return tuple(sorted(wanted, key=lambda validator: (validator.order, validator.name)))


def roles_asked(leads: Iterable[Lead], source: Source, kind: str) -> tuple[Role, ...]:
    """Roles of models that leads' generators ask for them, and the validators of their kind of environment."""
    asked = {role for lead in leads for role in asked_for(generator(lead.generator), lead, source)}
    asked.update(roles_of(validators(kind)))
    return tuple(role for role in ROLES if role in asked)


def keyed(lead: Lead, source: Source, llm: LlmSettings) -> Lead:
    """A lead as its generator planned it, with the models that the generator asks for it as a part of its key."""
    models = llm.identity(asked_for(generator(lead.generator), lead, source))
    return lead.model_copy(update={"settings": digest_of([lead.settings, models])}) if models else lead


def ladder(kind: str, llm: LlmSettings = _NO_MODELS) -> str:
    """Digest of everything that judges a candidate with one kind of environment.

    What plays worlds is part of it (judging one again takes less than a second), and so are the models that validators
    ask.
    """
    judges = []
    for validator in validators(kind):
        models = llm.identity(roles_of([validator]))
        judges.append([validator.name, validator.version, *([models] if models else [])])
    return digest_of([admission.VERSION, *judges, *([world_digest()] if kind == "world" else [])])


@cache
def _context(cache_dir: Path, sandbox: str, offline: bool, llm: LlmSettings, ledger: Path | None) -> BuildContext:
    context = BuildContext(cache_dir, sandbox=sandbox, offline=offline, llm=llm, ledger=ledger)
    context.judging = partial(_rehearsed, context)
    _LENT.append(context)
    return context


def _rehearsed(context: BuildContext, candidate: Candidate, source: Source) -> Sequence[Verdict]:
    """The ladder's verdicts on a candidate that is not handed in yet, without models; the latest are kept.

    What would ask a model speaks all the same where the role has none: deterministic code then stands in.
    """
    steps = [step for step in validators(candidate.environment.kind) if not context.llm.identity(roles_of([step]))]
    verdicts = judge(candidate, source, context, steps)
    kept = {verdict.validator: verdict for verdict in verdicts if verdict.status in _CLIMBS}
    _REHEARSED[:] = [(candidate.digest(), kept)]
    return verdicts


def _standing(candidate: Candidate) -> Mapping[str, Verdict]:
    """What validators said of just this candidate before it was handed in."""
    return next((kept for digest, kept in _REHEARSED if digest == candidate.digest()), _NONE)


def leave_models() -> None:
    """Close what this process has open to models; what was found out about their endpoints is forgotten."""
    for context in _LENT:
        context.leave_models()


def work(text: str) -> str:
    """Develop, validate and admit one lead.

    Args:
        text: JSON of a Unit; the result is JSON of a Worked.

    Raises:
        DiskFull, SandboxUnavailable, EndpointDown, BudgetSpent: no other lead would fare better.
    """
    unit = Unit.from_json(text)
    return measured_work(unit, lambda context: _settle(unit, context))


def measured_work(
    unit: Lent, settle: Callable[[BuildContext], tuple[Outcome, str]], owed: Outcome | None = None
) -> str:
    """Settle a lead in this process, with what it took.

    Args:
        unit: what was lent.
        settle: gives the outcome, and what kind of trouble kept it from a final one.
        owed: what it is where the environment fails; None: nothing but the lead.

    Returns:
        JSON of a Worked.

    Raises:
        DiskFull, SandboxUnavailable, EndpointDown, BudgetSpent: no other lead would fare better.
    """
    context = _context(unit.cache, unit.sandbox, unit.offline, unit.llm, unit.ledger)
    context.threads = unit.threads
    context.notes.clear()
    context.attempts.clear()
    context.disk_bytes = 0
    recalled = context.cached_answers
    watch = Stopwatch()
    owed = Outcome(lead=unit.lead, ladder=unit.ladder) if owed is None else owed
    try:
        outcome, trouble_kind = settle(context)
    except STOPS:
        raise
    except EnvsynthError as error:
        outcome, trouble_kind = owed.model_copy(update={"trouble": str(error)}), error.what
    cost = owed.cost + watch.cost() + Cost(disk_bytes=context.disk_bytes)
    outcome = outcome.model_copy(update={"cost": cost})
    return Worked(
        outcome=outcome, trouble_kind=trouble_kind, notes=tuple(context.notes), attempts=tuple(context.attempts),
        cached_answers={role: count - recalled.get(role, 0) for role, count in context.cached_answers.items()},
    ).to_json()  # fmt: skip


def _settle(unit: Unit, context: BuildContext) -> tuple[Outcome, str]:
    """What the lead came to, and what kind of trouble kept it from a final outcome.

    What a generator says is owed concerns its own lead, such as an interpreter that is not installed; it is no sign
    that other leads would fare the same.
    """
    lead, source = unit.lead, unit.source
    candidate: Candidate | Dropped
    try:
        with boundary(EnvsynthError, "the generator failed", where=f"{source.uri} {lead.ref[:12]}"):
            candidate = generator(lead.generator).develop(lead, source, context)
    except ModelOutputError as error:
        candidate = Dropped(lead=lead, reason=fault_reason(error), detail=str(error))
    outcome = Outcome(lead=lead, ladder=unit.ladder)
    if isinstance(candidate, Dropped):
        owed = (candidate.detail or candidate.reason) if candidate.retryable else ""
        return outcome.model_copy(update={"dropped": candidate, "trouble": owed}), ""
    steps = validators(candidate.environment.kind)
    verdicts = judge(candidate, source, context, steps, _standing(candidate) if _REHEARSED else _NONE)
    _REHEARSED.clear()
    return concluded(outcome, candidate, verdicts, context)


def concluded(
    outcome: Outcome,
    candidate: Candidate,
    verdicts: Sequence[Verdict],
    context: BuildContext,
    required: Sequence[str] | None = None,
) -> tuple[Outcome, str]:
    """The outcome with its verdicts and, where they admit it, its task; and the kind of trouble, if any."""
    with boundary(EnvsynthError, "the panel cannot be made", where=candidate.id):
        panel = first_panel(candidate, context.blobs)
    task = admission.admit(candidate, verdicts, panel, required)
    failed = next((v for v in verdicts if v.status in (VerdictStatus.ERROR, VerdictStatus.TIMEOUT)), None)
    trouble = failed.findings[0].message if failed and failed.findings else ""
    update = {"candidate": candidate, "verdicts": tuple(verdicts), "task": task, "trouble": trouble}
    return outcome.model_copy(update=update), f"{failed.validator} {failed.reason}" if failed else ""


def judge(
    candidate: Candidate,
    source: Source,
    context: BuildContext,
    steps: Sequence[Validator],
    standing: Mapping[str, Verdict] = _NONE,
    again: Container[str] = (),
) -> list[Verdict]:
    """Climb the ladder; stop at the first verdict that is not PASS or SKIP.

    Args:
        candidate: what is judged.
        source: where it comes from.
        context: what is lent to validators.
        steps: validators, lowest first.
        standing: verdicts of an earlier climb by validator; they are kept.
        again: validators that are asked all the same. Where one of them measures other tests or controls than before,
            so is everything above it, for that is what the steps above read.
    """
    verdicts: list[Verdict] = []
    moved = False
    for validator in steps:
        verdict = standing.get(validator.name)
        if verdict is None or moved or validator.name in again:
            verdict = _one_verdict(validator, candidate, source, context, verdicts)
            moved = moved or _read_above(verdict) != _read_above(standing.get(validator.name))
        verdicts.append(verdict)
        if verdict.status not in _CLIMBS:
            break
    return verdicts


def _read_above(verdict: Verdict | None) -> object:
    """What the steps above read of a verdict."""
    return (None, ()) if verdict is None else (verdict.tests, verdict.controls)


def _one_verdict(
    validator: Validator, candidate: Candidate, source: Source, context: BuildContext, earlier: Sequence[Verdict]
) -> Verdict:
    watch, version = Stopwatch(), version_of(validator, context.llm)
    try:
        with boundary(ValidatorError, f"validator {validator.name} failed", where=candidate.id):
            verdict = validator.validate(candidate, source, context, tuple(earlier))
        return verdict if version == validator.version else verdict.model_copy(update={"version": version})
    except STOPS:
        raise
    except ModelOutputError as error:
        # A model that says nothing of use says nothing against the candidate; but what must be proved was not.
        needed = validator.name in admission.REQUIRED[candidate.environment.kind]
        return Verdict(
            validator=validator.name,
            version=version,
            status=VerdictStatus.FAIL if needed else VerdictStatus.SKIP,
            findings=(Finding(rule=fault_reason(error), message=str(error)),),
            cost=watch.cost(),
        )
    except EnvsynthError as error:
        timed_out = isinstance(error, SandboxTimeout)
        return Verdict(
            validator=validator.name,
            version=version,
            status=VerdictStatus.TIMEOUT if timed_out else VerdictStatus.ERROR,
            findings=(Finding(rule="environment_error", message=str(error)),),
            cost=watch.cost(),
        )
