"""envsynth validate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from envsynth.cli._options import CacheOption, ConfigOption, ModelsOption, WorkCatalogOption

if TYPE_CHECKING:
    from envsynth.config import BuildConfig
    from envsynth.revalidate import Selection


def validate(  # noqa: PLR0913 (one parameter an option)
    tasks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TASK...]", help="Task ids, lead keys or commits, or beginnings of one; else every admitted task."
        ),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every lead with a candidate: rejected, owed ones too.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Look at this validator only; repeatable.", show_default=False),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Ask again where the verdict stands; equal runs come from the cache.")
    ] = False,
    catalog: WorkCatalogOption = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Worker processes.", show_default="processors")
    ] = None,
    executor: Annotated[str | None, typer.Option(help="Where the work runs.", show_default="local")] = None,
    sandbox: Annotated[str | None, typer.Option(help="As for build.", show_default="auto")] = None,
    llm: ModelsOption = None,
    budget: Annotated[
        float | None, typer.Option(metavar="USD", help="Most that models may cost, over all builds of the catalog.")
    ] = None,
    cache: CacheOption = None,
    offline: Annotated[
        bool | None, typer.Option("--offline", help="Fetch nothing; call no model on another machine.")
    ] = None,
    config: ConfigOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print progress and result as JSON lines.")] = False,
) -> None:
    """Judge tasks of the catalog again: only what is missing, stale or owed.

    Stale is a verdict that another version of its validator gave, or for which another model was asked than is now
    configured; owed is one that the environment kept from being given. The ladder is climbed as in a build: a new FAIL
    rejects the task and drops the verdicts above it, and a candidate that gets past what had stopped it climbs on and
    may be admitted. Where a validator measures other tests or controls than before, those above it are asked again. A
    build afterwards takes the outcome as its own.

    --only NAME leaves other validators' verdicts as they stand, but for what is missing below NAME. What the
    environment keeps from an end changes nothing in the catalog; the same command tries it again. The source is not
    needed.
    """
    from envsynth.config import load_config
    from envsynth.errors import ConfigError

    if tasks and every:
        raise ConfigError("both tasks and --all are named", where="command line", next_step="leave one of them out")
    resolved = load_config(
        config, catalog=catalog, jobs=jobs, executor=executor, sandbox=sandbox, cache=cache, offline=offline,
        llm=llm or (), budget=budget,
    )  # fmt: skip
    from envsynth.revalidate import Selection

    selection = Selection(names=tuple(tasks or ()), every=every, only=tuple(only or ()), force=force)
    _validate(resolved, selection, json=json)


def _validate(resolved: BuildConfig, selection: Selection, *, json: bool) -> None:
    from envsynth.cli._progress import watching
    from envsynth.cli._result import print_validation
    from envsynth.revalidate import revalidate

    with watching(json=json) as progress:
        report = revalidate(resolved, selection, progress)
    print_validation(report, json=json)
    raise typer.Exit(report.exit_code)
