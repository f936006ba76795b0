"""The catalog: every lead, task, verdict, run and content in one DuckDB file."""

from envsynth.catalog._sql import examples, views
from envsynth.catalog.reports import (
    AttemptFigures,
    CatalogStats,
    MergeReport,
    QueryResult,
    SourceCost,
    SourceFlicker,
    StrengthStats,
)
from envsynth.catalog.store import Catalog

__all__ = [
    "AttemptFigures",
    "Catalog",
    "CatalogStats",
    "MergeReport",
    "QueryResult",
    "SourceCost",
    "SourceFlicker",
    "StrengthStats",
    "examples",
    "views",
]
