"""Twelve things that a company's world must be before tasks are made in it (after AgentMercury, arXiv:2608.20634).

All or nothing: each is a small function that yields findings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from envsynth.generators.business.blueprint import Rule, Service, steps_of
from envsynth.generators.business.compose import Company, compose
from envsynth.generators.business.load import Library
from envsynth.generators.business.prepared import Prepared
from envsynth.generators.business.trial import Trial
from envsynth.generators.business.words import TRIVIAL
from envsynth.models import Finding
from envsynth.models.world import ToolKind
from envsynth.renaming import names_of

TABLES = range(8, 41)
TOOLS = range(10, 27)
ROWS = range(500, 5001)
_LEAST_TRAPS = 2
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")
_MANUAL = frozenset({"list_pages", "read_page"})


class Authored(NamedTuple):
    """A composed company, with its goals tried out."""

    company: Company
    library: Library
    trial: Trial


Validator = Callable[[Authored], Iterator[Finding]]


def authoring_findings(company: Company, library: Library) -> list[Finding]:
    """What keeps a company's world from being used; empty where nothing does.

    Args:
        company: the world.
        library: what it was composed from.
    """
    try:
        trial = Trial(company)
    except ValueError as exc:
        return [Finding(rule="references", message=str(exc), where=company.world.id)]
    try:
        authored = Authored(company, library, trial)
        return [finding for validator in VALIDATORS.values() for finding in validator(authored)]
    finally:
        trial.close()


def sizes(found: Authored) -> Iterator[Finding]:
    """Tables, tools and rows are as many as a company's, and few enough for an agent."""
    world = found.company.neutral
    rows = sum(map(len, world.rows.values()))
    for what, count, right in (
        ("tables", len(world.tables), TABLES), ("tools", len(world.tools), TOOLS), ("rows", rows, ROWS)
    ):  # fmt: skip
        if count not in right:
            yield Finding(rule="sizes", message=f"{count} {what}: {right.start} to {right.stop - 1} are wanted")


def tools_succeed(found: Authored) -> Iterator[Finding]:
    """Every tool that a plan calls succeeds at least once, and every goal has a target on which its plan does."""
    tried = found.trial.goals
    called = {step.tool for goal in found.company.goals.values() for _, step in steps_of(goal)}
    good = {tool for one in tried.values() for play in one.plays for tool in play.succeeded}
    for tool in sorted(called - good):
        yield Finding(rule="tools_succeed", message="no plan's call of it succeeds", where=f"tool {tool}")
    for name, one in tried.items():
        if one.works:
            continue
        message = one.fault or "no row is a target of it"
        if one.plays:
            play = next(play for play in one.plays if play.kind == "reference")
            message = f"no plan of it goes through: {play.refusal or 'it violates ' + ', '.join(sorted(play.violated))}"
        yield Finding(rule="tools_succeed", message=message, where=f"goal {name}")


def tools_used(found: Authored) -> Iterator[Finding]:
    """Every tool is part of a goal, or an entity is looked up with it."""
    used = {step.tool for goal in found.company.goals.values() for _, step in steps_of(goal)}
    used |= {entity.look_up[0] for entity in found.company.entities.values()} | _MANUAL
    for tool in found.company.neutral.tools:
        if tool.name not in used and tool.kind is not ToolKind.THINK:
            yield Finding(rule="tools_used", message="no goal and no entity uses it", where=f"tool {tool.name}")


def references(found: Authored) -> Iterator[Finding]:
    """Foreign keys, types and enumerations hold in both worlds (they are laid down when a world is opened)."""
    from envsynth.runtime.worlds.image import build_image

    try:
        build_image(found.company.world.document())
    except ValueError as exc:
        yield Finding(rule="references", message=str(exc))


def coherent(found: Authored) -> Iterator[Finding]:
    """Days are days, follow each other as they were drawn to, and sums that were derived are kept by an invariant."""
    world = found.company.neutral
    for table in world.tables:
        for place, column in enumerate(table.columns):
            if column.doc.startswith("ISO date"):
                odd = [row[place] for row in world.rows.get(table.name, ())
                       if row[place] is not None and not _DAY.fullmatch(str(row[place]))]  # fmt: skip
                if odd:
                    yield Finding(rule="coherent", message=f"{odd[0]!r} is no day", where=f"{table.name}.{column.name}")
    for service in found.company.services:
        yield from _days_in_order(service, found.company)
        summed = any("sum(" in sql.lower() for sql in service.derive)
        if summed and not any("sum(" in one.sql.lower() for one in service.invariants):
            message = "sums are derived, and no invariant keeps them"
            yield Finding(rule="coherent", message=message, where=f"service {service.service}")


def _days_in_order(service: Service, company: Company) -> Iterator[Finding]:
    columns = {table.name: [column.name for column in table.columns] for table in service.tables}
    for table, rows in service.rows.items():
        for later, recipe in rows.columns.items():
            earlier = recipe.after[0] if recipe.after else ""
            if not earlier or "." in earlier:
                continue
            first, second = columns[table].index(earlier), columns[table].index(later)
            pairs = [(row[first], row[second]) for row in company.neutral.rows[table]]
            bad = [pair for pair in pairs if None not in pair and str(pair[1]) < str(pair[0])]
            if bad:
                message = f"{later} lies before {earlier} in {len(bad)} rows"
                yield Finding(rule="coherent", message=message, where=f"table {table}")


