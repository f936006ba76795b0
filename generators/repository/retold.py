"""The deterministic instruction in other words: what the failing tests demand stays said, code examples stay as is."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from envsynth.generators.repository.authored import Brief
from envsynth.generators.repository.config import Settings
from envsynth.generators.repository.instruction import Written
from envsynth.generators.repository.vagueness import level_of
from envsynth.leaks import leaks
from envsynth.llm import Client
from envsynth.models import Finding, Lead, Source, digest_of
from envsynth.options import needs_author
from envsynth.protocols import Context
from envsynth.rewriting import Original, facts_said, rewrite, rewriting_version, says

__all__ = ["original_of", "rekeyed", "reworded", "rewriter_of"]


def rewriter_of(settings: Settings, source: Source, context: Context) -> Client | None:
    """The model that rewrites instructions; None: none is wanted.

    Raises:
        ConfigError: it is wanted, and the author role has none.
    """
    if not settings.rewrite:
        return None
    client = context.model("author")
    if client is None:
        raise needs_author("rewrite=", source)
    return client


def rekeyed(lead: Lead, settings: Settings) -> Lead:
    """A lead whose instruction is rewritten: to which level, and how the model is asked, are part of the work."""
    level = level_of(settings.rewrite, lead.seed, lead.ref)
    return lead.model_copy(update={"settings": digest_of([lead.settings, "rewrite", level, rewriting_version()])})


def original_of(text: str, brief: Brief) -> Original:
    """An instruction with what the failing tests demand: its numbers, names and quoted texts that stand in them.

    None of it may be left out: that a value stands in some file tells nobody that it is the one that is meant.
    """
    tests = "\n".join([*brief.tests.values(), *(excerpt.code for excerpt in brief.material.excerpts)])
    facts = tuple(fact for fact in facts_said(text) if says(tests, fact.spelled.strip("`")))
    secrets = brief.material.secrets

    def objections(answer: str) -> Iterable[Finding]:
        if said := leaks(answer, secrets):
            yield Finding(rule="rewrite_leaks", message=f"it gives away {', '.join(map(repr, said[:3]))}")

    added = [line[1:] for line in brief.diff.splitlines() if line.startswith("+") and not line.startswith("+++ ")]
    return Original(text, facts, secrets=("\n".join(added),), objections=objections)


def reworded(written: Written, brief: Brief, settings: Settings, lead: Lead, client: Client | None) -> Written:
    """An instruction in other words, where that is wanted.

    Raises:
        ModelEndpointError, BudgetSpent: as for `llm.author`.
    """
    if client is None or written.reason:
        return written
    done = rewrite(client, original_of(written.text, brief), level_of(settings.rewrite, lead.seed, lead.ref))
    told: dict[str, JsonValue] = {"rewrite": done.metadata()}
    author = written.author if done.reason else done.model
    return written._replace(text=done.text, author=author, notes={**written.notes, **told})
