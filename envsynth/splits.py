"""Splits of a catalog: named selections that must not leak into each other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from envsynth.catalog import Catalog
from envsynth.errors import ConfigError, ExportError
from envsynth.kinship import Kin, kin_of, shared

__all__ = ["TRAITS", "parsed_splits", "split_ids"]

TRAITS = ("task", "near-duplicate", "world", "company", "mechanism", "skin", "repository")
"""What tasks of two splits may have in common."""
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_SHOWN = 5
"""Leaks that are told of; the rest are counted."""


def parsed_splits(given: Sequence[str]) -> dict[str, str]:
    """Conditions by name, of texts `NAME=SQL`.

    Raises:
        ConfigError: one is no such text, or two have one name.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, condition = text.partition("=")
        if not equals or not condition.strip() or not _NAME.fullmatch(name):
            raise ConfigError(
                f"{text[:60]!r} is no split", where="--split", cause="a split is NAME=SQL, its name of small letters",
                next_step="such as --split \"train=generator = 'business'\"",
            )  # fmt: skip
        if name in found:
            raise ConfigError(f"two splits are called {name}", where="--split", next_step="rename one of them")
        found[name] = condition
    return found


def split_ids(catalog: Catalog, splits: Mapping[str, str], allowed: Collection[str] = ()) -> dict[str, list[str]]:
    """Ids of the tasks of each split, once nothing leaks from one to another.

    Args:
        catalog: where the tasks are.
        splits: condition over the view `task` by name.
        allowed: traits that may be shared.

    Raises:
        ConfigError: a condition is not SQL over that view, or there is no such trait.
        ExportError: a split is empty, or two have something in common.
    """
    unknown = sorted(set(allowed) - set(TRAITS))
    if unknown:
        raise ConfigError(f"there is no trait {unknown[0]!r}", where="--allow-shared", next_step=f"{', '.join(TRAITS)}")
    chosen = {name: catalog.task_ids(condition) for name, condition in splits.items()}
    for name, ids in chosen.items():
        if not ids:
            raise ExportError(
                "no task is selected", where=f"split {name}", cause=f"none fits {splits[name]}",
                next_step="envsynth catalog ls",
            )  # fmt: skip
    leaks: dict[str, list[str]] = defaultdict(list)
    kin = _kin(catalog, chosen) if len(chosen) > 1 else {}
    for one, two in combinations(chosen, 2):
        for found in dict.fromkeys([*catalog.shared(chosen[one], chosen[two]), *shared(kin[one], kin[two])]):
            if found.trait not in allowed:
                leaks[found.trait].append(
                    f"{one} and {two} share the {found.trait} {found.value} ({found.task}, {found.other})"
                )
    if leaks:
        raise _leak(leaks)
    return chosen


def _kin(catalog: Catalog, chosen: Mapping[str, Sequence[str]]) -> dict[str, Kin]:
    return {name: kin_of(catalog.tasks_by_id(ids), catalog.blobs) for name, ids in chosen.items()}


def _leak(leaks: Mapping[str, Sequence[str]]) -> ExportError:
    lines = [line for trait in TRAITS for line in leaks.get(trait, ())]
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    counted = ", ".join(f"{len(leaks[trait])} by {trait}" for trait in TRAITS if trait in leaks)
    return ExportError(
        f"the splits leak into each other: {counted}", where="--split", cause="; ".join(lines[:_SHOWN]) + more,
        next_step=f"change the conditions, or accept it: --allow-shared {','.join(t for t in TRAITS if t in leaks)}",
    )  # fmt: skip
