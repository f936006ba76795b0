"""Judging a candidate again: which of its verdicts stand, and the unit of work that renews the rest.

A verdict stands while its validator has the version that said it, the models that it asks are the same, and the
environment did not fail. What a candidate comes to is what a fresh build would have said: the ladder is climbed from
below, kept verdicts cost nothing, a step whose input changed is taken again, and nothing above a FAIL is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envsynth import admission, work
from envsynth.asking import version_of
from envsynth.context import BuildContext
from envsynth.errors import EnvsynthError, boundary
from envsynth.llm import LlmSettings
from envsynth.models import Digest, Outcome, OutcomeStatus, Verdict, VerdictStatus, digest_of
from envsynth.protocols import Validator
from envsynth.work import Lent

__all__ = ["Climb", "Revision", "owed", "plan", "rework"]

_OWED = (VerdictStatus.ERROR, VerdictStatus.TIMEOUT)
_ENDS = (*_OWED, VerdictStatus.FAIL)


class Revision(Lent):
    """A judged candidate that is to be judged again."""

    standing: Digest
    """Blob of the outcome that stands."""
    only: tuple[str, ...] = ()
    """Validators that are looked at; empty: all."""
    force: bool = False
    """Whether those are asked even where their verdict stands."""


class Climb(NamedTuple):
    """What judging again does."""

    steps: tuple[Validator, ...]
    """Validators whose verdicts the outcome will have, as far as they are reached."""
    again: frozenset[str]
    """Those whose verdict does not stand."""


def plan(
    standing: Outcome, steps: Sequence[Validator], llm: LlmSettings, ladder: str, only: Sequence[str], force: bool
) -> Climb | None:
    """What has to be done for an outcome; None where it stands.

    Args:
        standing: an outcome with a candidate.
        steps: every validator of its kind of environment, lowest first.
        llm: the models that they would ask.
        ladder: digest of all that.
        only: names of those that are looked at; empty: all. What is missing or owed below one of them that is due is
            asked too, because each step reads what those below measured. Another validator's verdict that is missing
            above is asked only where there is no task to lose: a candidate that gets past the step that had stopped
            it climbs as far as in a build.
        force: whether they are asked even where their verdict stands.
    """
    said = {verdict.validator: verdict for verdict in standing.verdicts}
    due: set[str] = set()
    highest = 0
    for position, step in enumerate(steps):
        verdict = said.get(step.name)
        if (not only or step.name in only) and (force or not _stands(verdict, step, llm)):
            due.add(step.name)
            highest = position
        elif verdict is not None and verdict.status is VerdictStatus.FAIL:
            break
    if not due:
        # The same verdicts under another ladder: a version above a FAIL, or a rule of admission.
        return None if only or standing.ladder == ladder else Climb(tuple(steps), frozenset())
    below = {step.name for step in steps[:highest] if step.name not in said or said[step.name].status in _OWED}
    again = frozenset(due | below)
    if only and standing.task is not None:
        return Climb(tuple(step for step in steps if step.name in said or step.name in again), again)
    return Climb(tuple(steps), again)


def _stands(verdict: Verdict | None, step: Validator, llm: LlmSettings) -> bool:
    return verdict is not None and verdict.version == version_of(step, llm) and verdict.status not in _OWED


def owed(standing: Outcome, current: str) -> Outcome:
    """What an error of the environment makes of an outcome that is judged again: owed, with nothing measured lost.

    Args:
        standing: what stands.
        current: the ladder it was to be judged by.
    """
    kept = standing.verdicts if standing.status is OutcomeStatus.OWED else ()
    update = {"ladder": current, "task": None, "trouble": "", "verdicts": kept}
    return standing.model_copy(update=update)


def rework(text: str) -> str:
    """Judge a candidate again.

    Args:
        text: JSON of a Revision; the result is JSON of a Worked.

    Raises:
        DiskFull, SandboxUnavailable, EndpointDown, BudgetSpent: no other candidate would fare better.
    """
    unit = Revision.from_json(text)
    with boundary(EnvsynthError, "the cache lost what was put into it", next_step="run the same command again"):
        standing = Outcome.from_json(BuildContext(unit.cache).blobs.get(unit.standing))
    return work.measured_work(unit, lambda context: _renewed(unit, standing, context), owed(standing, unit.ladder))


def _renewed(unit: Revision, standing: Outcome, context: BuildContext) -> tuple[Outcome, str]:
    candidate = standing.candidate
    if candidate is None:
        return standing, ""
    kind = candidate.environment.kind
    installed, ladder = work.validators(kind), work.ladder(kind, unit.llm)
    climb = plan(standing, installed, unit.llm, ladder, unit.only, unit.force)
    if climb is None:
        return standing, ""
    said = {verdict.validator: verdict for verdict in standing.verdicts}
    verdicts = work.judge(candidate, unit.source, context, climb.steps, said, climb.again)
    current = [[step.name, version_of(step, unit.llm)] for step in installed]
    judged_by = _ladder_of(verdicts, current, ladder)
    required: Sequence[str] | None = None
    if judged_by != ladder and standing.task is not None:
        required = [verdict.validator for verdict in verdicts if verdict.validator in admission.REQUIRED[kind]]
    outcome = Outcome(lead=standing.lead, ladder=judged_by)
    return work.concluded(outcome, candidate, verdicts, context, required)


def _ladder_of(verdicts: Sequence[Verdict], installed: Sequence[Sequence[str]], ladder: str) -> str:
    """The installed ladder where these verdicts are all that a build would have; else the digest of what judged.

    Args:
        verdicts: of the validators that judged.
        installed: name and version of each that is installed, lowest first.
        ladder: their digest.
    """
    climbed = [[verdict.validator, verdict.version] for verdict in verdicts]
    ended = bool(verdicts) and verdicts[-1].status in _ENDS
    if climbed == installed[: len(climbed)] and (ended or len(climbed) == len(installed)):
        return ladder
    return digest_of([admission.VERSION, *climbed])
