"""envsynth catalog show."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated

import typer

from envsynth.cli._options import CatalogOption, JsonOption
from envsynth.cli._output import clean, heading, print_table

if TYPE_CHECKING:
    from envsynth.models import Candidate, Check, Finding, Outcome, TestLists, Trajectory, Verdict, Workspace
    from envsynth.protocols import BlobStore

SHOWN = 10
"""Lines of a list that are printed without --all."""
_SURVIVED = ("mutant_survived", "part_survived")


def show(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Id, lead key or commit, or a beginning of one.")],
    catalog: CatalogOption = None,
    patch: Annotated[bool, typer.Option("--patch", help="Print the reference's patch only.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Print long lists whole.")] = False,
    json: JsonOption = False,
) -> None:
    """Show a task, or a lead that became none: what is asked, how it is graded, and why that can be trusted."""
    from envsynth.catalog import Catalog
    from envsynth.cli._options import catalog_path
    from envsynth.cli._output import print_json
    from envsynth.errors import ConfigError
    from envsynth.judging import measured_tests

    with Catalog.open(catalog_path(catalog), read_only=True) as opened:
        outcome = opened.outcome(task)
        candidate = outcome.candidate
        content = _content(candidate, opened.blobs)
        rates = opened.solve_rates(outcome.lead.key)
    if json:
        print_json(outcome.document())
    elif patch:
        if candidate is None:
            raise ConfigError("the lead has no patch: no candidate was made of it", where=task)
        if candidate.reference is None:
            raise ConfigError(
                "a world's task has no patch: its solution is a trajectory", where=task,
                next_step="leave --patch out: the panel names it",
            )  # fmt: skip
        typer.echo(content, nl=False)
    else:
        _header(outcome)
        if candidate is not None:
            panel = candidate.panel if outcome.task is None else outcome.task.panel
            _candidate(candidate, content, panel, everything)
            _lists(measured_tests(outcome.verdicts), everything)
            _strength(outcome.verdicts, everything)
        _verdicts(outcome.verdicts)
        if rates.rows:
            heading("attempts")
            print_table(rates.columns, rates.rows)


def _header(outcome: Outcome) -> None:
    lead = outcome.lead
    candidate = outcome.candidate
    heading(f"{candidate.id if candidate else lead.ref}: {outcome.status.value}")
    _field("why", outcome.reason)
    if outcome.task is not None:
        _field("tier", outcome.task.tier.value)
    _field("source", f"{lead.source} at {lead.revision}")
    _field("made by", f"{lead.generator} {lead.generator_version}, strategy {lead.strategy}")
    _field("reference", f"{lead.ref} {lead.title}")
    _field("lead", lead.key)
    _field(
        "cost", f"{outcome.cost.wall_s:.1f} s, {outcome.cost.cpu_s:.1f} s CPU, {outcome.cost.disk_bytes} bytes of disk"
    )
    _field("trouble", outcome.trouble)
    if outcome.dropped is not None:
        _field("detail", outcome.dropped.detail)


def _content(candidate: Candidate | None, blobs: BlobStore) -> bytes:
    """What a candidate names that is shown: its world's document, or its patch."""
    from envsynth.models import WorldRef

    if candidate is None:
        return b""
    environment = candidate.environment
    return blobs.get(environment.world if isinstance(environment, WorldRef) else candidate.solution.patch)


def _candidate(candidate: Candidate, content: bytes, panel: tuple[Trajectory, ...], everything: bool) -> None:
    from envsynth.cli.catalog._world import show_panel, show_utility, show_world
    from envsynth.models import World, WorldRef

    in_world = isinstance(candidate.environment, WorldRef)
    heading("instruction")
    typer.echo(clean(candidate.instruction))
    heading("environment")
    if in_world:
        show_world(World.from_json(content), candidate.budget)
    else:
        _workspace(candidate.workspace, everything)
    heading("verifier")
    for check in candidate.verifier.checks:
        _field(f"check {check.id}", check.sql or _compared(check))
    for criterion in candidate.verifier.rubric:
        _field(f"{criterion.class_.value} {criterion.id}", criterion.text)
    if in_world:
        show_utility(candidate.verifier.utility)
        show_panel(panel)
    else:
        _field("reference", f"patch of {len(content)} bytes; --patch prints it")


