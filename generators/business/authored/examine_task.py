"""What is wrong with each artefact of a task, found by playing it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envsynth.errors import SandboxError, boundary
from envsynth.generators.business.authored.artefacts import Brief, Checks, Hint, Instruction, Plan, Rubric, Tools
from envsynth.generators.business.authored.bench import Bench
from envsynth.generators.business.authored.draft import Draft, world_of
from envsynth.generators.business.authored.ends import signature, unfounded
from envsynth.generators.business.authored.faults import Fault, fault
from envsynth.generators.business.authored.strict import strict_faults
from envsynth.generators.business.stage import Played, Stage
from envsynth.models import Check, Criterion, CriterionClass, Invariant, ToolCall, ToolKind, Verifier, World
from envsynth.runtime.contract import Grade

__all__ = [
    "REFUSES_ALL",
    "Tried",
    "examine_checks",
    "examine_hint",
    "examine_instruction",
    "examine_plan",
    "examine_rubric",
    "graded_ways",
    "telling",
    "trajectories",
    "tried",
    "verifier_of",
]

REFUSES_ALL = "tool_refuses_all"
"""Rule of a plan that a tool refuses of which no call is known to succeed: the plan is at fault, or the tool is."""
LEAST_CRITERIA = 2
"""That tell trajectories apart."""
LEAST_ACTING = 2
"""Wrong trajectories that end in another state than where nothing is done."""
LEAST_TELLING = 60
"""Characters of an instruction."""
_ACTS = (ToolKind.WRITE, ToolKind.CLOCK, ToolKind.SUBMIT)
_BRACES = re.compile(r"\{[a-z_][a-z0-9_.]*\}", re.IGNORECASE)


class Tried(NamedTuple):
    """A trajectory of a plan, played."""

    label: str
    """As in the panel."""
    right: bool
    mistake: str
    """What is wrong with it, in words; empty where it is right."""
    played: Played


def trajectories(plan: Plan) -> Iterator[tuple[str, bool, str, tuple[ToolCall, ...]]]:
    """Label, whether it is right, what is wrong with it, and calls; the reference first."""
    yield "reference", True, "", plan.reference
    for way in plan.alternatives:
        yield f"alternative:{way.label}", True, "", way.calls
    yield "idle", False, "nothing is done at all", ()
    for mistake in plan.wrong:
        yield f"mutant:{mistake.label}", False, mistake.mistake, mistake.calls


def tried(draft: Draft, stage: Stage) -> list[Tried]:
    """Every trajectory of the plan, played."""
    lines = trajectories(draft.of(Plan))
    return [Tried(label, right, mistake, stage.play(calls)) for label, right, mistake, calls in lines]


def graded_ways(draft: Draft, stage: Stage, verifier: Verifier) -> list[tuple[Tried, Grade]]:
    """Every trajectory of the plan, graded; and ways to its end that a rubric should mind or not mind.

    Raises:
        SandboxError: the verifier cannot be evaluated.
    """
    plan, kinds = draft.of(Plan), {tool.name: tool.kind for tool in stage.world.tools}
    writes = tuple(call for call in plan.reference if kinds.get(call.tool) in _ACTS)
    looks = tuple(call for call in plan.reference if kinds.get(call.tool) not in _ACTS)
    extra = [
        Tried("careless", True, "", stage.play(writes)),
        Tried("only_looks", False, "nothing is done", stage.play(looks)),
    ]
    return [(one, stage.grade(one.played, verifier)) for one in (*tried(draft, stage), *extra)]


def examine_plan(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """The reference goes through and keeps every rule; what is wrong ends elsewhere or breaks one."""
    plan, world = draft.of(Plan), world_of(draft)
    if plan.matter not in {matter.name for matter in draft.of(Brief).matters}:
        yield fault(Plan, "matter_unknown", f"the brief has no matter {plan.matter}", "matter")
    labels = Counter([*(way.label for way in plan.alternatives), *(mistake.label for mistake in plan.wrong)])
    for label in (label for label, count in labels.items() if count > 1):
        yield fault(Plan, "label_twice", "two trajectories have this label", label)
    stage = bench.stage(world)
    reference, *others = tried(draft, stage)
    refused = next((place for place, answer in enumerate(reference.played.answers, 1) if not answer.ok), 0)
    if refused:
        call = plan.reference[refused - 1]
        message = f"call {refused}, {call.tool} {call.arguments}, was refused: {reference.played.refusal}"
        alone = call.tool in _never_succeeding(world, bench)
        more = "; no call of this tool was found that succeeds: some may have to come before" if alone else ""
        rule = REFUSES_ALL if alone else "reference_call_refused"
        yield fault(Plan, rule, f"{message}{more}", "reference")
        return
    yield from _of_rules(world, stage, reference)
    end = signature(world, reference.played, stage.changes(reference.played))
    if not stage.changes(reference.played) and not reference.played.ending.answer:
        yield fault(Plan, "reference_does_nothing", "it changes nothing and hands nothing in", "reference")
    ends = {one.label: signature(world, one.played, stage.changes(one.played)) for one in others}
    if sum(ends[one.label] != ends["idle"] for one in others if not one.right) < LEAST_ACTING:
        message = f"fewer than {LEAST_ACTING} wrong trajectories change anything: have tools accept what they do"
        yield fault(Plan, "mistakes_too_tame", message, "wrong")
    for one in others:
        yield from _of_other(one, ends[one.label], end, world, stage)
    told = "\n".join((plan.person, plan.wants, *plan.knows))
    for missing in unfounded(world, told, reference.played, stage.changes(reference.played)):
        message = (
            f"{missing.tool} needs {missing.parameter}={missing.value!r}, which neither wants or knows tell, nor an"
            " earlier answer shows: look it up first, or have the person know it"
        )
        yield fault(Plan, "value_not_told", message, "reference")


def _never_succeeding(world: World, bench: Bench) -> set[str]:
    """Tools of which no call was found that succeeds, in the untouched world and after others."""
    findings = (finding for verdict in bench.probe(world, played=True) for finding in verdict.findings)
    return {one.where.removeprefix("tool ") for one in findings if one.rule == "tool_never_succeeds"}


def _of_rules(world: World, stage: Stage, reference: Tried) -> Iterator[Fault]:
    rules: Mapping[str, Invariant] = {one.id: one for one in world.invariants}
    for name in stage.violated(reference.played):
        page = rules[name].stated_in or "no page"
        message = (
            f"doing what is wanted violates the invariant {name} ({page}): what is wanted must be within the rules; if"
            " no way keeps all of them, want something else"
        )
        yield fault(Plan, "plan_breaks_rule", message, "reference")


def _of_other(one: Tried, end: str, right: str, world: World, stage: Stage) -> Iterator[Fault]:
    """What is wrong with an alternative or a mistake."""
    violated = set(stage.violated(one.played))
    if one.right and violated:
        message = f"it is meant to be right, and violates {', '.join(sorted(violated))}"
        yield fault(Plan, "plan_breaks_rule", message, one.label)
    if not one.right and end == right and not violated:
        message = "it ends just as the reference does and breaks no rule: leave it out, or have it do something wrong"
        yield fault(Plan, "mistake_is_right", message, one.label)
    for name in sorted(violated & {rule.id for rule in world.invariants if rule.enforced}):
        message = (
            f"the invariant {name} counts as enforced, and calls that tools accept violate it: add the guard, or let"
            " the policies only state it"
        )
        yield fault(Tools, "enforced_not_kept", message, f"invariant {name}")
    if one.label == "idle":
        return
    unknown = {call.tool for call in one.played.calls} - {tool.name for tool in world.tools}
    for name in sorted(unknown):
        yield fault(Plan, "tool_unknown", f"there is no tool {name}", one.label)


def examine_instruction(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """It tells every value that cannot be found out, and does not say how."""
    text, world = draft.of(Instruction).text, world_of(draft)
    if len(text.strip()) < LEAST_TELLING:
        yield fault(Instruction, "instruction_too_short", f"{len(text.strip())} characters say too little")
    for found in _BRACES.findall(text):
        yield fault(Instruction, "unfilled_braces", found)
    words = set(re.findall(r"\w+", text))
    names = {*(tool.name for tool in world.tools), *(table.name for table in world.tables)}
    for name in sorted(words & {name for name in names if "_" in name}):
        yield fault(Instruction, "names_the_way", f"a person does not know the tools and tables: {name}")
    stage = bench.stage(world)
    played = stage.play(draft.of(Plan).reference)
    for missing in unfounded(world, text, played, stage.changes(played)):
        message = (
            f"{missing.parameter}={missing.value!r} is needed for {missing.tool}; it is not in the text, and cannot be"
            " found with what is: say it"
        )
        yield fault(Instruction, "value_not_told", message)


def verifier_of(draft: Draft, *, rubric: bool = False) -> Verifier:
    """The checks, with the invariants of the world, and the rubric where it is wanted."""
    checks = draft.of(Checks).checks
    if not any(check.kind == "invariants" for check in checks):
        name = next(name for name in ("invariants", "rules_kept") if name not in {check.id for check in checks})
        checks = (*checks, Check(id=name, kind="invariants"))
    return Verifier(checks=checks, rubric=draft.of(Rubric).criteria if rubric else ())


def examine_checks(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """Right trajectories get 1, wrong ones 0; what is said of it does not tell the plan's calls."""
    checks, world = draft.of(Checks), world_of(draft)
    for name, count in Counter(check.id for check in checks.checks).items():
        if count > 1:
            yield fault(Checks, "check_twice", "two checks have this id", f"check {name}")
    impossible = list(_misnamed(checks, world))
    if impossible:
        yield from impossible
        return
    stage, verifier = bench.stage(world), verifier_of(draft)
    try:
        with boundary(SandboxError, "the checks cannot be evaluated"):
            grades = [(one, stage.grade(one.played, verifier)) for one in tried(draft, stage)]
    except SandboxError as exc:
        yield fault(Checks, "check_sql_invalid", exc.cause or exc.what, _place(exc.where or ""))
        return
    found = list(_of_grades(grades, checks, world))
    yield from found
    if not found:
        right: dict[str, Played] = {}
        for one, _ in grades:
            if one.right:
                right.setdefault(signature(world, one.played, stage.changes(one.played)), one.played)
        yield from strict_faults(checks.checks, verifier, right, draft.of(Instruction).text, stage)


