"""The manual that every company has: a table of pages and two tools to read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envsynth.models import Column, Parameter, Table, Tool
from envsynth.models.world import ColumnRole, ColumnType, ToolKind

NAMES = ("policies", "list_pages", "read_page")
"""Neutral names that every industry replaces."""


class Page(NamedTuple):
    """A page of the manual."""

    page: str
    title: str
    body: str


def table(name: str = NAMES[0]) -> Table:
    """Where the pages are."""
    text = ColumnType.TEXT
    columns = (
        Column(name="page", type=text, role=ColumnRole.KEY),
        Column(name="title", type=text),
        Column(name="body", type=text),
    )
    return Table(name=name, doc="The company's manual, page by page.", columns=columns)


def tools(pages: Sequence[Page], kept_in: str = NAMES[0]) -> tuple[Tool, ...]:
    """List the pages of a table, and read one."""
    listing = Tool(
        name="list_pages", kind=ToolKind.READ, doc="The pages of the company's manual, by title.",
        result=f"SELECT page, title FROM {kept_in} ORDER BY page",
    )  # fmt: skip
    wanted = Parameter(
        name="page", type="string", doc="Which page, as the list of pages has it.",
        enum=tuple(sorted(page.page for page in pages)),
    )  # fmt: skip
    reading = Tool(
        name="read_page", kind=ToolKind.READ, doc="One page of the company's manual: the rules that hold.",
        parameters=(wanted,), result=f"SELECT page, title, body FROM {kept_in} WHERE page = :page", shape="row",
    )  # fmt: skip
    return listing, reading
