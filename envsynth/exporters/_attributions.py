"""Whose work a pack holds: sources with commits and licences, packages, and the models that wrote instructions."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources

from pydantic import JsonValue, PrivateAttr

from envsynth.models import Lead, Task, Workspace

__all__ = ["attributions", "public_source", "spdx", "told"]

_ELSEWHERE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:|[\w.-]+@[\w.-]+:")
"""How a source begins that is not a place on the builder's machine."""
_LOGIN = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/@]*@|^(?!git@)[\w.-]+@(?=[\w.-]+:)")
_DETERMINISTIC = "deterministic"


class _ToldLead(Lead):
    """A lead whose source is told as a pack may; its key stays that of the lead, as does the task's id."""

    _key: str = PrivateAttr(default="")

    @property
    def key(self) -> str:
        """The key of the lead that this tells of."""
        return self._key


def told(task: Task) -> Task:
    """The task as a pack may tell it: a source on the builder's machine goes by its name, and no login is told."""
    candidate = task.candidate
    provenance, lead = candidate.provenance, candidate.provenance.lead
    source = public_source(lead)
    if source == lead.source:
        return task
    shown = _ToldLead(**{**lead.model_dump(), "source": source})
    shown._key = lead.key
    provenance = provenance.model_copy(update={"lead": shown})
    return task.model_copy(update={"candidate": candidate.model_copy(update={"provenance": provenance})})


def public_source(lead: Lead) -> str:
    """A lead's source without folders of the machine that it was built on, and without logins."""
    if _ELSEWHERE.match(lead.source) is None:
        return f"local:{lead.name}"
    return _LOGIN.sub(lambda found: found[1] or "", lead.source)


def attributions(tasks: Sequence[Task]) -> dict[str, JsonValue]:
    """What a pack's tasks are made of.

    Args:
        tasks: as `told` gives them.

    Returns:
        `sources`: each with its generator, number of tasks, and the commits that start trees and references come from;
        `packages`: every distribution that an environment installs, `name==version`; `models`: how many instructions
        each model wrote.
    """
    by_source: dict[str, list[Task]] = {}
    for task in tasks:
        by_source.setdefault(task.candidate.provenance.lead.source, []).append(task)
    packages = {
        requirement for task in tasks if isinstance(task.candidate.environment, Workspace)
        for requirement in task.candidate.environment.recipe.requirements
    }  # fmt: skip
    authors = Counter(task.candidate.provenance.author for task in tasks)
    return {
        "sources": [_source(source, found) for source, found in sorted(by_source.items())],
        "packages": list[JsonValue](sorted(packages)),
        "models": {name: count for name, count in sorted(authors.items()) if name != _DETERMINISTIC},
    }


def _source(source: str, tasks: Iterable[Task]) -> dict[str, JsonValue]:
    provenances = [task.candidate.provenance for task in tasks]
    commits = {commit for one in provenances for commit in (one.base_commit, one.reference_commit) if commit}
    return {
        "source": source,
        "generator": ", ".join(sorted({one.lead.generator for one in provenances})),
        "tasks": len(provenances),
        "commits": list[JsonValue](sorted(commits)),
    }


def spdx(text: bytes) -> str:
    """SPDX identifier of a licence text; empty where it is none, or several, that are known."""
    read = " ".join(text.decode("utf-8", "replace").lower().split())
    found = [
        name for name, phrases in _licences().items()
        if all(phrase in read for phrase in phrases["all"])
        and not any(phrase in read for phrase in phrases.get("none", ()))
    ]  # fmt: skip
    return found[0] if len(found) == 1 else ""


@cache
def _licences() -> Mapping[str, Mapping[str, Sequence[str]]]:
    return tomllib.loads(resources.files(__package__).joinpath("licences.toml").read_text("utf-8"))
