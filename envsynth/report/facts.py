"""What the report asks of a catalog as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from envsynth.catalog import Catalog
from envsynth.llm.ledger import Spend
from envsynth.rollout.statistics import mixed_chance, mixed_chance_of_rate

__all__ = ["GROUPS", "Facts", "Listed", "PolicyRates", "ask"]

GROUPS = (4, 8, 16)
"""Group sizes G of the mixed-group curve."""
BINS = 10
"""Steps of the histogram of solve rates."""
LISTED = 200
"""Rows of a list that may be long."""
Row = Mapping[str, Any]


class Listed(NamedTuple):
    """The beginning of a list."""

    rows: list[Row]
    total: int
    """How many there are."""


class TaskRate(NamedTuple):
    """How often a policy solved a task."""

    task: str
    n: int
    """Finished attempts."""
    c: int
    """Successes."""


class PolicyRates(NamedTuple):
    """What one policy came to."""

    policy: str
    model: str
    hinted: bool
    rates: list[TaskRate]

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.policy} {self.model}".strip() + (", with the hint" if self.hinted else "")

    @property
    def attempts(self) -> int:
        """Finished ones."""
        return sum(rate.n for rate in self.rates)

    @property
    def mean(self) -> float:
        """pass@1, each task weighed alike."""
        return sum(rate.c / rate.n for rate in self.rates) / len(self.rates)

    def histogram(self) -> list[tuple[float, int]]:
        """Lower bound and number of tasks of each step of the rate; the last step holds 1 itself."""
        counts = [0] * BINS
        for rate in self.rates:
            counts[min(BINS - 1, BINS * rate.c // rate.n)] += 1
        return [(place / BINS, count) for place, count in enumerate(counts)]

    def mixed(self, group: int) -> tuple[float, bool]:
        """Mean chance of a mixed group, and whether measured rates were put into 1 - p^G - (1-p)^G for some task."""
        exact = [mixed_chance(rate.n, rate.c, group) for rate in self.rates]
        chances = [
            mixed_chance_of_rate(rate.c / rate.n, group) if known is None else known
            for rate, known in zip(self.rates, exact, strict=True)
        ]
        return sum(chances) / len(chances), None in exact


class Facts(NamedTuple):
    """The catalog as a whole; rows as the queries of `catalog/queries/report.sql` name their columns."""

    totals: Row
    funnel: list[Row]
    families: list[Row]
    strength: list[Row]
    distributions: list[Row]
    rates: list[PolicyRates]
    references: list[Row]
    flicker: Listed
    instruments: list[Row]
    near_duplicates: Listed
    spend: tuple[Spend, ...]
    """By role, model and endpoint; empty where no model was ever asked."""


def ask(catalog: Catalog, spend: tuple[Spend, ...]) -> Facts:
    """Everything the report says of a catalog as a whole.

    Args:
        catalog: to be asked.
        spend: what its ledger holds.
    """

    def rows(name: str) -> list[Row]:
        found = catalog.figures(name)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    return Facts(
        totals=rows("totals")[0], funnel=rows("funnel"), families=rows("families"), strength=rows("strength"),
        distributions=rows("distributions"), rates=_rates(rows("rates")), references=rows("references"),
        flicker=_listed(rows("flicker")), instruments=rows("instruments"),
        near_duplicates=_listed(rows("near_duplicates")), spend=spend,
    )  # fmt: skip


def _listed(rows: list[Row]) -> Listed:
    return Listed(rows[:LISTED], len(rows))


def _rates(rows: list[Row]) -> list[PolicyRates]:
    found: dict[tuple[str, str, bool], list[TaskRate]] = defaultdict(list)
    for row in rows:
        found[row["policy"], row["model"], row["hinted"]].append(TaskRate(row["task"], row["n"], row["c"]))
    return [PolicyRates(*key, rates) for key, rates in found.items()]
