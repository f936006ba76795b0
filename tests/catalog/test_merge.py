"""Merging catalogs."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsynth.catalog import Catalog, MergeReport
from envsynth.errors import CatalogError, ConfigError
from envsynth.models import Cost, OutcomeStatus


def make(path: Path, outcomes, blobs) -> Path:
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record(build, outcomes, blobs)
        catalog.end_build(build, "done", Cost())
    return path


def test_merging_equals_building_in_one_and_twice_is_once(maker, tmp_path):
    admitted, rejected, dropped = (
        maker.outcome(1, flicker=True),
        maker.outcome(2, OutcomeStatus.REJECTED),
        maker.outcome(3, OutcomeStatus.DROPPED),
    )
    ours = make(tmp_path / "o'urs.duckdb", [admitted, rejected], maker.blobs)
    theirs = make(tmp_path / "the'irs.duckdb", [rejected, dropped], maker.blobs)
    whole = make(tmp_path / "whole.duckdb", [admitted, rejected, dropped], maker.blobs)
    with Catalog.open(ours) as catalog:
        assert catalog.merge(theirs) == MergeReport(added=1, replaced=0, kept=1, tasks=1)
        once = catalog.dump()
        assert catalog.merge(theirs) == MergeReport(added=0, replaced=0, kept=2, tasks=1)
        assert catalog.dump() == once
        assert catalog.query("SELECT count(*) FROM build").rows == [(2,)]
        with Catalog.open(whole) as other:
            assert once == other.dump()


def test_a_task_comes_with_its_contents(maker, tmp_path):
    outcome = maker.outcome(1)
    theirs = make(tmp_path / "theirs.duckdb", [outcome], maker.blobs)
    with Catalog.open(tmp_path / "ours.duckdb") as catalog:
        assert catalog.merge(theirs).added == 1
        assert catalog.outcome(outcome.lead.key) == outcome
        assert catalog.dump()["missing"] == []


def test_final_wins_over_owed_and_later_over_earlier(maker, tmp_path):
    owed = maker.outcome(1, OutcomeStatus.OWED)
    ours = make(tmp_path / "ours.duckdb", [owed, maker.outcome(2)], maker.blobs)
    again = maker.outcome(2, OutcomeStatus.REJECTED, ladder="2" * 64)
    theirs = make(tmp_path / "theirs.duckdb", [maker.outcome(1), again], maker.blobs)
    with Catalog.open(ours) as catalog:
        assert catalog.merge(theirs) == MergeReport(added=0, replaced=2, kept=0, tasks=1)
        assert catalog.outcome(owed.lead.key).status is OutcomeStatus.ADMITTED
        assert catalog.outcome(again.lead.key) == again
    with Catalog.open(theirs) as catalog:
        assert catalog.merge(ours).replaced == 0


def test_what_cannot_be_merged(maker, tmp_path):
    ours = make(tmp_path / "ours.duckdb", [maker.outcome(1)], maker.blobs)
    junk = tmp_path / "junk.duckdb"
    junk.write_bytes(b"junk" * 1000)
    with Catalog.open(ours) as catalog:
        with pytest.raises(ConfigError, match="into itself"):
            catalog.merge(ours)
        with pytest.raises(ConfigError, match="there is no catalog"):
            catalog.merge(tmp_path / "none.duckdb")
        with pytest.raises(CatalogError, match="not a DuckDB database"):
            catalog.merge(junk)
        assert len(catalog.tasks()) == 1
