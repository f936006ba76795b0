"""envsynth export --format chat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from envsynth.errors import ConfigError


def export_attempts(catalog: Path, out: Path, where: str, options: Mapping[str, str], *, pairs: bool) -> None:
    """Write attempts of the catalog as chat.

    Args:
        catalog: the file.
        out: folder of the export.
        where: SQL condition over the table `attempt`.
        options: `text`: `yes` or `no`.
        pairs: whether preference pairs are written too.

    Raises:
        ConfigError: the condition or an option is wrong.
        ExportError: no conversation is selected, or something else is in the folder.
    """
    from envsynth.catalog import Catalog
    from envsynth.exporters.chat import export_chat

    for name, value in options.items():
        if name != "text" or value not in ("yes", "no"):
            raise ConfigError(
                f"the exporter chat has no option {name}={value}", where="--option", next_step="--option text=yes"
            )
    with Catalog.open(catalog, read_only=True) as opened:
        pack = export_chat(opened.attempts(where), out, pairs=pairs, text=options.get("text") == "yes")
    left = "".join(f", {number} left out ({why})" for why, number in sorted(pack.left_out.items()))
    told = f", {pack.pairs} pairs" if pairs else ""
    typer.echo(f"{pack.attempts} attempts, {pack.accepted} accepted{told}{left}, in {pack.folder}")


def require_fitting(format: str, *, pairs: bool, split: bool, reward: bool = False) -> None:
    """Check options that only some formats have.

    Raises:
        ConfigError: one is given that this format has not.
    """
    if pairs and format != "chat":
        raise ConfigError(f"the format {format} has no pairs", where="--pairs", next_step="--format chat --pairs")
    if reward and format == "chat":
        raise ConfigError(
            "attempts have the reward that they were given", where="--reward", next_step="leave it out, or export tasks"
        )
    if split and format == "chat":
        raise ConfigError(
            "attempts are not split", where="--split",
            next_step="export each split's attempts with --where, such as \"task IN (SELECT id FROM task WHERE ...)\"",
        )  # fmt: skip
