"""Referring expressions: how a person names one thing among all that there are.

The incremental algorithm (Dale and Reiter 1995, Cognitive Science 19): attributes are tried in a fixed order, each is
taken that rules out something else, until nothing else is left. Relations are described the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.business import speech
from envsynth.generators.business.blueprint import Attribute, Entity
from envsynth.generators.business.changes import literal
from envsynth.generators.business.scene import Scene
from envsynth.models import ToolCall

_OF_OWNER = re.compile(r"\$([a-z][a-z0-9_]*)\.([a-z][a-z0-9_]*)")
_OF_ITSELF = re.compile(r"\$([a-z][a-z0-9_]*)")
_AFTER_WORD = re.compile(r"\b(since|until|till|before|after|from|by|of|for) \{value\}")
_MAX_DEPTH = 3
"""A thing of a thing of a thing; a longer chain nobody follows."""


class Referral(NamedTuple):
    """One expression."""

    phrase: str
    unique: str
    """A query on the initial state that is true because the expression fits this one thing only."""
    said: frozenset[JsonValue]
    """Values that it tells."""
    look_up: ToolCall | None
    """A read that shows the thing to whoever knows what the expression says; None where it is named by its key."""


@dataclass
class _Described:
    """A description in the making."""

    entity: Entity
    row: Mapping[str, JsonValue]
    """By column, in the industry's names."""
    key: str
    table: str
    alias: str
    joins: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    number: str = ""
    """The key, where it is told."""
    phrases: list[tuple[Attribute, str]] = field(default_factory=list)
    said: set[JsonValue] = field(default_factory=set)
    owners: dict[str, _Described] = field(default_factory=dict)
    """By entity."""

    def query(self, what: str, more: Sequence[str] = ()) -> str:
        """A SELECT over all that the description fits."""
        conditions = " AND ".join((*self.conditions, *more)) or "1"
        return f'SELECT {what} FROM "{self.table}" {self.alias} {" ".join(self.joins)} WHERE {conditions}'


def by_key(scene: Scene, entity: Entity, key: JsonValue) -> Referral:
    """The thing's number."""
    found = _begin(scene, entity, key, "e")
    phrase = str(key)
    unique = found.query("count(*) = 1", [f'{found.alias}."{found.key}" = {literal(key)}'])
    return Referral(phrase, unique, frozenset({key}), None)


def refer(scene: Scene, entity: Entity, key: JsonValue, vagueness: int) -> Referral | None:
    """How a person refers to a thing; None where its attributes tell it from no other.

    Args:
        scene: its world.
        entity: what it is.
        key: which one.
        vagueness: 0 its number; 1 its name, or its number where such things have none; from 2 on a description.
    """
    named = any(attribute.head for attribute in entity.attributes)
    if vagueness == 0:
        return by_key(scene, entity, key)
    found = _describe(scene, entity, key, vagueness, "e", numbered=vagueness == 1 and not named)
    look_up = _look_up(scene, found) if found else None
    if found is None or look_up is None:
        return None
    unique = found.query(f'count(*) = 1 AND max({found.alias}."{found.key}") = {literal(key)}')
    return Referral(_phrase(scene, found), unique, frozenset(_said(found)), look_up)


def _begin(scene: Scene, entity: Entity, key: JsonValue, alias: str) -> _Described:
    table = scene.tables[scene.rename(entity.table)]
    names = [column.name for column in table.columns]
    quoted = ", ".join(f'"{name}"' for name in names)
    rows = scene.reader.dressed(f'SELECT {quoted} FROM "{table.name}" WHERE "{table.key[0]}" = :key', {"key": key})
    row = dict(zip(names, rows[0], strict=True)) if rows else {}
    return _Described(entity, row, table.key[0], table.name, alias)


def _describe(
    scene: Scene, entity: Entity, key: JsonValue, vagueness: int, alias: str, *, numbered: bool = False
) -> _Described | None:
    """A description that fits nothing else, or None; `numbered` ones tell the key."""
    found = _begin(scene, entity, key, alias)
    if not found.row:
        return None
    if numbered:
        found.conditions.append(f'{alias}."{found.key}" = {literal(key)}')
        found.number = str(key)
        found.said.add(key)
    left = _count(scene, found)
    needed = _needed(entity)
    for attribute in _in_order(entity, vagueness):
        must = attribute.head or _name_of(attribute) in needed
        if left == 1 and not must:
            continue
        if _take(scene, found, attribute, vagueness, must=must):
            left = _count(scene, found)
    return found if left == 1 else None


def _in_order(entity: Entity, vagueness: int) -> Iterator[Attribute]:
    """What must be said and what stands alone come first; times come last where names are used."""
    needed = _needed(entity)

    def rank(attribute: Attribute) -> int:
        if attribute.head or _name_of(attribute) in needed:
            return 0
        return 2 if attribute.time and vagueness < 2 else 1

    return iter(sorted(entity.attributes, key=rank))


