"""The stages: what each artefact is called, what its author is shown, and what it is examined by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from envsynth.generators.business.authored import artefacts as a
from envsynth.generators.business.authored.bench import Bench
from envsynth.generators.business.authored.draft import Draft
from envsynth.generators.business.authored.examine_task import (
    examine_checks,
    examine_hint,
    examine_instruction,
    examine_plan,
    examine_rubric,
)
from envsynth.generators.business.authored.examine_world import (
    examine_brief,
    examine_policies,
    examine_rows,
    examine_schema,
    examine_tools,
)
from envsynth.generators.business.authored.faults import Fault
from envsynth.llm import Message, Prompt, load_prompt, quoted, system, user
from envsynth.models import Model, ToolCall, digest_of
from envsynth.models.base import canonical_json

__all__ = ["STAGES", "TASK", "WORLD", "Assignment", "Stage", "messages_of", "prompts_version", "text_of", "wishes"]

Kind = type[Model]
_PROMPTS = Path(__file__).with_name("prompts")

WORLD: tuple[Kind, ...] = (a.Brief, a.Schema, a.Policies, a.Tools, a.Rows)
TASK: tuple[Kind, ...] = (a.Plan, a.Instruction, a.Checks, a.Rubric)


class Assignment(NamedTuple):
    """What is asked for from outside the draft."""

    material: str
    """What a world is to be about; text from outside is quoted."""
    draw: int
    """Other worlds of the same material have other numbers."""
    number: int = 1
    """Of the world in its source, or of the task in its world, from 1."""
    level: int = 1
    vagueness: int = 0

    def matter(self, brief: a.Brief) -> a.Matter:
        """The matter of this task: they are taken in turn."""
        return brief.matters[(self.number - 1) % len(brief.matters)]


class Stage(NamedTuple):
    """One kind of artefact."""

    artefact: str
    """In words."""
    prompt: str
    """Name of its file."""
    places: Callable[[Draft, Assignment], dict[str, str]]
    """What stands in its prompt."""
    examine: Callable[[Draft, Bench], Iterable[Fault]]
    sql: bool = True
    """Whether its author must know the world format."""


def messages_of(stage: Stage, draft: Draft, assignment: Assignment) -> tuple[Message, ...]:
    """The conversation that asks for an artefact."""
    texts = [_prompt("system").text, *([_prompt("format").text] if stage.sql else [])]
    return (system("\n\n".join(texts)), user(_prompt(stage.prompt).fill(**stage.places(draft, assignment))))


@cache
def prompts_version() -> str:
    """Digest of every prompt, of the typed documents, and of how wishes are put."""
    texts = {path.name: path.read_text("utf-8") for path in sorted(_PROMPTS.glob("*.md"))}
    schemas = {kind.__name__: kind.model_json_schema() for kind in STAGES}
    return digest_of([texts, schemas, _WISHES.read_text("utf-8")])


_WISHES = Path(__file__).with_name("wishes.yaml")


@cache
def wishes() -> Mapping[str, Mapping[int, str]]:
    """How levels and kinds of vagueness are put, by number."""
    found: Mapping[str, Mapping[int, str]] = yaml.safe_load(_WISHES.read_text("utf-8"))
    return found


def _prompt(name: str) -> Prompt:
    return load_prompt(_PROMPTS / f"{name}.md")


def _shown(draft: Draft, *kinds: Kind) -> dict[str, str]:
    """Artefacts by the name of their place, each as quoted JSON."""
    names = {kind.__name__.lower(): kind for kind in kinds}
    return {name: quoted(text_of(draft.of(kind)), name) for name, kind in names.items()}


def text_of(artefact: Model) -> str:
    """An artefact as a model writes it: JSON, without what goes without saying."""
    return canonical_json(artefact.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def _calls(calls: Sequence[ToolCall]) -> str:
    return quoted("\n".join(canonical_json(call.document()) for call in calls), "reference")


def _of_brief(draft: Draft, assignment: Assignment) -> dict[str, str]:
    return {"material": assignment.material, "number": str(assignment.number)}


def _of_plan(draft: Draft, assignment: Assignment) -> dict[str, str]:
    matter = assignment.matter(draft.of(a.Brief))
    return {
        **_shown(draft, *WORLD), "matter": quoted(f"{matter.name}: {matter.asks}", "matter"),
        "number": str(assignment.number), "level": wishes()["levels"][assignment.level],
    }  # fmt: skip


def _of_instruction(draft: Draft, assignment: Assignment) -> dict[str, str]:
    brief, plan = draft.of(a.Brief), draft.of(a.Plan)
    request = "\n".join((f"Who asks: {plan.person}", f"What they want: {plan.wants}", "What they know:", *plan.knows))
    return {
        "agent": quoted(f"{brief.title}\n{brief.agent}\n{brief.story}", "organisation"),
        "request": quoted(request, "request"),
        "vagueness": wishes()["vagueness"][assignment.vagueness],
    }


def _of_checks(draft: Draft, assignment: Assignment) -> dict[str, str]:
    brief = draft.of(a.Brief)
    clock = quoted(f"It is {brief.clock}. Money: {brief.money}.", "clock")
    return {
        "instruction": quoted(draft.of(a.Instruction).text, "request"), "clock": clock,
        **_shown(draft, a.Schema, a.Policies, a.Tools, a.Rows),
    }  # fmt: skip


def _of_rubric(draft: Draft, assignment: Assignment) -> dict[str, str]:
    return {**_of_hint(draft, assignment), **_shown(draft, a.Tools)}


def _of_hint(draft: Draft, assignment: Assignment) -> dict[str, str]:
    return {
        "instruction": quoted(draft.of(a.Instruction).text, "request"),
        "reference": _calls(draft.of(a.Plan).reference),
        **_shown(draft, a.Policies),
    }


def _showing(*kinds: Kind) -> Callable[[Draft, Assignment], dict[str, str]]:
    return lambda draft, assignment: _shown(draft, *kinds)


STAGES: Mapping[Kind, Stage] = {
    a.Brief: Stage("brief", "brief", _of_brief, examine_brief, sql=False),
    a.Schema: Stage("list of tables", "schema", _showing(a.Brief), examine_schema),
    a.Policies: Stage("manual with its invariants", "policies", _showing(a.Brief, a.Schema), examine_policies),
    a.Tools: Stage("list of tools", "tools", _showing(*WORLD[:3]), examine_tools),
    a.Rows: Stage("rows", "rows", _showing(*WORLD[:4]), examine_rows),
    a.Plan: Stage("plan", "plan", _of_plan, examine_plan),
    a.Instruction: Stage("instruction", "instruction", _of_instruction, examine_instruction, sql=False),
    a.Checks: Stage("list of checks", "checks", _of_checks, examine_checks),
    a.Rubric: Stage("rubric", "rubric", _of_rubric, examine_rubric),
    a.Hint: Stage("hint", "hint", _of_hint, examine_hint, sql=False),
}
