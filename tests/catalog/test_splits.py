"""Splits of a catalog: nothing of one stands in another, and what does is named."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer.testing
from pydantic import JsonValue

from envsynth.catalog import Catalog
from envsynth.cli.main import app
from envsynth.errors import ConfigError, ExportError
from envsynth.exporters._manifest import verified_pack
from envsynth.models import Outcome, Reference, WorldRef, canonical_json
from envsynth.splits import TRAITS, parsed_splits, split_ids


def moved(outcome: Outcome, generator: str, world: str, group: str = "", **metadata: JsonValue) -> Outcome:
    """The same as a world task of a generator."""
    assert outcome.task is not None
    lead = outcome.lead.model_copy(update={"generator": generator, "group": group})
    candidate = outcome.task.candidate.model_copy(update={
        "environment": WorldRef(world=world * 64), "metadata": metadata, "reference": None,
        "provenance": outcome.task.candidate.provenance.model_copy(update={"lead": lead}),
    })  # fmt: skip
    task = outcome.task.model_copy(update={"candidate": candidate})
    return outcome.model_copy(update={"lead": lead, "candidate": candidate, "task": task})


def world(letter: str) -> bytes:
    """A world whose names and numbers are its own."""
    table = {"name": f"table_{letter}", "columns": [{"name": f"column_{letter}"}]}
    drawn = Random(letter)
    rows = {f"table_{letter}": [[drawn.random()] for _ in range(20)]}
    return canonical_json({"tables": [table], "tools": [{"name": f"tool_{letter}"}], "rows": rows}).encode()


def elsewhere(maker: Any, outcome: Outcome, **changed: Any) -> Outcome:
    """The same with commits and a reference of its own."""
    candidate = outcome.candidate
    assert candidate is not None
    assert outcome.task is not None
    commits = {"base_commit": f"{outcome.lead.index:b}" * 7, "reference_commit": f"{outcome.lead.index:o}" * 9}
    reference = Reference(
        changes=maker.tree({"src/own.py": outcome.lead.source.encode()}),
        patch=maker.blobs.put(outcome.lead.key.encode()),
    )
    provenance = candidate.provenance.model_copy(update=commits)
    candidate = candidate.model_copy(update={"provenance": provenance, "reference": reference, **changed})
    task = outcome.task.model_copy(update={"candidate": candidate})
    return outcome.model_copy(update={"candidate": candidate, "task": task})


@pytest.fixture(scope="module")
def path(maker: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine tasks: three of two repositories, three of two companies, three of two draws in two skins."""
    store = maker.blobs
    worlds = {letter: store.put(world(letter)) for letter in "abcdef"}
    outcomes = [
        maker.outcome(1), elsewhere(maker, maker.outcome(2)),
        elsewhere(maker, maker.outcome(3, source="https://host/owner/toolz@v1.2")),
        moved(maker.outcome(4), "business", "a", "kr1"), moved(maker.outcome(5), "business", "b", "kr1"),
        moved(maker.outcome(6), "business", "c", "us2"),
        moved(maker.outcome(7), "mechanism", "d", family="bandit", skin="port", mechanism="m1"),
        moved(maker.outcome(8), "mechanism", "e", family="bandit", skin="desk", mechanism="m1"),
        moved(maker.outcome(9), "mechanism", "f", family="flow", skin="port", mechanism="m2"),
    ]  # fmt: skip
    outcomes = [_with_blob(outcome, worlds) for outcome in outcomes]
    path = tmp_path_factory.mktemp("splits") / "c.duckdb"
    with Catalog.open(path) as catalog:
        catalog.record(catalog.begin_build({}), outcomes, store)
    return path


def _with_blob(outcome: Outcome, worlds: dict[str, str]) -> Outcome:
    assert outcome.task is not None
    environment = outcome.task.candidate.environment
    if not isinstance(environment, WorldRef):
        return outcome
    candidate = outcome.task.candidate.model_copy(update={"environment": WorldRef(world=worlds[environment.world[0]])})
    task = outcome.task.model_copy(update={"candidate": candidate})
    return outcome.model_copy(update={"candidate": candidate, "task": task})


def numbered(*numbers: int) -> str:
    refs = ", ".join(f"'{number:040x}'" for number in numbers)
    return f"ref IN ({refs})"


def split(path: Path, one: tuple[int, ...], two: tuple[int, ...], *allowed: str) -> dict[str, list[str]]:
    with Catalog.open(path, read_only=True) as catalog:
        return split_ids(catalog, {"train": numbered(*one), "eval": numbered(*two)}, allowed)


