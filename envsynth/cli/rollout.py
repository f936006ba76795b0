"""envsynth rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from envsynth.cli._options import (
    BudgetOption,
    CacheOption,
    ConfigOption,
    SolverOption,
    WhereOption,
    WorkCatalogOption,
)

if TYPE_CHECKING:
    from envsynth.config import BuildConfig
    from envsynth.rollout.request import RolloutRequest


def rollout(  # noqa: PLR0913 (one parameter an option)
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="[TASK...]", help="Ids, or beginnings of one; else those of --where.")
    ] = None,
    *,
    policy: Annotated[str, typer.Option(metavar="NAME", help="reference, idle, random, scripted or model.")],
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL[@URL]", help="The same as --llm solver=MODEL[@URL].")
    ] = None,
    attempts: Annotated[int, typer.Option("-k", "--attempts", min=1, help="Attempts a task.")] = 1,
    where: WhereOption = "",
    hint: Annotated[bool, typer.Option("--hint", help="Tell hints; tasks without one are left out.")] = False,
    skill: Annotated[
        float | None, typer.Option(metavar="Q", help="Of --policy scripted: chance of a right step.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Tokens that the model may write in one attempt.")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(metavar="S", help="Seconds of one attempt.")] = None,
    malformed: Annotated[
        str, typer.Option(metavar="RULE", help="Malformed calls: as_graded (as in packs), end, or answer (go on).")
    ] = "as_graded",
    catalog: WorkCatalogOption = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Attempts at once.", show_default="as the model takes")
    ] = None,
    llm: SolverOption = None,
    budget: BudgetOption = None,
    sandbox: Annotated[str | None, typer.Option(help="As for build.", show_default="auto")] = None,
    cache: CacheOption = None,
    offline: Annotated[bool | None, typer.Option("--offline", help="Fetch nothing.")] = None,
    config: ConfigOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print progress and result as JSON lines.")] = False,
) -> None:
    """Let a policy attempt tasks, and say how often it solves them.

    Each attempt is stored with its calls, conversation, tokens and grade, and is not made again: interrupted anywhere
    and run again, the same command goes on. An environment or endpoint that fails counts for nothing, and is tried
    again. An attempt is a success when its gate is open and its outcome is 1; of mechanisms, whose outcome is graded,
    from 0.9. --policy reference must solve every task and --policy idle none, else the exit code is 1: the cheap check
    of a catalog.
    """
    from envsynth.config import load_config

    request = _request(
        policy, names=tuple(tasks or ()), where=where, attempts=attempts, hint=hint, skill=skill, malformed=malformed,
        jobs=jobs, limits={"max_tokens": max_tokens, "max_seconds": max_seconds},
    )  # fmt: skip
    models = [*(llm or ()), *([f"solver={model}"] if model else [])]
    resolved = load_config(
        config, catalog=catalog, jobs=jobs, sandbox=sandbox, cache=cache, offline=offline, llm=models, budget=budget
    )
    _rollout(resolved, request, json=json)


def _rollout(resolved: BuildConfig, request: RolloutRequest, *, json: bool) -> None:
    from envsynth.cli._progress import watching
    from envsynth.cli._rates import print_rates
    from envsynth.rollout.runner import rollout as run

    with watching(json=json) as progress:
        report = run(resolved, request, progress)
    print_rates(report, json=json)
    raise typer.Exit(report.exit_code)


def _request(policy: str, **fields: object) -> RolloutRequest:
    from pydantic import ValidationError

    from envsynth.errors import ConfigError
    from envsynth.rollout.request import RolloutRequest

    if fields["names"] and fields["where"]:
        raise ConfigError("both tasks and --where are given", where="command line", next_step="leave one of them out")
    try:
        return RolloutRequest.model_validate({"policy": policy, **fields})
    except ValidationError as exc:
        first = exc.errors()[0]
        option = str(first["loc"][-1]).replace("_", "-")
        raise ConfigError(
            f"--{option} {first['input']!r}: {first['msg']}", where="command line", next_step="envsynth rollout --help"
        ) from None
