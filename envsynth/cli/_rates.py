"""What rollouts came to, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from envsynth.cli._output import clean, heading, print_json, print_table

if TYPE_CHECKING:
    from envsynth.rollout.report import Mixed, Rated, RolloutReport, TaskRate


def print_rates(report: RolloutReport, *, json: bool) -> None:
    """Print a report of rollouts."""
    if json:
        print_json({"event": "report", **report.document()})
        return
    told = " with the hint" if report.hinted else ""
    heading(
        f"{report.policy} {report.model}".strip()
        + f"{told}: {len(report.tasks)} tasks, {report.attempts} attempts each, "
        f"{report.made} of them made now, in {report.seconds:.1f} s"
    )
    most = report.attempts
    columns = ("task", "n", "solved", "pass@1", "95 %", *([f"pass@{most}"] if most > 1 else []), "outcome", "calls")
    print_table((*columns, "mixed of 8", "failures"), [_row(task, most) for task in report.tasks])
    heading("All tasks, each weighed alike (95 % by bootstrap over tasks, at least Wilson's where few differ)")
    print_table(("figure", "value", "95 %"), _totals(report))
    _print_rest(report)


def _row(task: TaskRate, most: int) -> tuple[str, ...]:
    last = [_number(task.pass_at[most - 1])] if most > 1 else []
    failures = ", ".join(f"{count} {kind}" for kind, count in sorted(task.failures.items()))
    if task.environment_errors:
        failures = ", ".join(filter(None, (failures, f"{task.environment_errors} owed")))
    return (
        task.task, str(task.n), str(task.c), _number(task.pass_at[0]), f"{task.low:.2f} to {task.high:.2f}", *last,
        _number(task.mean_outcome), _number(task.mean_calls, 1), _mixed(task.mixed.get(8)), failures,
    )  # fmt: skip


def _totals(report: RolloutReport) -> list[tuple[str, str, str]]:
    rows = [
        (f"pass@{k}", _number(found.value), _bounds(found))
        for k, found in enumerate(report.pass_at, 1)
        if found is not None and (k in (1, 2, 4, 8, 16, 32, 64) or k == len(report.pass_at))
    ]
    if report.mean_outcome is not None:
        rows.append(("mean outcome", _number(report.mean_outcome.value), _bounds(report.mean_outcome)))
    if report.mean_calls is not None:
        rows.append(("mean calls", _number(report.mean_calls, 1), ""))
    rows += [(f"chance of a mixed group of {group}", _mixed(found), "") for group, found in report.mixed.items()]
    rows += [(f"failures: {kind}", str(count), "") for kind, count in sorted(report.failures.items())]
    if report.hint is not None:
        hint = report.hint
        both = f"regret over {hint.tasks} tasks ({hint.with_hint:.2f} with the hint, {hint.without_hint:.2f} without)"
        rows.append((both, f"{hint.regret.value:+.2f}", _bounds(hint.regret)))
    if report.tokens:
        cost = "" if report.cost_usd is None else f"${report.cost_usd:.6f}"
        rows.append(("tokens", str(report.tokens), cost))
    return rows


def _print_rest(report: RolloutReport) -> None:
    if any(mixed.plug_in for mixed in report.mixed.values()):
        typer.echo(
            "~ the measured rate put into 1 - p^G - (1-p)^G: fewer attempts than the group has, so it is too low"
        )
    if report.without_hint:
        typer.echo(f"{report.without_hint} tasks have no hint, and were left out")
    for name in report.unexpected:
        did = "does not solve it any more" if report.policy == "reference" else "solves it"
        typer.echo(f"envsynth: {name}: the {report.policy} policy {did}. Next: envsynth catalog show {name}", err=True)
    for error in report.errors:
        typer.echo(f"envsynth: {clean(error)}", err=True)
    if report.environment_errors:
        typer.echo(f"{report.environment_errors} attempts are owed: the same command tries them again", err=True)


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _bounds(found: Rated) -> str:
    return "" if found.low is None or found.high is None else f"{found.low:.2f} to {found.high:.2f}"


def _mixed(found: Mixed | None) -> str:
    return "" if found is None else f"{'~' if found.plug_in else ''}{found.chance:.2f}"
