"""The report: one HTML file about a catalog, for the people who make its tasks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from envsynth.catalog import Catalog
from envsynth.errors import ExportError, boundary
from envsynth.llm.ledger import Ledger, ledger_path
from envsynth.report.charts import require_drawing
from envsynth.report.facts import ask
from envsynth.report.page import render
from envsynth.report.tasks import pages

__all__ = ["FILE", "Written", "write_report"]

FILE = "report.html"


class Written(NamedTuple):
    """What was written."""

    path: Path
    size: int
    """Bytes."""
    pages: int
    """Tasks that have a page."""
    tasks: int
    """Tasks of the catalog."""


def write_report(catalog: Path, out: Path, *, where: str = "", tasks: int = 200) -> Written:
    """Write the report of a catalog. The same catalog gives the same bytes.

    Args:
        catalog: its file.
        out: folder that the report is written into.
        where: condition over the view `task`; tasks that fit have a page before all others.
        tasks: most tasks that have a page.

    Raises:
        ConfigError: there is no such catalog, the condition is no SQL, or what the page is drawn with is not installed.
        ExportError: the file cannot be written.
    """
    require_drawing()
    ledger = ledger_path(catalog)
    spend = Ledger(ledger).rows() if ledger.exists() else ()
    with Catalog.open(catalog, read_only=True) as opened:
        facts = ask(opened, spend)
        shown = list(pages(opened, opened.task_ids(where) if where.strip() else [], tasks))
    content = render(facts, shown)
    path = out / FILE
    with boundary(
        ExportError, "the report cannot be written", where=str(path), next_step="name another folder: --out DIR"
    ):
        out.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Written(path, len(content), len(shown), facts.totals["tasks"])
