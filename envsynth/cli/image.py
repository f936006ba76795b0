"""envsynth image: the images of the Docker sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envsynth.cli._options import CatalogOption, JsonOption

if TYPE_CHECKING:
    from envsynth.sandbox._docker_images import Image

app = typer.Typer(help="Make, list and remove the images of the Docker sandbox.")


@app.command("build")
def build(
    target: Annotated[str, typer.Argument(metavar="[ENV|TASK]", help="Environment or task.", show_default=False)] = "",
    base: Annotated[bool, typer.Option("--base", help="Make the base image instead.")] = False,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="IMAGE|TAR",
            help="Base: an image with its digest, or a root file system's archive.",
            show_default="this machine's Debian or Ubuntu release, by mmdebstrap",
        ),
    ] = "",
    catalog: CatalogOption = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of finished work.", show_default="$ENVSYNTH_CACHE")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make the base image, or a self-contained image of an environment or a task.

    Sandboxes need the base only, since they mount the rest. The other images are for machines that have nothing but
    Docker: base, interpreter, environment and task are one layer each, and what is equal is stored once.
    """
    from envsynth.cache import default_cache_dir
    from envsynth.cli._options import catalog_path
    from envsynth.errors import ConfigError
    from envsynth.images import Wanted, make_base, make_images

    if bool(target) == base or (source and not base):
        raise ConfigError("either --base, perhaps with --from, or an environment or task", next_step="--help says more")
    place = (cache or default_cache_dir()).absolute()
    _show([make_base(source)] if base else make_images(Wanted(target, catalog_path(catalog), place)), json=json)


@app.command("ls")
def ls(json: JsonOption = False) -> None:
    """List the images: their size, and how much of it is their own."""
    from envsynth.sandbox._docker_client import connect
    from envsynth.sandbox._docker_images import listing

    _show(listing(connect().api), json=json)


@app.command("prune")
def prune(
    every: Annotated[
        bool, typer.Option("--all", help="Remove every image of environments and tasks too; the base stays.")
    ] = False,
) -> None:
    """Remove what killed runs left behind, and images that lost their name."""
    from envsynth.cli._output import size
    from envsynth.sandbox._docker_client import connect
    from envsynth.sandbox._docker_images import prune as prune_images

    done = prune_images(connect().api, every=every)
    typer.echo(f"removed: {done.leftovers} containers and volumes, {done.images} images ({size(done.bytes)})")


def _show(images: list[Image], *, json: bool) -> None:
    from envsynth.cli._output import print_json, print_table, size

    if json:
        print_json([image._asdict() for image in images])
        return
    rows = [(one.reference, one.kind, one.id[7:19], size(one.bytes), size(one.own_bytes)) for one in images]
    print_table(("image", "kind", "id", "size", "own"), rows)
