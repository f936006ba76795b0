"""Tables with a dataset card."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
import tiny_task as tiny
import tiny_worlds as worlds

from envsynth.cache import Cache
from envsynth.errors import ExportError
from envsynth.exporters.parquet import Parquet
from envsynth.exporters.replay import plays, replay


@pytest.fixture
def pack(tmp_path: Path, cache: Cache) -> Path:
    tasks = [worlds.make_world_task(cache, name) for name in worlds.TASKS]
    return Parquet().export([*tasks, tiny.make_task(cache)], cache, tmp_path / "desk", {"split": "eval"})


def test_what_agents_may_know_is_apart_from_what_they_may_not(pack: Path) -> None:
    with duckdb.connect() as connection:
        tables = {
            name: connection.execute(f"SELECT * FROM '{pack}/data/{name}-eval.parquet'").fetchall()
            for name in ("tasks", "panel", "grading")
        }  # fmt: skip
    assert [len(tables["tasks"]), len(tables["grading"])] == [4, 4]
    assert len(tables["panel"]) > 4
    shown = json.dumps([[str(cell) for cell in row] for row in tables["tasks"]])
    for _, document in tables["grading"]:
        checks = json.loads(document)["candidate"]["verifier"]["checks"]
        assert all(check["sql"] not in shown for check in checks if check["sql"])


def test_tables_are_not_played(pack: Path) -> None:
    assert not plays(pack)
    with pytest.raises(ExportError, match="no pack"):
        replay(pack)


def test_the_card_names_every_table_and_its_split(pack: Path) -> None:
    card = (pack / "README.md").read_text()
    assert card.startswith("---\n")
    for table in pack.glob("data/*.parquet"):
        assert f"path: data/{table.name}" in card
    assert "n<1K" in card
    manifest = json.loads((pack / "manifest.json").read_text())
    assert (manifest["format"], manifest["split"], len(manifest["tasks"])) == ("parquet", "eval", 4)


def test_the_same_tasks_give_the_same_bytes(pack: Path, tmp_path: Path, cache: Cache) -> None:
    tasks = [tiny.make_task(cache), *(worlds.make_world_task(cache, name) for name in reversed(worlds.TASKS))]
    again = Parquet().export(tasks, cache, tmp_path / "other" / "desk", {"split": "eval"})
    for path in pack.rglob("*"):
        if path.is_file():
            assert (again / path.relative_to(pack)).read_bytes() == path.read_bytes(), path


@pytest.mark.parametrize("options", [{"split": "a/b"}, {"colour": "red"}, {"version": "x"}])
def test_bad_options_are_lines(options: dict[str, str], tmp_path: Path, cache: Cache) -> None:
    with pytest.raises(ExportError):
        Parquet().export([tiny.make_task(cache)], cache, tmp_path / "desk", options)