@pytest.mark.parametrize(("one", "two"), [((1, 2), (3, 4)), ((4, 5), (6, 7)), ((7, 8), (9,)), ((1, 4, 7), (3, 6, 9))])
def test_what_shares_nothing_is_split(path: Path, one: tuple[int, ...], two: tuple[int, ...]) -> None:
    found = split(path, one, two)
    assert [len(found["train"]), len(found["eval"])] == [len(one), len(two)]
    assert not set(found["train"]) & set(found["eval"])


@pytest.mark.parametrize(
    ("one", "two", "trait"),
    [((1,), (2,), "repository"), ((4,), (5,), "company"), ((7,), (8,), "mechanism"), ((1, 3), (3, 4), "task")],
)
def test_what_is_shared_is_named_and_can_be_accepted(
    path: Path, one: tuple[int, ...], two: tuple[int, ...], trait: str
) -> None:
    with pytest.raises(ExportError, match=f"1 by {trait}") as raised:
        split(path, one, two)
    assert f"--allow-shared {trait}" in str(raised.value)
    assert trait in TRAITS
    if trait != "task":
        assert split(path, one, two, trait)


def test_the_same_skin_of_another_draw_is_shared(maker: Any, tmp_path: Path) -> None:
    store = maker.blobs
    outcomes = [
        moved(maker.outcome(1), "mechanism", "a", family="flow", skin="port", mechanism="m1"),
        moved(maker.outcome(2), "mechanism", "b", family="flow", skin="port", mechanism="m2"),
    ]
    worlds = {letter: store.put(world(letter)) for letter in "ab"}
    with Catalog.open(tmp_path / "c.duckdb") as catalog:
        catalog.record(catalog.begin_build({}), [_with_blob(one, worlds) for one in outcomes], store)
        with pytest.raises(ExportError, match="1 by skin"):
            split_ids(catalog, {"a": numbered(1), "b": numbered(2)})


def test_tasks_are_in_no_split_twice_and_every_pair_is_looked_at(path: Path) -> None:
    with Catalog.open(path, read_only=True) as catalog, pytest.raises(ExportError, match="test and eval share"):
        split_ids(catalog, {"train": numbered(1), "test": numbered(4), "eval": numbered(5)})


def test_an_empty_split_a_bad_condition_and_an_unknown_trait_are_lines(path: Path) -> None:
    with Catalog.open(path, read_only=True) as catalog:
        with pytest.raises(ExportError, match="split eval"):
            split_ids(catalog, {"train": "true", "eval": "false"})
        with pytest.raises(ConfigError):
            split_ids(catalog, {"train": "no_such_column = 1", "eval": "true"})
        with pytest.raises(ConfigError, match="'colour'"):
            split_ids(catalog, {"train": "true"}, ["colour"])


@pytest.mark.parametrize("given", [["train"], ["=x"], ["Train=x"], ["train= "], ["a=x", "a=y"], ["../x=true"]])
def test_what_is_no_split_is_refused(given: list[str]) -> None:
    with pytest.raises(ConfigError):
        parsed_splits(given)


def test_a_condition_may_hold_equal_signs() -> None:
    assert parsed_splits(["train=name = 'a=b'"]) == {"train": "name = 'a=b'"}


def test_nothing_is_written_where_splits_leak(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "packs"
    arguments = ["export", "--catalog", str(path), "--out", str(out)]
    both = [*arguments, "--split", f"train={numbered(4)}", "--split", f"eval={numbered(5)}"]
    result = typer.testing.CliRunner().invoke(app, both)
    assert result.exit_code != 0
    assert isinstance(result.exception, ExportError)
    assert not out.exists()
    mixed = typer.testing.CliRunner().invoke(app, [*both, "--where", "true"])
    assert isinstance(mixed.exception, ConfigError)
    unsplit = typer.testing.CliRunner().invoke(app, [*arguments, "--allow-shared", "skin"])
    assert isinstance(unsplit.exception, ConfigError)
    assert "--allow-shared: nothing is split" in str(unsplit.exception)


def test_a_pack_of_a_split_says_what_it_is_apart_from_and_its_digest_is_printed(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "packs"
    splits = {"train": numbered(1, 2), "eval": numbered(3)}
    arguments = ["export", "--catalog", str(path), "--out", str(out), "--format", "parquet"]
    arguments += [word for name, condition in splits.items() for word in ("--split", f"{name}={condition}")]
    result = typer.testing.CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    for name, other in (("train", "eval"), ("eval", "train")):
        manifest = json.loads((out / name / "manifest.json").read_text())
        assert manifest["selection"] == {
            "where": splits[name], "split": name, "apart_from": {other: splits[other]}, "allow_shared": [],
        }  # fmt: skip
        assert f"{out / name}, {manifest['digest']}\n" in result.output
        assert verified_pack(out / name).digest == manifest["digest"]
