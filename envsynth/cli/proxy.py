"""envsynth proxy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envsynth.cli._options import BudgetOption, CacheOption, ConfigOption, SolverOption, WorkCatalogOption

if TYPE_CHECKING:
    from envsynth.config import BuildConfig
    from envsynth.proxy import ProxiedCall, Upstream
    from envsynth.proxy.running import HarnessRun

_LISTEN = "127.0.0.1:8765"


def proxy(  # noqa: PLR0913 (one parameter an option)
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="With --task: the agent program; {task}: the instruction."),
    ] = None,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the record; must have none yet.")],
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where it listens, on loopback.", show_default=_LISTEN)
    ] = None,
    task: Annotated[str, typer.Option(metavar="ID", help="Have COMMAND attempt this workspace task.")] = "",
    mount: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR[:INSIDE]", help="A folder that COMMAND needs, read-only; repeatable."),
    ] = None,
    max_seconds: Annotated[float, typer.Option(metavar="S", min=1, help="Wall seconds of COMMAND.")] = 1800,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Tokens that the model may write for COMMAND.")
    ] = None,
    llm: SolverOption = None,
    budget: BudgetOption = None,
    catalog: WorkCatalogOption = None,
    sandbox: Annotated[str | None, typer.Option(help="As for build.", show_default="auto")] = None,
    cache: CacheOption = None,
    offline: Annotated[bool | None, typer.Option("--offline", help="Call no model on another machine.")] = None,
    config: ConfigOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Stand between an agent program and the solver's endpoint: forward its calls, pay and record them.

    Without --task, it serves any program that is pointed at it until Ctrl-C: /v1/chat/completions, streams too, and
    /v1/models. Whatever key and model the program names, the solver's are used. The record is DIR/calls.jsonl.

    With --task, COMMAND runs in the task's workspace, in its sandbox, where nothing but the proxy can be reached:
    $OPENAI_BASE_URL leads there, $ENVSYNTH_TASK_FILE holds the instruction. What it leaves is graded, and stored as an
    attempt with the conversation. Of its environment it sees the workspace, the task's interpreter, the system's
    programs and what --mount names.
    """
    from envsynth.config import load_config

    _require_fitting(task, command, listen)
    address = _address(listen or _LISTEN)
    resolved = load_config(
        config, catalog=catalog, sandbox=sandbox, cache=cache, offline=offline, llm=llm or (), budget=budget
    )
    from envsynth.proxy.running import HarnessRun, solver_upstream

    with solver_upstream(resolved) as upstream:
        if not command:
            _serve(upstream, address, out, json=json)
            return
        run = HarnessRun(task, tuple(command), tuple(map(_mounted, mount or ())), max_seconds, max_tokens, out)
        _attempt(resolved, run, upstream, json=json)


def _require_fitting(task: str, command: list[str] | None, listen: str | None) -> None:
    from envsynth.errors import ConfigError

    if bool(task) != bool(command):
        raise ConfigError(
            "a task and a command go together", where="command line",
            next_step="envsynth proxy --out DIR --task ID -- COMMAND ..., or leave both out",
        )  # fmt: skip
    if task and listen:
        raise ConfigError("with --task nothing listens on a port", where="--listen", next_step="leave it out")


def _address(listen: str) -> tuple[str, int]:
    from envsynth.errors import ConfigError

    found = re.fullmatch(r"(127\.\d+\.\d+\.\d+|localhost):(\d{1,5})", listen)
    if found is None or int(found[2]) > 65535:
        raise ConfigError(
            f"{listen!r} is no address on loopback", where="--listen",
            cause="whoever reaches the proxy spends the solver's money", next_step=f"--listen {_LISTEN}",
        )  # fmt: skip
    return found[1], int(found[2])


def _mounted(text: str) -> tuple[str, str]:
    source, _, inside = text.partition(":")
    path = str(Path(source).absolute())
    return path, inside or path


def _serve(upstream: Upstream, address: tuple[str, int], out: Path, *, json: bool) -> None:
    import threading

    from envsynth.errors import ConfigError, boundary
    from envsynth.proxy import Proxy, Record

    with Record(out) as record:
        with boundary(ConfigError, "the proxy cannot listen there", where=f"{address[0]}:{address[1]}"):
            server = Proxy(upstream, record, address)
        with server:
            typer.echo(f"export OPENAI_BASE_URL=http://{address[0]}:{server.port}/v1   (Ctrl-C ends it)", err=True)
            try:
                threading.Event().wait()
            except KeyboardInterrupt:
                typer.echo("waiting for the calls that are under way; Ctrl-C gives them up", err=True)
        _print_calls(record.calls, out, json=json)
    if upstream.spent is not None:
        raise upstream.spent


def _attempt(config: BuildConfig, run: HarnessRun, upstream: Upstream, *, json: bool) -> None:
    from envsynth.cli._output import clean, print_json
    from envsynth.proxy.running import attempt_and_store

    played = attempt_and_store(config, run, upstream, lambda line: typer.echo(line, err=True))
    attempt = played.attempt
    if json:
        print_json(attempt.document())
    else:
        _print_calls(played.calls, run.out, json=False)
        if attempt.grade is None:
            typer.echo(clean(f"environment error, which counts for nothing: {attempt.trouble}"))
        else:
            ending = attempt.ending.value if attempt.ending is not None else ""
            typer.echo(
                f"{attempt.task}: outcome {attempt.grade.outcome:g}, reward {attempt.grade.reward:g}, {ending},"
                f" {len(attempt.trace)} calls of tools; stored as draw {attempt.k} ({attempt.key[:12]})"
            )
    raise typer.Exit(0 if attempt.finished else 3)


def _print_calls(calls: tuple[ProxiedCall, ...], out: Path, *, json: bool) -> None:
    from collections import Counter

    from envsynth.cli._output import print_json
    from envsynth.proxy.record import CALLS

    endings = Counter(call.ending for call in calls)
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    if json:
        print_json({"record": str(out / CALLS), "calls": dict(endings), "cost_usd": sum(costs) if costs else None})
        return
    told = ", ".join(f"{number} {ending}" for ending, number in sorted(endings.items())) or "none"
    cost = f", ${sum(costs):.6f}" if costs else ""
    typer.echo(f"calls: {told}{cost}; recorded in {out / CALLS}")