def _compared(check: Check) -> str:
    """What a check without SQL compares."""
    if check.kind != "diff":
        return check.kind
    changes = {
        table: {kind: rows for kind, rows in change.document().items() if rows}
        for table, change in check.expect.items()
    }  # fmt: skip
    answer = "" if check.answer is None else f", answer {json_module.dumps(check.answer, ensure_ascii=False)}"
    return f"diff {json_module.dumps(changes, ensure_ascii=False)}{answer}"


def _workspace(workspace: Workspace, everything: bool) -> None:
    recipe, command = workspace.recipe, workspace.command
    _field(
        "recipe",
        f"{recipe.language} {recipe.interpreter}, {len(recipe.requirements)} distributions as of {recipe.newest}",
    )
    _lines(recipe.requirements, everything)
    _field("tests", " ".join((command.runner, *command.arguments, *command.targets)))


def _lists(tests: TestLists | None, everything: bool) -> None:
    if tests is None:
        return
    for name, keys in (
        ("FAIL_TO_PASS", tests.fail_to_pass), ("PASS_TO_PASS", tests.pass_to_pass), ("flickering", tests.flickering),
    ):  # fmt: skip
        if keys:
            heading(f"{name} ({len(keys)})")
            _lines(keys, everything)


def _strength(verdicts: tuple[Verdict, ...], everything: bool) -> None:
    """What the grader withstood, in plain words; of rejected candidates too."""
    from envsynth.models import Strength

    found = Strength()
    for verdict in verdicts:
        found |= verdict.strength or Strength()
    if found == Strength():
        return
    heading("strength of the grader")
    if found.attacks is not None:
        _field("attacks", f"{found.attacks} tried, {found.attacks_worked or 0} worked")
    if found.controls is not None:
        share = "" if found.controlled is None else f", for {found.controlled:.0%} of FAIL_TO_PASS"
        _field("controls", f"{found.controls} changed tests that a right solution fails{share}")
    if found.mutants is not None:
        rate = "" if found.kill_rate is None else f" ({found.kill_rate:.0%})"
        equal = f"; {found.equivalents} that behave like the reference left out" if found.equivalents else ""
        _field("mutants", f"{found.killed or 0} of {found.mutants} wrong variants noticed{rate}{equal}")
    if found.rewrites is not None:
        _field("rewrites", f"{found.rewrites_rejected or 0} of {found.rewrites} right variants rejected")
    survivors = [finding for verdict in verdicts for finding in verdict.findings if finding.rule in _SURVIVED]
    if survivors:
        heading(f"what the tests do not notice ({len(survivors)})")
        _lines(tuple(_placed(finding) for finding in survivors), everything)


def _placed(finding: Finding) -> str:
    return f"{finding.where}: {finding.message}" if finding.where else finding.message


def _verdicts(verdicts: tuple[Verdict, ...]) -> None:
    heading("verdicts")
    for verdict in verdicts:
        typer.echo(f"  {verdict.status.value:8}{verdict.validator} {verdict.version}, {verdict.cost.wall_s:.1f} s")
        for finding in verdict.findings:
            if finding.rule in _SURVIVED:
                continue  # listed above
            where = f" ({finding.where})" if finding.where else ""
            typer.echo(clean(f"          {finding.rule}: {finding.message}{where}"))
        if verdict.evidence:
            typer.echo(clean(f"          {json_module.dumps(verdict.evidence, ensure_ascii=False)}"))
        for run in verdict.runs:
            passed = sum(record.status.value == "passed" for record in run.records)
            note = run.trouble or ("" if run.complete else "report incomplete")
            line = f"          {run.state} {run.repeat + 1}: {passed} of {len(run.records)} passed {note}"
            typer.echo(clean(line.rstrip()))


def _lines(lines: tuple[str, ...], everything: bool) -> None:
    shown = lines if everything else lines[:SHOWN]
    for line in shown:
        typer.echo(clean(f"  {line}"))
    if len(shown) < len(lines):
        typer.echo(f"  and {len(lines) - len(shown)} more; --all prints them")


def _field(name: str, text: str) -> None:
    if text:
        typer.echo(clean(f"  {name:16} {text}"))
