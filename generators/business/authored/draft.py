"""What has been written so far, and the world that it makes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from pydantic import JsonValue

from envsynth.generators.business import manual
from envsynth.generators.business.authored.artefacts import Brief, Policies, Rows, Schema, Tools
from envsynth.models import Model, Table, World

__all__ = ["PAGES", "Draft", "tables_of", "world_of"]

A = TypeVar("A", bound=Model)
Kind = type[Model]

PAGES = "pages"
"""The table of the manual."""
_LONGEST_ID = 40
_NOTHING: Mapping[Kind, Model] = MappingProxyType({})


class Draft:
    """Artefacts by kind; never changed, a new one is made of it."""

    def __init__(self, written: Mapping[Kind, Model] = _NOTHING) -> None:
        self._written = dict(written)

    def has(self, kind: Kind) -> bool:
        """Whether an artefact of a kind is there."""
        return kind in self._written

    def of(self, kind: type[A]) -> A:
        """The artefact of a kind. Raises KeyError where there is none."""
        found = self._written[kind]
        assert isinstance(found, kind)
        return found

    def put(self, artefact: Model) -> Draft:
        """With an artefact, in place of the one of its kind."""
        return Draft({**self._written, type(artefact): artefact})

    def without(self, *kinds: Kind) -> Draft:
        """Without the artefacts of some kinds."""
        return Draft({kind: artefact for kind, artefact in self._written.items() if kind not in kinds})

    def document(self) -> dict[str, JsonValue]:
        """Every artefact's document, by the kind's name."""
        return {kind.__name__: artefact.document() for kind, artefact in self._written.items()}


def tables_of(draft: Draft) -> tuple[Table, ...]:
    """All tables of the world, that of the manual last."""
    return (*draft.of(Schema).tables, manual.table(PAGES))


def world_of(draft: Draft) -> World:
    """The world of a brief, tables, policies and tools; its tables are empty where no rows are written.

    Raises:
        ValueError: the artefacts do not fit together.
    """
    brief, policies = draft.of(Brief), draft.of(Policies)
    pages = [manual.Page(page.page, page.title, page.body) for page in policies.pages]
    rows = dict(draft.of(Rows).rows) if draft.has(Rows) else {}
    return World(
        id=_slug(brief.title),
        clock=brief.clock,
        tables=tables_of(draft),
        rows={**rows, PAGES: tuple(tuple(page) for page in sorted(pages))},
        tools=(*manual.tools(pages, PAGES), *draft.of(Tools).tools),
        invariants=policies.invariants,
    )


def _slug(title: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return plain[:_LONGEST_ID].strip("-") or "world"
