"""envsynth export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from envsynth.cli._options import CatalogOption, WhereOption

if TYPE_CHECKING:
    from envsynth.catalog import Catalog
    from envsynth.exporters._manifest import Selection
    from envsynth.models import RewardSpec


def export(  # noqa: PLR0913, PLR0917 (one parameter an option)
    format: Annotated[str, typer.Option("--format", metavar="NAME", help="Exporter; chat: attempts.")] = "gymnasium",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the pack; else one under outputs/.")
    ] = None,
    catalog: CatalogOption = None,
    where: WhereOption = "",
    split: Annotated[
        list[str] | None,
        typer.Option("--split", metavar="NAME=SQL", help="A pack of its own for each, in a folder NAME; repeatable."),
    ] = None,
    allow_shared: Annotated[
        str,
        typer.Option("--allow-shared", metavar="TRAITS", help="What splits may have in common, such as skin,company."),
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="name or version of the pack; harbor: org, base, image; parquet: split; chat: text=yes. Repeatable.",
        ),
    ] = None,
    reward: Annotated[
        Path | None,
        typer.Option("--reward", metavar="FILE", help="Another reward for every task: gate, overdrawn, [group]; TOML."),
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="With --format chat: preference pairs too.")] = False,
) -> None:
    """Write tasks of the catalog as a pack, or as one for each split. Needs no cache: the catalog has every content.

    --format chat writes attempts of rollouts instead, as conversations with a loss mask and rewards: --where is then
    over the table attempt, such as "success AND NOT hinted"; --pairs adds preference pairs.

    --reward is a file such as `overdrawn = -1` with a table `[group]`: `tokens = 20000`, `length = 0.2`, `ranked_by =
    "process"`, `weights = {reward = 1.0, process = 0.2}`; each pack says its reward in words and as data.

    Splits must share no task, near-duplicate, world, company, mechanism, skin or repository; what they share is named,
    and nothing is written.
    """
    from envsynth.cli._chat import export_attempts, require_fitting
    from envsynth.cli._options import catalog_path
    from envsynth.cli._reward import read_reward
    from envsynth.config import load_config
    from envsynth.errors import ConfigError
    from envsynth.splits import parsed_splits

    options = _options(option or [])
    splits = parsed_splits(split or [])
    path = catalog_path(catalog)
    require_fitting(format, pairs=pairs, split=bool(splits), reward=reward is not None)
    if splits and where:
        raise ConfigError("both --split and --where are given", where="command line", next_step="leave one out")
    spec = None if reward is None else read_reward(reward)
    if format == "chat":
        export_attempts(path, out or load_config(catalog=path).out / "attempts-chat", where, options, pairs=pairs)
        return
    wanted = _Wanted(where, splits, allow_shared)
    for pack, count, digest in _packs(path, format, out, wanted, options, spec):
        _tell(pack, count, digest)


class _Wanted(NamedTuple):
    """Which tasks, in which packs."""

    where: str
    splits: dict[str, str]
    allow_shared: str


def _packs(
    path: Path, format: str, out: Path | None, wanted: _Wanted, options: dict[str, str], spec: RewardSpec | None
) -> Iterator[tuple[Path, int, str]]:
    """Write each pack: its folder, its number of tasks, its digest."""
    from envsynth import plugins
    from envsynth.catalog import Catalog
    from envsynth.cli._reward import rewarded
    from envsynth.config import load_config
    from envsynth.exporters._manifest import record_selection

    exporter = plugins.load("exporters", format)()
    config = load_config(catalog=path, format=format)
    folder = out or config.out / config.pack_name
    with Catalog.open(path, read_only=True) as opened:
        for name, ids in _chosen(opened, path, *wanted).items():
            given = {"name": f"{folder.name}-{name}".lower(), **options} if name else options
            tasks = list(opened.tasks_by_id(ids))
            tasks = tasks if spec is None else list(rewarded(tasks, spec))
            pack = exporter.export(tasks, opened.blobs, folder / name if name else folder, given)
            yield pack, len(ids), record_selection(pack, _selection(name, *wanted))


def _tell(pack: Path, count: int, digest: str) -> None:
    from envsynth.cli._result import as_called, quoted
    from envsynth.exporters.replay import plays

    typer.echo(f"{count} tasks in {pack}" + (f", {digest}" if digest else ""))
    if plays(pack):
        typer.echo(f"Next: {as_called('envsynth')} replay {quoted(pack)}", err=True)


def _selection(name: str, where: str, splits: dict[str, str], allow_shared: str) -> Selection:
    from envsynth.exporters._manifest import Selection

    others = {other: condition for other, condition in splits.items() if other != name}
    return Selection(splits.get(name, where), name, others, _traits(allow_shared))


def _traits(allow_shared: str) -> list[str]:
    return [trait.strip() for trait in allow_shared.split(",") if trait.strip()]


def _options(texts: list[str]) -> dict[str, str]:
    from envsynth.errors import ConfigError

    if not all(text.partition("=")[2] for text in texts):
        raise ConfigError("an exporter's option is KEY=VALUE", where="--option", next_step="envsynth export --help")
    return dict(text.partition("=")[::2] for text in texts)


def _chosen(
    catalog: Catalog, path: Path, where: str, splits: dict[str, str], allow_shared: str
) -> dict[str, list[str]]:
    """Ids of tasks by split; all under the empty name where nothing is split."""
    from envsynth.errors import ConfigError, ExportError
    from envsynth.splits import split_ids

    if allow_shared and not splits:
        raise ConfigError(
            "nothing is split", where="--allow-shared", next_step="name splits with --split, or leave it out"
        )
    chosen = split_ids(catalog, splits, _traits(allow_shared)) if splits else {"": catalog.task_ids(where)}
    if not any(chosen.values()):
        raise ExportError(
            "no task is selected", where=str(path), cause=f"none fits {where}" if where else "the catalog has none",
            next_step="envsynth catalog ls",
        )  # fmt: skip
    return chosen
