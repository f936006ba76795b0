"""envsynth replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def replay(
    pack: Annotated[Path, typer.Argument(metavar="PACK", help="Folder of a pack.")],
    task: Annotated[str, typer.Option("--task", metavar="ID", help="Play this task only.")] = "",
    sandbox: Annotated[str, typer.Option("--sandbox", help="auto, bubblewrap, docker, docker:RUNTIME or local.")] = "",
    target: Annotated[
        str,
        typer.Option(
            "--target", metavar="NAME", help="Play through this trainer's own runtime too: the pack's format."
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Play a pack's panel with the pack's own code and compare every reward. Exit code 1 when one differs.

    With --target each trajectory is also played through the trainer's own runtime, in a virtual environment that is
    made at the first time, and every component of the reward is compared.
    """
    from envsynth.cli._output import clean, print_json
    from envsynth.exporters.replay import ReplayLine
    from envsynth.exporters.replay import replay as replay_pack

    def show(line: ReplayLine) -> None:
        if json:
            print_json(line._asdict())
        else:
            got = (
                line.error
                if line.got is None
                else f"{line.got:g}" + (f" ({line.error})" if line.verdict == "differs" and line.error else "")
            )
            typer.echo(clean(f"{line.verdict:8}{line.task}  {line.label}  expected {line.expected:g}, got {got}"))

    report = replay_pack(pack, task=task, sandbox=sandbox, target=target, progress=show)
    if report.trouble:
        typer.echo(f"envsynth: {pack}: {clean(report.trouble)}", err=True)
    if not json:
        same = sum(line.verdict == "same" for line in report.lines)
        typer.echo(f"{same} of {len(report.lines)} rewards are the same")
        if report.digest:
            typer.echo(f"pack {report.digest}")
    raise typer.Exit(report.exit_code)
