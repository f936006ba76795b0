"""The catalog keeps everything, exactly, once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.errors import CatalogError, ConfigError
from envsynth.models import Cost, Origin, Outcome, OutcomeStatus, Source, SourceKind, SourceOptions, Strength

STATUSES = (OutcomeStatus.ADMITTED, OutcomeStatus.REJECTED, OutcomeStatus.DROPPED, OutcomeStatus.OWED)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "catalog.duckdb"


def record(path: Path, outcomes: list[Outcome], blobs: Cache) -> None:
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({"jobs": 1})
        catalog.record(build, outcomes, blobs)
        catalog.end_build(build, "done", Cost(wall_s=1))


@pytest.mark.parametrize("status", STATUSES)
def test_an_outcome_comes_back_exactly(maker, path, status):
    outcome = maker.outcome(1, status, flicker=True)
    record(path, [outcome], maker.blobs)
    with Catalog.open(path, read_only=True) as catalog:
        assert catalog.outcome(outcome.lead.key) == outcome


def test_what_was_measured_of_the_grader_comes_back_exactly(maker, path, tmp_path):
    strength = Strength(attacks=40, attacks_worked=0, mutants=3, killed=1, controlled=0.5, rewrites=2)
    outcome = maker.outcome(1, strength=strength)
    record(path, [outcome], maker.blobs)
    record(tmp_path / "weaker.duckdb", [maker.outcome(1, strength=strength | Strength(killed=0))], maker.blobs)
    with Catalog.open(path) as catalog, Catalog.open(tmp_path / "weaker.duckdb") as weaker:
        assert catalog.outcome(outcome.lead.key) == outcome
        assert catalog.task(outcome.task.id).strength == strength
        assert catalog.dump() != weaker.dump()
    with Catalog.open(tmp_path / "merged.duckdb") as merged:
        merged.merge(path)
        assert merged.outcome(outcome.lead.key) == outcome


def test_tasks_and_contents_need_no_cache(maker, path, tmp_path):
    maker = type(maker)(Cache(tmp_path / "cache"))
    outcome = maker.outcome(1)
    record(path, [outcome], maker.blobs)
    shutil.rmtree(maker.blobs.root)
    with Catalog.open(path, read_only=True) as catalog:
        (task,) = catalog.tasks()
        assert task == outcome.task
        assert catalog.task(task.id[:-2]) == task
        tree = catalog.blobs.get_tree(task.candidate.environment.tree)
        assert catalog.blobs.get(tree.by_path["src/m1.py"].blob) == b"VALUE = 1\n"
        assert catalog.blobs.get(task.candidate.reference.patch).startswith(b"--- a/")
        assert catalog.dump()["missing"] == []
        with pytest.raises(KeyError):
            catalog.blobs.get("0" * 64)


def test_recording_twice_changes_nothing(maker, path):
    outcomes = [maker.outcome(index, status) for index, status in enumerate(STATUSES)]
    record(path, outcomes, maker.blobs)
    with Catalog.open(path) as catalog:
        before = catalog.dump()
        catalog.record(catalog.begin_build({}), outcomes, maker.blobs)
        assert catalog.dump() == before
        assert catalog.query("SELECT count(*) FROM lead").rows == [(4,)]
        assert catalog.query("SELECT count(*) FROM verdict").rows == [(6,)]


def test_order_and_batches_do_not_matter(maker, tmp_path):
    outcomes = [maker.outcome(index, status) for index, status in enumerate(STATUSES)]
    record(tmp_path / "a.duckdb", outcomes, maker.blobs)
    for outcome in reversed(outcomes):
        record(tmp_path / "b.duckdb", [outcome], maker.blobs)
    with Catalog.open(tmp_path / "a.duckdb") as first, Catalog.open(tmp_path / "b.duckdb") as second:
        assert first.dump() == second.dump()
        assert len(first.dump()["leads"]) == 4


def test_dump_notices_another_judgement(maker, tmp_path):
    record(tmp_path / "a.duckdb", [maker.outcome(1)], maker.blobs)
    record(tmp_path / "b.duckdb", [maker.outcome(1, flicker=True)], maker.blobs)
    with Catalog.open(tmp_path / "a.duckdb") as first, Catalog.open(tmp_path / "b.duckdb") as second:
        assert first.dump() != second.dump()


def test_what_is_owed_is_replaced_and_never_replaces(maker, path):
    owed, admitted = maker.outcome(1, OutcomeStatus.OWED), maker.outcome(1)
    owed_again = maker.outcome(1, OutcomeStatus.OWED, ladder="2" * 64)
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record(build, [owed], maker.blobs)
        assert catalog.settled([owed.lead.key], maker.ladder) == {}
        catalog.record(build, [admitted], maker.blobs)
        assert catalog.settled([owed.lead.key, "no such key"], maker.ladder) == {owed.lead.key: OutcomeStatus.ADMITTED}
        catalog.record(build, [owed, owed_again], maker.blobs)
        assert catalog.outcome(owed.lead.key) == admitted


def test_another_ladder_replaces_a_judgement(maker, path):
    first, second = maker.outcome(1), maker.outcome(1, OutcomeStatus.REJECTED, ladder="2" * 64)
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record(build, [first], maker.blobs)
        catalog.record(build, [second], maker.blobs)
        assert catalog.settled([first.lead.key], first.ladder) == {}
        assert catalog.settled([first.lead.key], second.ladder) == {first.lead.key: OutcomeStatus.REJECTED}
        assert catalog.tasks() == []
        assert catalog.query("SELECT count(*) FROM run").rows == [(5,)]


def test_judged_again_replaces_under_the_same_ladder_but_never_by_what_is_owed(maker, path):
    first = maker.outcome(1)
    again, owed = (maker.outcome(1, status) for status in (OutcomeStatus.REJECTED, OutcomeStatus.OWED))
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record(build, [first], maker.blobs)
        catalog.record(build, [again], maker.blobs)
        assert catalog.outcome(first.lead.key) == first
        catalog.record(build, [owed], maker.blobs, judged_again=True)
        assert catalog.outcome(first.lead.key) == first
        catalog.record(build, [again], maker.blobs, judged_again=True)
        assert catalog.outcome(first.lead.key) == again
        assert catalog.tasks() == []


def test_a_content_gone_from_the_cache_keeps_nothing(maker, path, tmp_path):
    good, bad = maker.outcome(1), maker.outcome(2)
    empty = Cache(tmp_path / "empty")
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record(build, [good], maker.blobs)
        with pytest.raises(CatalogError, match=r"gone from the cache.*run the same command again"):
            catalog.record(build, [bad], empty)
        assert [task.id for task in catalog.tasks()] == [good.task.id]
        catalog.record(build, [bad], maker.blobs)
        assert len(catalog.tasks()) == 2
        assert catalog.dump()["missing"] == []


def test_removing_frees_only_what_nothing_names(maker, path):
    outcomes = [maker.outcome(1), maker.outcome(2), maker.outcome(3, OutcomeStatus.REJECTED)]
    record(path, outcomes, maker.blobs)
    with Catalog.open(path) as catalog:
        before = catalog.query("SELECT count(*) FROM blob").rows[0][0]
        with pytest.raises(ConfigError, match="there is no task or lead 'nothing'"):
            catalog.remove([outcomes[0].task.id, "nothing"])
        assert catalog.remove([outcomes[0].task.id]) == 1
        assert [task.id for task in catalog.tasks()] == [outcomes[1].task.id]
        # Its start tree, the one file that differs, and its patch.
        assert catalog.query("SELECT count(*) FROM blob").rows[0][0] == before - 3
        assert catalog.dump()["missing"] == []
        catalog.record(1, [outcomes[0]], maker.blobs)
        assert catalog.dump()["missing"] == []


def test_sources_of_a_build(maker, path):
    source = Source(uri=".", kind=SourceKind.GIT, location="/somewhere", origin=Origin(file="list.txt", line=3))
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record_source(build, source, "c" * 40, 7)
        catalog.record_source(build, source, "c" * 40, 7)
        assert catalog.query("SELECT build, uri, planned FROM source_run").rows == [(1, ".", 7)]
        assert catalog.begin_build({}) == 2
        assert catalog.query("SELECT status FROM build ORDER BY id").rows == [("running",), ("running",)]


def test_a_source_comes_with_the_options_of_its_latest_build(path):
    source = Source(uri=".", kind=SourceKind.GIT, location="/somewhere", origin=Origin(file="list.txt", line=3))
    trusted = source.model_copy(update={"options": SourceOptions(trusted=True)})
    with Catalog.open(path) as catalog:
        for one in (source, trusted):
            catalog.record_source(catalog.begin_build({}), one, "c" * 40, 7)
        assert catalog.source(".") == trusted
        with pytest.raises(CatalogError, match=r"does not know the source \./other .*build the source again"):
            catalog.source("./other")


def test_names_that_fit_none_or_several(maker, path):
    record(path, [maker.outcome(1), maker.outcome(2)], maker.blobs)
    with Catalog.open(path, read_only=True) as catalog:
        with pytest.raises(ConfigError, match="2 leads begin with 'boltons'"):
            catalog.task("boltons")
        with pytest.raises(
            ConfigError, match=r"there is no task or lead 'bolt0ns-0+-[0-9a-f]+' \(did you mean boltons-"
        ):
            catalog.task(catalog.tasks()[0].id.replace("boltons", "bolt0ns"))


def test_a_rejected_candidate_is_found_by_its_id(maker, path):
    rejected = maker.outcome(1, OutcomeStatus.REJECTED)
    record(path, [rejected, maker.outcome(2), maker.outcome(3, OutcomeStatus.DROPPED)], maker.blobs)
    with Catalog.open(path, read_only=True) as catalog:
        assert catalog.outcome(rejected.candidate.id) == rejected
        assert catalog.key(rejected.candidate.id) == rejected.lead.key


def test_many_outcomes_share_their_rosters(maker, path):
    outcomes = [maker.outcome(index, files=20, tests=50) for index in range(12)]
    record(path, outcomes, maker.blobs)
    with Catalog.open(path, read_only=True) as catalog:
        assert list(catalog.outcomes()) == sorted(outcomes, key=lambda outcome: outcome.lead.key)
        assert catalog.query("SELECT count(*) FROM roster").rows == [(1,)]
