"""envsynth build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envsynth.cli._options import CacheOption, ModelsOption, WorkCatalogOption

if TYPE_CHECKING:
    from envsynth.config import BuildConfig


def build(  # noqa: PLR0913 (one parameter an option)
    *,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", "-s", metavar="F|URI", help="Source list, or one source; repeatable.", show_default=False
        ),
    ] = None,
    catalog: WorkCatalogOption = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for packs.", show_default="outputs")] = None,
    format: Annotated[str | None, typer.Option(help="Exporter of the pack.", show_default="gymnasium")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of sources without their own.", show_default="0")] = None,
    limit: Annotated[int | None, typer.Option(help="Leads a source, for sources without their own limit.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Worker processes.", show_default="processors")
    ] = None,
    executor: Annotated[str | None, typer.Option(help="Where the work runs.", show_default="local")] = None,
    sandbox: Annotated[
        str | None, typer.Option(help="auto, bubblewrap, docker, docker:RUNTIME or local.", show_default="auto")
    ] = None,
    llm: ModelsOption = None,
    budget: Annotated[
        float | None, typer.Option(metavar="USD", help="Most that models may cost, over all builds of the catalog.")
    ] = None,
    cache: CacheOption = None,
    offline: Annotated[
        bool | None, typer.Option("--offline", help="Fetch nothing; call no model on another machine.")
    ] = None,
    keep_going: Annotated[
        bool | None, typer.Option("--keep-going", help="Build the good sources though others are bad.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="F", help="envsynth.toml, or a resolved one to replay.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print progress and result as JSON lines.")] = False,
) -> None:
    """Turn sources into verified tasks: into the catalog, and into a pack.

    Interrupted anywhere and run again, it loses nothing and repeats nothing that had finished.
    """
    from envsynth.config import load_config

    resolved = load_config(
        config, sources=tuple(source) if source else None, catalog=catalog, out=out, format=format, seed=seed,
        limit=limit, jobs=jobs, executor=executor, sandbox=sandbox, cache=cache, offline=offline, keep_going=keep_going,
        llm=llm or (), budget=budget,
    )  # fmt: skip
    _build(resolved, json=json)


def _build(resolved: BuildConfig, *, json: bool) -> None:
    from envsynth.errors import ConfigError

    if not resolved.sources:
        raise ConfigError(
            "no source is named", where="command line",
            next_step="envsynth build --source repo_list.txt, or --source https://host/owner/repository",
        )  # fmt: skip
    from envsynth import pipeline
    from envsynth.cli._progress import watching
    from envsynth.cli._result import print_result

    with watching(json=json) as progress:
        report = pipeline.build(resolved, progress)
    print_result(report, json=json)
    raise typer.Exit(report.exit_code)