def invariants_hold(found: Authored) -> Iterator[Finding]:
    """No invariant is violated at the start."""
    for name in sorted(found.trial.broken):
        yield Finding(rule="invariants_hold", message="it is violated at the start", where=f"invariant {name}")


def invariants_bite(found: Authored) -> Iterator[Finding]:
    """An invariant that is only stated is violated by some wrong or forbidden plan; an enforced one by none."""
    broken: dict[str, str] = {}
    for goal, one in found.trial.goals.items():
        for play in one.plays:
            if play.kind != "reference":
                broken.update({name: f"{goal} ({play.kind})" for name in play.violated if name not in broken})
    for invariant in found.company.neutral.invariants:
        where = f"invariant {invariant.id}"
        if invariant.enforced and invariant.id in broken:
            message = f"it counts as enforced, and {broken[invariant.id]} violates it"
            yield Finding(rule="invariants_bite", message=message, where=where)
        elif not invariant.enforced and invariant.id not in broken:
            message = "no wrong, near or forbidden plan of any goal violates it"
            yield Finding(rule="invariants_bite", message=message, where=where)


def rules_readable(found: Authored) -> Iterator[Finding]:
    """Every rule that is stated, enforced or not, stands on a page that an agent can read."""
    found.trial.reset()
    for invariant in found.company.neutral.invariants:
        if not invariant.stated_in:
            continue
        page = invariant.stated_in.partition("/")[2]
        answer = found.trial.call("read_page", {"page": page})
        body = answer.result.get("body") if answer.ok and answer.result else ""
        if not body or "{" in body:
            message = f"the page {page} of the manual {'has open braces' if body else 'cannot be read'}"
            yield Finding(rule="rules_readable", message=message, where=f"invariant {invariant.id}")


def rules_cross(found: Authored) -> Iterator[Finding]:
    """The trigger and the target of a rule lie in different services, its query reads both, and its guard is met."""
    services = {service.service: service for service in found.company.services}
    prepared = Prepared(found.company.neutral.tables)
    try:
        for rule in found.company.industry.rules:
            where = f"rule {rule.id}"
            if rule.trigger == rule.target:
                yield Finding(rule="rules_cross", message="trigger and target lie in one service", where=where)
            sql = next(one.sql for one in found.company.neutral.invariants if one.id == rule.id)
            read = prepared.tables_read(sql)
            for name in (rule.trigger, rule.target):
                if not read & {table.name for table in services[name].tables}:
                    yield Finding(rule="rules_cross", message=f"its query reads nothing of {name}", where=where)
            if rule.enforced and not _refused(rule, rule.enforced[1].error, found):
                yield Finding(rule="rules_cross", message="its guard stops no forbidden plan of its goals", where=where)
    finally:
        prepared.close()


def _refused(rule: Rule, error: str, found: Authored) -> bool:
    """Whether some forbidden plan of a rule's goals fails by its guard."""
    said = found.company.speaker.say(error)
    tried = (found.trial.goals[goal.id] for goal in rule.goals)
    return any(play.refusal.endswith(said) for one in tried for play in one.plays if play.kind.startswith("forbidden"))


def traps(found: Authored) -> Iterator[Finding]:
    """Rows are one step away from violations, and goals have plausible wrong targets."""
    trapped = found.company.trapped
    for place, count in trapped.items():
        if not count:
            yield Finding(rule="traps", message="it changes no row", where=place)
    if sum(1 for count in trapped.values() if count) < _LEAST_TRAPS:
        yield Finding(rule="traps", message=f"fewer than {_LEAST_TRAPS} traps")
    for name, one in found.trial.goals.items():
        if found.company.goals[name].near and one.plays and not one.near:
            yield Finding(rule="traps", message="no target has a plausible wrong one", where=f"goal {name}")


def names(found: Authored) -> Iterator[Finding]:
    """No tool and no table has the blueprint's name, and a call means the same in both worlds."""
    company = found.company
    kept = set(names_of(company.neutral)) & {
        *(table.name for table in company.world.tables), *(tool.name for tool in company.world.tools)
    }  # fmt: skip
    for name in sorted(kept - TRIVIAL):
        yield Finding(rule="names", message="it has the blueprint's name", where=name)


def deterministic(found: Authored) -> Iterator[Finding]:
    """The same seed gives the same world, and another seed other rows."""
    company = found.company
    again = compose(found.library, company.industry, company.country, company.seed)
    if again.world.digest() != company.world.digest():
        yield Finding(rule="deterministic", message="composed again, it is another world")
    other = compose(found.library, company.industry, company.country, f"{company.seed}x")
    if other.world.rows == company.world.rows:
        yield Finding(rule="deterministic", message="another seed gives the same rows")


VALIDATORS: dict[str, Validator] = {
    validator.__name__: validator
    for validator in (
        sizes, tools_succeed, tools_used, references, coherent, invariants_hold, invariants_bite, rules_readable,
        rules_cross, traps, names, deterministic,
    )
}  # fmt: skip
