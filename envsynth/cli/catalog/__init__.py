"""envsynth catalog: one file a subcommand."""

from __future__ import annotations

import typer

from envsynth.cli.catalog import ls, merge, rm, show, sql, stats

app = typer.Typer(help="Look into the catalog and curate it.")
app.command("ls")(ls.ls)
app.command("show")(show.show)
app.command("stats")(stats.stats)
app.command("sql", cls=sql.SqlCommand)(sql.sql)
app.command("merge")(merge.merge)
app.command("rm")(rm.rm)
