"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsynth.report.charts import draw
from envsynth.report.facts import BINS, GROUPS, Facts, PolicyRates, Row
from envsynth.report.tasks import TaskPage
from envsynth.rollout.statistics import mixed_chance_of_rate

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["render"]

_FOLDER = Path(__file__).with_name("templates")
_MEASURES = {
    "attacks": "attacks played on a task", "kill_rate": "share of its mutants that the grader noticed",
    "false_reject_rate": "share of its right rewrites that the grader rejected",
    "controlled": "share of its FAIL_TO_PASS with a control",
}  # fmt: skip
_CURVE = 50
"""Points of a curve."""
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def render(facts: Facts, pages: Sequence[TaskPage]) -> bytes:
    """The page.

    Args:
        facts: of the catalog as a whole.
        pages: tasks that have a page.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    style, script = _file("style.css"), _file("app.js")
    worlds = dict(page.world for page in pages if page.world is not None)
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = _share
    environment.filters["number"] = _number
    text = environment.get_template("page.html").render(
        facts=facts, pages=pages, style=Markup(style), script=Markup(script),
        style_hash=_hash(style), script_hash=_hash(script), charts=_charts(facts), families=_families(facts.families),
        blocks=[("task", number, _json(page.document)) for number, page in enumerate(pages)]
        + [("world", name, _json(world)) for name, world in sorted(worlds.items())],
        groups=GROUPS, measured=_measured(facts.rates),
    )  # fmt: skip
    # A lone surrogate, as text from a damaged file may have, is no character: it is shown as its escape.
    return text.encode("utf-8", "backslashreplace")


def _json(value: Any) -> Markup:
    """JSON for a script element that nothing in it can end."""
    from markupsafe import Markup

    return Markup(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_ESCAPED))


def _charts(facts: Facts) -> Mapping[str, Any]:
    """SVG elements by place."""
    from markupsafe import Markup

    found: dict[str, Any] = {}
    if facts.funnel:
        found["funnel"] = Markup(draw("funnel", _ended(facts.funnel)))
    found["strength"] = [
        (title, Markup(draw("counts" if measure == "attacks" else "shares", rows)))
        for measure, title in _MEASURES.items()
        if (rows := [row for row in facts.distributions if row["measure"] == measure])
    ]
    found["rates"] = [Markup(draw("rates", _curves(rates))) for rates in facts.rates]
    if facts.references:
        found["references"] = Markup(draw("references", [_named(row) for row in facts.references]))
    return found


def _ended(funnel: Iterable[Row]) -> list[Row]:
    """Leads by status and reason, over all generators."""
    leads: Counter[tuple[str, str]] = Counter()
    for row in funnel:
        leads[row["status"], row["reason"]] += row["leads"]
    order = ("admitted", "rejected", "dropped", "owed")
    return [
        {"status": status, "reason": reason or status, "leads": count}
        for (status, reason), count in sorted(
            leads.items(), key=lambda one: (order.index(one[0][0]), -one[1], one[0][1])
        )
    ]


def _curves(rates: PolicyRates) -> list[Row]:
    total = len(rates.rates)
    rows: list[Row] = [
        {"series": "tasks", "rate": low, "high": low + 1 / BINS, "value": count / total}
        for low, count in rates.histogram()
    ]
    for group in GROUPS:
        rows += [
            {"series": f"G = {group}", "rate": step / _CURVE, "value": mixed_chance_of_rate(step / _CURVE, group)}
            for step in range(_CURVE + 1)
        ]
    return rows


def _named(row: Row) -> Row:
    return {**row, "policy": row["policy"].removeprefix("u_")}


def _families(rows: Iterable[Row]) -> tuple[list[str], list[tuple[str, str, list[int], int]]]:
    """Levels, and by family its generator, its tasks at each level and in all."""
    counts: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in rows:
        counts[row["generator"], row["family"]][row["level"]] = row["tasks"]
    levels = sorted(
        {level for found in counts.values() for level in found}, key=lambda name: (not name.isdigit(), name)
    )
    return levels, [
        (family, generator, [found.get(level, 0) for level in levels], sum(found.values()))
        for (generator, family), found in counts.items()
    ]


def _measured(rates: Sequence[PolicyRates]) -> list[tuple[PolicyRates, list[tuple[float, bool]]]]:
    return [(one, [one.mixed(group) for group in GROUPS]) for one in rates]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}" if value in (0, 1) else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"


def _hash(text: str) -> str:
    """As a content security policy names it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _file(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")
