"""What a catalog answers."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import Field

from envsynth.models.base import Model
from envsynth.models.report import FunnelRow

__all__ = [
    "AttemptFigures",
    "CatalogStats",
    "MergeReport",
    "QueryResult",
    "Shared",
    "SourceCost",
    "SourceFlicker",
    "StrengthStats",
]


class QueryResult(NamedTuple):
    """A table."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    """Values as DuckDB gives them to Python."""


class Shared(NamedTuple):
    """What two sets of tasks have in common."""

    trait: str
    """`task`, `near-duplicate`, or one of the view `trait`."""
    value: str
    task: str
    """One that has it, of the first set."""
    other: str
    """One of the second."""


class AttemptFigures(NamedTuple):
    """An attempt without what was said in it."""

    key: str
    task: str
    policy: str
    model: str
    hinted: bool
    k: int
    status: str
    failure: str | None
    success: bool | None
    """None: not finished."""
    outcome: float | None
    turns: int
    calls: int
    tokens: int
    """Read and written."""
    cost_usd: float | None
    wall_s: float
    model_s: float
    trouble: str


class MergeReport(Model):
    """What a merge did."""

    added: int = Field(ge=0)
    """Leads that were new."""
    replaced: int = Field(ge=0)
    """Leads of which the other catalog knew more, or later."""
    kept: int = Field(ge=0)
    """Leads of the other catalog that were left as they stood here."""
    tasks: int = Field(ge=0)
    """Tasks in the catalog now."""


class SourceFlicker(Model):
    """How many tests of a source flicker."""

    source: str
    tests: int = Field(ge=0)


class SourceCost(Model):
    """What a source's leads took, and how many became tasks."""

    source: str
    tasks: int = Field(ge=0)
    wall_s: float = Field(ge=0)
    cpu_s: float = Field(ge=0)
    disk_bytes: int = Field(ge=0)


class StrengthStats(Model):
    """How strong the graders were measured to be."""

    tasks: int = Field(ge=0)
    """Tasks of which anything was measured."""
    attacked: int = Field(ge=0)
    """Candidates that were attacked, rejected ones too."""
    attacks: int = Field(ge=0)
    """Attacks played on them."""
    attacks_worked: int = Field(ge=0)
    """Those that got more than outcome 0; such a candidate is rejected."""
    median_kill_rate: float | None = Field(ge=0, le=1)
    """Over the tasks whose reference gave mutants; None: there is no such task."""
    survivors: int = Field(ge=0)
    """Mutants that the tasks' tests do not notice."""
    rewrites: int = Field(ge=0)
    """Behaviour-preserving variants played, on rejected candidates too."""
    rewrites_rejected: int = Field(ge=0)
    """Those that a grader took for wrong."""


class CatalogStats(Model):
    """A catalog in figures."""

    builds: int = Field(ge=0)
    leads: int = Field(ge=0)
    statuses: dict[str, int]
    """Leads by outcome status."""
    funnel: tuple[FunnelRow, ...]
    flicker: tuple[SourceFlicker, ...]
    costs: tuple[SourceCost, ...]
    near_duplicates: int = Field(ge=0)
    """Tasks that are nearly the same change as one with an earlier id."""
    strength: StrengthStats
    wall_s: float = Field(ge=0)
    cpu_s: float = Field(ge=0)
    disk_bytes: int = Field(ge=0)
    """What the work wrote to disk, over all leads."""
    blobs: int = Field(ge=0)
    blob_bytes: int = Field(ge=0)
    """Uncompressed bytes of all contents."""
    file_bytes: int = Field(ge=0)
    """Bytes of the catalog's file."""
