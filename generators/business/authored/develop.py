"""A lead developed by a model: its world, written once for all tasks of it, and one task in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import Field, JsonValue

from envsynth.errors import ConfigError
from envsynth.generators.business.authored.artefacts import Brief, Hint, Plan
from envsynth.generators.business.authored.bench import Bench
from envsynth.generators.business.authored.blame import faults_of
from envsynth.generators.business.authored.candidate import candidate_of
from envsynth.generators.business.authored.desk import Desk
from envsynth.generators.business.authored.draft import Draft
from envsynth.generators.business.authored.examine_world import examine_world
from envsynth.generators.business.authored.faults import Fault, Overdrawn
from envsynth.generators.business.authored.leads import VERSION, Errand, errand_of, wanted_of
from envsynth.generators.business.authored.stages import TASK, WORLD, Assignment, prompts_version
from envsynth.generators.business.authored.subject import Subject, subject_of
from envsynth.generators.business.config import Wishes
from envsynth.llm import Client
from envsynth.models import Candidate, Dropped, Lead, Model, Source, digest_of
from envsynth.protocols import Context

__all__ = ["Job", "develop_authored"]

LEAST_TOKENS = 8_000
"""Of an answer: rows and tools are long."""
_KIND = "authored-worlds"
_KINDS = {kind.__name__: kind for kind in WORLD}


class Job(NamedTuple):
    """What is to be written for a lead."""

    lead: Lead
    source: Source
    settings: Wishes
    scene: str
    """What the source itself says of its worlds; empty: nothing."""
    hint: bool = False
    """Whether the task has a hint, so that rollouts can measure what it is worth."""


class _Kept(Model):
    """A world as it is kept for its other tasks."""

    artefacts: dict[str, JsonValue]
    """Documents by the kind's name."""
    repairs: list[JsonValue] = Field(default_factory=list)


def develop_authored(job: Job, context: Context) -> Candidate | Dropped:
    """Have a lead's world and task written, each examined and mended as it comes.

    Args:
        job: what is wanted.
        context: lends the model, the cache and the ladder.

    Raises:
        ConfigError: no author model is configured, or a file of the source line is gone.
        ModelError: as for `llm.Client.structured_reply`.
    """
    lead, source = job.lead, job.source
    client = context.model("author")
    if client is None:
        raise ConfigError(
            "the lead is written by a model, and no author model is configured", where=f"{lead.source} {lead.ref}",
            next_step="name one with --llm MODEL or under [llm.author] of envsynth.toml",
        )  # fmt: skip
    if client.settings.sampling.max_tokens < LEAST_TOKENS:
        context.note(
            f"answers of {client.settings.model} are cut at {client.settings.sampling.max_tokens} tokens, and worlds"
            f" are long: set sampling = {{ max_tokens = {2 * LEAST_TOKENS} }} in [llm.author] of envsynth.toml"
        )
    errand = errand_of(lead)
    subject = subject_of(wanted_of(job.settings), source, errand.world, job.scene)
    with Bench(context.blobs, lambda candidate: context.judged(candidate, source), lead) as bench:
        try:
            world, repairs = _world(job, errand, subject, client, bench, context)
            return _task(job, errand, (world, repairs, subject.metadata), client, bench)
        except Overdrawn as end:
            return Dropped(lead=lead, reason=end.worst.finding.rule, detail=str(end))


def _world(
    job: Job, errand: Errand, subject: Subject, client: Client, bench: Bench, context: Context
) -> tuple[Draft, Sequence[JsonValue]]:
    """The world of a lead, and what went back on the way."""
    draw = _draw("world", job.lead.seed, errand.place, errand.process, errand.world)

    def write() -> str:
        desk = Desk(client, bench, Assignment(subject.material, draw, errand.world + 1))
        draft = desk.finish(Draft(), WORLD, lambda whole: examine_world(whole, bench))
        return _Kept(artefacts=draft.document(), repairs=[one.document() for one in desk.repaired]).to_json()

    settings = client.settings
    model = [settings.model, settings.sampling.document(), settings.max_chars]
    key = digest_of([VERSION, prompts_version(), model, subject.material, errand.world, draw])
    kept = _Kept.from_json(context.remember(_KIND, key, write))
    artefacts = {kind: kind.model_validate(kept.artefacts[name]) for name, kind in _KINDS.items()}
    return Draft(artefacts), kept.repairs


def _task(
    job: Job,
    errand: Errand,
    world: tuple[Draft, Sequence[JsonValue], dict[str, JsonValue]],
    client: Client,
    bench: Bench,
) -> Candidate:
    """One task in a world that is written."""
    start, repairs, grounds = world
    draw = _draw("task", job.lead.seed, job.lead.ref)
    desk = Desk(client, bench, Assignment("", draw, errand.task + 1, errand.level, errand.vagueness))
    author = client.settings.model

    def whole(draft: Draft) -> Candidate:
        repaired: JsonValue = {"world": list(repairs), "task": [one.document() for one in desk.repaired]}
        return candidate_of(draft, bench, author, {**_metadata(errand, draft), **grounds, "repairs": repaired})

    def examined(draft: Draft) -> list[Fault]:
        return faults_of(bench.judge(whole(draft)))

    kinds = (*WORLD, *TASK, *((Hint,) if job.hint else ()))
    return whole(desk.finish(start, kinds, examined))


def _metadata(errand: Errand, draft: Draft) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {
        "world": draft.of(Brief).title,
        "matter": draft.of(Plan).matter,
        "level": errand.level,
        "vagueness": errand.vagueness,
        "calls": len(draft.of(Plan).reference),
        "prompts": prompts_version()[:16],
    }
    return told | ({"process": errand.process, "country": errand.place} if errand.process else {})


def _draw(*names: object) -> int:
    """A draw that depends on names alone: neighbours share nothing."""
    return int(digest_of(json.loads(json.dumps(names, default=str)))[:12], 16)