def _of_grades(grades: Sequence[tuple[Tried, Grade]], checks: Checks, world: World) -> Iterator[Fault]:
    for one, grade in grades:
        if one.right and grade.outcome != 1:
            faults: Mapping[str, str] = grade.detail["faults"]
            for name, said in faults.items():
                message = f"a right way does not pass: {_untold(said, checks, name)}"
                yield fault(Checks, "right_rejected", message, f"check {name}")
        elif not one.right and grade.outcome != 0:
            yield fault(Checks, "wrong_passes", f"a wrong way passes every check{_mistake(one, world)}")


def _mistake(one: Tried, world: World) -> str:
    """What is wrong with a trajectory, unless that is said in calls."""
    says_how = any(tool.name in one.mistake for tool in world.tools if "_" in tool.name)
    return "" if says_how else f"; what is wrong with it: {one.mistake}"


def _misnamed(checks: Checks, world: World) -> Iterator[Fault]:
    """Tables and columns that a difference names and the world does not have."""
    tables = {table.name: table for table in world.tables}
    for check in checks.checks:
        where = f"check {check.id}"
        for name, change in check.expect.items():
            if name not in tables:
                yield fault(Checks, "diff_impossible", f"there is no table {name}", where)
                continue
            columns = {column.name for column in tables[name].columns}
            gone = [row for row in change.removed if isinstance(row, Mapping)]
            for row in (*change.added, *(one.values for one in change.changed), *gone):
                for column in sorted(row.keys() - columns):
                    yield fault(Checks, "diff_impossible", f"{name} has no column {column}", where)
            if change.changed and not tables[name].key:
                message = f"{name} has no key: its rows are removed and added, none has a name"
                yield fault(Checks, "diff_impossible", message, where)


