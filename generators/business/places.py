"""Where the part of a document stands that a finding about a composed world is about."""

from __future__ import annotations

import re

from envsynth.generators.business.compose import Company
from envsynth.generators.business.load import Library
from envsynth.models import Finding

_PART = re.compile(r"(service|rule|goal|tool|invariant|table) (\w+)(?:, (traps) (\d+))?")

Place = tuple[str, str, tuple[str | int, ...]]
"""Kind and name of the document, and the part of it."""


def place_of(finding: Finding, company: Company, library: Library) -> str:
    """`file:line` of what a finding is about; the industry's file where it is about no part."""
    kind, name, part = _place(finding.where, company) or ("industry", company.industry.industry, ())
    return library.place(kind, name, *part)


def _place(where: str, company: Company) -> Place | None:
    found = _PART.fullmatch(where)
    if found is None:
        return None
    kind, name, traps, number = found.groups()
    rest: tuple[str | int, ...] = (traps, int(number) - 1) if traps else ()
    if kind == "service":
        return "service", name, rest
    for service in company.services:
        names = {
            "goal": [goal.id for goal in service.goals], "tool": [tool.name for tool in service.tools],
            "invariant": [one.id for one in service.invariants], "table": [one.name for one in service.tables],
        }  # fmt: skip
        if name in names.get(kind, ()):
            # Tools and goals by name: an industry may do without some. Invariants are a list.
            return "service", service.service, (f"{kind}s", names[kind].index(name) if kind == "invariant" else name)
    return _of_rules(kind, name, rest, company)


def _of_rules(kind: str, name: str, rest: tuple[str | int, ...], company: Company) -> Place | None:
    for number, rule in enumerate(company.industry.rules):
        spot = ("industry", company.industry.industry)
        if rule.id == name and kind in ("rule", "invariant"):
            return *spot, ("rules", number, *rest)
        goals = [goal.id for goal in rule.goals]
        if kind == "goal" and name in goals:
            return *spot, ("rules", number, "goals", goals.index(name))
    return None