def _needed(entity: Entity) -> set[str]:
    """Columns and entities that its look-up needs to be told."""
    found: set[str] = set()
    for value in entity.look_up[1].values():
        owner, own = _OF_OWNER.fullmatch(value), _OF_ITSELF.fullmatch(value)
        if owner:
            found |= {owner[1]} if owner[1] != "owner" else {_first_owner(entity)}
        elif own:
            found.add(own[1])
    return found


def _first_owner(entity: Entity) -> str:
    return next((attribute.entity for attribute in entity.attributes if attribute.entity), "")


def _name_of(attribute: Attribute) -> str:
    return attribute.entity or attribute.column


def _take(scene: Scene, found: _Described, attribute: Attribute, vagueness: int, *, must: bool) -> bool:
    """Add an attribute to a description where it rules something out, or where it must be said."""
    if attribute.entity:
        return _take_owner(scene, found, attribute, vagueness, must=must)
    column = scene.rename(attribute.column)
    value = found.row[column]
    if value is None:
        return False
    place = f'{found.alias}."{column}"'
    before = _count(scene, found)
    if attribute.time and isinstance(value, str):
        return _take_time(scene, found, attribute, (place, value), vague=vagueness >= 2)
    condition = f"{place} = {literal(value)}"
    if not must and _count(scene, found, [condition]) >= before:
        return False
    found.conditions.append(condition)
    cents = attribute.column.endswith("cents") and isinstance(value, int)
    said = scene.company.country.money(int(str(value))) if cents else speech.words(value)
    found.phrases.append((attribute, scene.filled(attribute.phrase, {"value": said})))
    found.said.add(value)
    return True


def _take_time(scene: Scene, found: _Described, attribute: Attribute, where: tuple[str, str], *, vague: bool) -> bool:
    """The vaguest time that leaves nothing else, or else the day itself where that rules something out."""
    place, value = where
    named = speech.periods(value, scene.today)
    before = _count(scene, found)
    for period in named if vague else named[-1:]:
        condition = f"substr({place}, 1, 10) BETWEEN '{period.first}' AND '{period.last}'"
        left = _count(scene, found, [condition])
        exact = period is named[-1]
        if left == 1 or (exact and left < before):
            found.conditions.append(condition)
            # Not `since on 3 March`: a preposition of the phrase's own takes the place of the day's.
            said = period.said.removeprefix("on ") if _AFTER_WORD.search(attribute.phrase) else period.said
            found.phrases.append((attribute, scene.filled(attribute.phrase, {"value": said})))
            if exact:
                found.said.add(value)
            return True
    return False


def _take_owner(scene: Scene, found: _Described, attribute: Attribute, vagueness: int, *, must: bool) -> bool:
    via = scene.rename(attribute.via)
    key = found.row[via]
    if key is None or len(found.alias) >= _MAX_DEPTH:
        return False
    alias = f"{found.alias}{chr(ord('a') + len(found.owners))}"
    owner = _describe(scene, scene.entities[attribute.entity], key, max(vagueness, 1), alias)
    if owner is None:
        return False
    join = f'JOIN "{owner.table}" {alias} ON {alias}."{owner.key}" = {found.alias}."{via}"'
    before = _count(scene, found)
    kept = list(found.joins), list(found.conditions)
    found.joins += [join, *owner.joins]
    found.conditions += owner.conditions
    if not must and _count(scene, found) >= before:
        found.joins, found.conditions = kept
        return False
    found.owners[attribute.entity] = owner
    said = _phrase(scene, owner)
    found.phrases.append((attribute, scene.filled(attribute.phrase, {"value": said})))
    return True


def _count(scene: Scene, found: _Described, more: Sequence[str] = ()) -> int:
    return int(str(scene.reader.dressed(found.query("count(*)", more))[0][0]))


def _phrase(scene: Scene, found: _Described) -> str:
    """The noun, or what stands for it, then attributes in their order."""
    order = list(found.entity.attributes)
    said = sorted(found.phrases, key=lambda one: (not one[0].head, order.index(one[0])))
    texts = [text for _, text in said]
    if not (said and said[0][0].head):
        noun = scene.filled(found.entity.noun, {})
        texts.insert(0, f"{noun} {found.number}" if found.number else f"the {noun}")
    return " ".join(texts)


def _said(found: _Described) -> set[JsonValue]:
    return found.said.union(*(_said(owner) for owner in found.owners.values()))


def _look_up(scene: Scene, found: _Described) -> ToolCall | None:
    """The call by which the thing is found; None where it needs what the description does not tell."""
    tool, arguments = found.entity.look_up
    values: dict[str, JsonValue] = {}
    for name, text in arguments.items():
        value = _look_up_value(scene, found, text)
        if value is None:
            return None
        values[name] = value
    own, renamed = scene.company.renamer.call(tool, values)
    return ToolCall(tool=own, arguments=renamed)


def _look_up_value(scene: Scene, found: _Described, text: str) -> JsonValue:
    owner, own = _OF_OWNER.fullmatch(text), _OF_ITSELF.fullmatch(text)
    if owner:
        name = owner[1] if owner[1] != "owner" else _first_owner(found.entity)
        return found.owners[name].row.get(scene.rename(owner[2])) if name in found.owners else None
    if own:
        value = found.row.get(scene.rename(own[1]))
        return value if value in found.said else None
    return text