def _untold(said: str, checks: Checks, name: str) -> str:
    """Of what a difference says only as much as its author can know."""
    check = next((one for one in checks.checks if one.id == name), None)
    if check is None or check.kind != "diff":
        return "it does not hold" if check is not None else "a rule of the manual is broken"
    table = said.partition(":")[0]
    where = f" in {table}" if table in check.expect else ""
    for mark, meaning in _MEANINGS:
        if mark in said:
            return f"{meaning}{where}"
    return f"something else changes{where}"


_MEANINGS = (
    ("the table ", "a table changes that it does not expect to change"),
    (" rows ", "another number of rows changes than it expects"),
    ("other columns", "other columns of a row change than it expects"),
    ("was not changed", "a row that it expects to change does not"),
    ("was not removed", "a row that it expects to be gone is there"),
    ("another row than expected", "another row than it expects is gone"),
    ("values", "a row has other values than it expects"),
    ("the answer", "another answer is handed in than it expects"),
)


def _place(where: str) -> str:
    return where.rpartition(": ")[2]


def examine_rubric(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """Criteria can be evaluated, the reference meets them, and enough of them tell trajectories apart."""
    rubric, world = draft.of(Rubric), world_of(draft)
    for name, count in Counter(line.id for line in rubric.criteria).items():
        if count > 1:
            yield fault(Rubric, "criterion_twice", "two criteria have this id", f"criterion {name}")
    stage, verifier = bench.stage(world), verifier_of(draft, rubric=True)
    try:
        grades = graded_ways(draft, stage, verifier)
    except SandboxError as exc:
        yield fault(Rubric, "criterion_sql_invalid", exc.cause or exc.what, _place(exc.where or ""))
        return
    reference = grades[0][1]
    for line in rubric.criteria:
        if reference.criteria[line.id] is False and line.class_ is not CriterionClass.OPTIONAL:
            message = "the reference does not meet it: it asks for what a careful agent need not do"
            yield fault(Rubric, "reference_misses_criterion", message, f"criterion {line.id}")
    kept = telling(rubric.criteria, [grade for _, grade in grades])
    if len(kept) < LEAST_CRITERIA:
        silent = [line.id for line in rubric.criteria if line not in kept]
        message = (
            f"{len(kept)} criteria are met by some ways and missed by others; {', '.join(silent)} are false for none,"
            " not even for who reads nothing: NULL, as min() gives of no row, counts as not applicable (coalesce it)"
        )
        yield fault(Rubric, "rubric_too_thin", message)


def telling(criteria: tuple[Criterion, ...], grades: list[Grade]) -> tuple[Criterion, ...]:
    """Criteria that some trajectories meet and others do not, and those that a judge decides."""
    return tuple(
        line for line in criteria if not line.sql or {True, False} <= {grade.criteria[line.id] for grade in grades}
    )


def examine_hint(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """It helps, and does not write the calls down."""
    text = draft.of(Hint).text
    called = {call.tool for call in draft.of(Plan).reference}
    told = sorted(name for name in called if re.search(rf"\b{re.escape(name)}\s*[({{]", text))
    if told:
        yield fault(Hint, "hint_tells_calls", f"it writes calls down: {', '.join(told)}")
