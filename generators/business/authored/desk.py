"""An author's desk: artefacts are written one after the other, and one at a time goes back with what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from pydantic import JsonValue

from envsynth.errors import GeneratorError, ModelMalformed, boundary
from envsynth.generators.business.authored.artefacts import (
    Checks,
    Hint,
    Instruction,
    Plan,
    Rubric,
    Tools,
)
from envsynth.generators.business.authored.bench import Bench
from envsynth.generators.business.authored.draft import Draft
from envsynth.generators.business.authored.examine_task import REFUSES_ALL
from envsynth.generators.business.authored.faults import Fault, Overdrawn, fault, of_one
from envsynth.generators.business.authored.stages import STAGES, Assignment, messages_of, prompts_version, text_of
from envsynth.llm import REPAIRS, Client, Message, assistant, told, user
from envsynth.models import Finding, Model

__all__ = ["Desk", "Repaired"]

A = TypeVar("A", bound=Model)
Kind = type[Model]
READERS = 2
"""Checks that reject what is right, or pass what is wrong, so often are those of careful readers: then it is the plan
that is in doubt."""
_DISAGREE = frozenset({"right_rejected", "wrong_passes"})
_MALFORMED = "malformed"
_AFTER_PLAN: tuple[Kind, ...] = (Instruction, Checks, Rubric, Hint)
"""Written from a plan, and out of date where it wants something else."""


class Repaired(NamedTuple):
    """One artefact that went back."""

    artefact: str
    rules: tuple[str, ...]

    def document(self) -> dict[str, JsonValue]:
        """For metadata."""
        return {"artefact": self.artefact, "rules": list(self.rules)}


class Desk:
    """Where one world, or one task, is written; counts what goes back."""

    def __init__(self, client: Client, bench: Bench, assignment: Assignment) -> None:
        """A desk.

        Args:
            client: the author's model.
            bench: where drafts are tried out.
            assignment: what is to be written.
        """
        self._client = client
        self._bench = bench
        self._assignment = assignment
        self.repaired: list[Repaired] = []

    def finish(self, draft: Draft, kinds: Sequence[Kind], last: Callable[[Draft], Sequence[Fault]]) -> Draft:
        """A draft that has artefacts of some kinds, in none of which anything is found.

        Args:
            draft: what there is.
            kinds: in the order in which they are written.
            last: examines the whole.

        Raises:
            Overdrawn: something was found after the last repair.
            ModelError: as for `Client.structured_reply`.
        """
        while True:
            draft, faults = self._as_far_as_possible(draft, kinds)
            faults = faults or list(last(draft))
            if not faults:
                return draft
            draft = self._repair(draft, faults)

    def _as_far_as_possible(self, draft: Draft, kinds: Sequence[Kind]) -> tuple[Draft, list[Fault]]:
        """Write what is missing until something is found; everything is examined again, for one changes the other."""
        for kind in kinds:
            stage = STAGES[kind]
            if not draft.has(kind):
                draft = draft.put(self._written(kind, messages_of(stage, draft, self._assignment), ()))
            faults = self._examined(kind, draft)
            if faults:
                return draft, faults
        return draft, []

    def _examined(self, kind: Kind, draft: Draft) -> list[Fault]:
        """What is found in an artefact; one on which an examination breaks is no better than one that fails it."""
        try:
            with boundary(GeneratorError, "the artefact cannot be examined", where=kind.__name__):
                return list(STAGES[kind].examine(draft, self._bench))
        except GeneratorError as exc:
            return [fault(kind, "not_examinable", exc.cause or exc.what)]

    def _repair(self, draft: Draft, faults: Sequence[Fault]) -> Draft:
        kind, findings = of_one(faults)
        if kind is Checks and findings[0].rule in _DISAGREE and self._readers() >= READERS:
            kind, findings = Plan, (_in_doubt(findings),)
        if kind is Plan and findings[0].rule == REFUSES_ALL and self._refusals() >= READERS:
            kind, findings = Tools, (_never_succeeds(findings[0]),)
        if len(self.repaired) >= REPAIRS:
            raise Overdrawn([Fault(kind, finding) for finding in findings], len(self.repaired))
        self.repaired.append(Repaired(kind.__name__, tuple(dict.fromkeys(finding.rule for finding in findings))))
        stage, old = STAGES[kind], draft.of(kind)
        last = (assistant(text_of(old)), user(told(stage.artefact, findings)))
        new = self._written(kind, messages_of(stage, draft, self._assignment), last)
        return _up_to_date(draft.put(new), old, new)

    def _readers(self) -> int:
        return sum(one.artefact == Checks.__name__ and not _DISAGREE.isdisjoint(one.rules) for one in self.repaired)

    def _refusals(self) -> int:
        return sum(REFUSES_ALL in one.rules for one in self.repaired)

    def _written(self, kind: type[A], messages: tuple[Message, ...], last: tuple[Message, ...]) -> A:
        """An artefact; one that is no such document goes back once, which counts too."""
        answer = self._client.structured_reply(
            (*messages, *last), kind, prompt_version=prompts_version()[:16], draw=self._draw(kind, last),
            repairs=1 if len(self.repaired) < REPAIRS else 0,
        )  # fmt: skip
        self.repaired += [Repaired(kind.__name__, (_MALFORMED,))] * (len(answer.replies) - 1)
        with boundary(ModelMalformed, f"the answer is no {kind.__name__}", where=self._client.settings.model):
            text_of(answer.value).encode()  # numbers without an end and halves of characters are in no document
        return answer.value

    def _draw(self, kind: Kind, last: tuple[Message, ...]) -> int:
        """Worlds and plans are drawn; a repair that is asked for again in the same words is another draw."""
        first = self._assignment.draw if kind not in _AFTER_PLAN else 0
        return first + len(self.repaired) if last else first


def _in_doubt(findings: Sequence[Finding]) -> Finding:
    said = "; ".join(finding.message for finding in findings[:3])
    message = (
        "whoever reads the request, the manual and the rows judges these trajectories otherwise, again and again"
        f" ({said}): work the end out anew, leave out what is not wrong, or say what is wanted without doubt"
    )
    return Finding(rule="readers_disagree", message=message)


def _never_succeeds(finding: Finding) -> Finding:
    message = f"no plan gets a call of this tool through ({finding.message}): mend its guards"
    return Finding(rule="tool_never_succeeds", message=message)


def _up_to_date(draft: Draft, old: Model, new: Model) -> Draft:
    """Without what was written from a plan that wanted something else."""
    if isinstance(old, Plan) and isinstance(new, Plan):
        wanted = [(one.matter, one.person, one.wants, one.knows) for one in (old, new)]
        return draft.without(*_AFTER_PLAN) if wanted[0] != wanted[1] else draft
    return draft
