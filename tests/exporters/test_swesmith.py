"""Tables of repairs: the columns of SWE-smith's and R2E-Gym's datasets, and rows that say what the task does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tiny_task as tiny
import tiny_worlds as worlds
import yaml
from pack_files import files_of

from envsynth.cache import Cache
from envsynth.errors import ExportError
from envsynth.exporters._r2e import r2e_row
from envsynth.exporters._swe import trees_of
from envsynth.exporters.replay import plays
from envsynth.exporters.swesmith import Swesmith
from envsynth.models import Reference

GOLDEN = Path(__file__).parent / "golden"
SMITH = {
    "instance_id": str, "patch": str, "FAIL_TO_PASS": list, "PASS_TO_PASS": list, "image_name": str, "repo": str,
    "problem_statement": str, "metadata": str,
}  # fmt: skip
R2E = {
    "repo_name": str, "docker_image": str, "commit_hash": str, "parsed_commit_content": str,
    "execution_result_content": str, "modified_files": list, "modified_entity_summaries": list, "relevant_files": list,
    "num_non_test_files": int, "num_non_test_func_methods": int, "num_non_test_lines": int, "prompt": str,
    "problem_statement": str, "expected_output_json": str, "metadata": str,
}  # fmt: skip
SHOP = (
    "class Shop:\n    def open(self):\n        return 1\n\n    def close(self):\n        return 2\n\n\n"
    "def name():\n    pass\n"
)


def exported(cache: Cache, out: Path, **options: str) -> Path:
    return Swesmith().export([tiny.make_task(cache), tiny.make_task(cache, ref="b" * 10)], cache, out, options)


def rows_of(pack: Path, table: str) -> list[dict[str, object]]:
    lines = (pack / "data" / f"{table}-train.jsonl").read_bytes().decode("ascii").splitlines()
    return [json.loads(line) for line in lines]


def test_tables_are_the_same_bytes_each_time(cache: Cache, tmp_path: Path) -> None:
    pack = exported(cache, tmp_path / "one" / "shop-tasks")
    files = files_of(pack)
    assert files == files_of(exported(cache, tmp_path / "two" / "shop-tasks"))
    assert {"README.md", "manifest.json", "data/swesmith-train.jsonl", "data/r2e-train.jsonl"} <= files.keys()
    manifest = json.loads(files["manifest.json"])
    assert (manifest["format"], len(manifest["tasks"])) == ("swesmith", 2)
    assert manifest["files"].keys() == files.keys() - {"manifest.json"}
    assert any(path.startswith("licences/") for path in files)
    assert not plays(pack)


def test_the_card_names_the_tables_and_their_columns(cache: Cache, tmp_path: Path) -> None:
    pack = exported(cache, tmp_path / "shop-tasks")
    _, head, text = (pack / "README.md").read_text().split("---\n", 2)
    told = yaml.safe_load(head)
    for config in told["configs"]:
        (file,) = config["data_files"]
        assert (pack / file["path"]).is_file()
        assert rows_of(pack, config["config_name"])
    assert "These are tables" in text
    assert "$" not in text
    assert all(f"`{name}`" in text for name in SMITH.keys() | R2E.keys())


@pytest.mark.parametrize(("table", "columns"), [("swesmith", SMITH), ("r2e", R2E)])
def test_columns_are_those_of_the_published_datasets(
    table: str, columns: dict[str, type], cache: Cache, tmp_path: Path
) -> None:
    rows = rows_of(exported(cache, tmp_path / "shop-tasks"), table)
    assert len(rows) == 2
    for row in rows:
        assert {name: type(value) for name, value in row.items()} == columns


@pytest.mark.parametrize("table", ["swesmith", "r2e"])
def test_a_row_is_as_it_was(table: str, cache: Cache, tmp_path: Path) -> None:
    (row,) = rows_of(Swesmith().export([tiny.make_task(cache)], cache, tmp_path / "shop-tasks", {}), table)
    row.pop("metadata")  # has the digest of a document whose fields grow
    for name in ("parsed_commit_content", "execution_result_content", "expected_output_json"):
        if name in row:
            row[name] = json.loads(str(row[name]))
    golden = GOLDEN / f"{table}_row.json"
    assert row == json.loads(golden.read_text("utf-8"))


def test_the_patch_makes_the_bug(cache: Cache, tmp_path: Path) -> None:
    for row in rows_of(exported(cache, tmp_path / "shop-tasks"), "swesmith"):
        patch = str(row["patch"])
        assert re.findall(r"^diff --git a/(\S+)", patch, re.MULTILINE) == ["shop/prices.py"]
        assert "-    return sum(prices) * (100 - discount) / 100\n+    return sum(prices) - discount\n" in patch
        assert row["FAIL_TO_PASS"] == list(tiny.F2P)
        assert json.loads(str(row["metadata"]))["strength"].keys() >= {"attacks", "attacks_worked", "killed"}


def test_the_commit_reads_as_the_diff(cache: Cache) -> None:
    task = tiny.make_task(cache)
    row = r2e_row(task, trees_of(task, cache))
    commit = json.loads(row["parsed_commit_content"])
    first, second = commit["file_diffs"]
    assert (first["old_file_content"], first["new_file_content"]) == (tiny.BROKEN, tiny.FIXED)
    assert second["header"]["file"]["path"] == "tests/test_prices.py"
    (hunk,) = first["hunks"]
    lines = [(line["type"], line["content"]) for line in hunk["line_group"]["all_lines"]]
    old = [content for kind, content in lines if kind != "added"]
    assert "\n".join([*old, ""]) == tiny.BROKEN
    assert (row["num_non_test_files"], row["num_non_test_func_methods"], row["num_non_test_lines"]) == (1, 1, 2)
    assert row["commit_hash"] == commit["new_commit_hash"] != commit["old_commit_hash"]


def test_the_logs_are_made_of_the_lists(cache: Cache) -> None:
    task = tiny.make_task(cache)
    row = r2e_row(task, trees_of(task, cache))
    results = json.loads(row["execution_result_content"])
    assert f"FAILED {tiny.F2P[0]}\n" in results["old_commit_res_stdout"]
    assert "FAILED" not in results["new_commit_res_stdout"]
    assert results["test_file_names"] == ["test_prices.py"]
    assert json.loads(row["expected_output_json"]) == dict.fromkeys(
        ("test_discount", "test_pay", "test_plain"), "PASSED"
    )


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (SHOP.replace("return 1", "return 3"), [("open", "method")]),
        (SHOP.replace("        return 2\n", "        two = 2\n        return two\n"), [("close", "method")]),
        (SHOP.replace("    pass", "    return ''"), [("name", "function")]),
        (SHOP.replace("class Shop:", "class Shop(dict):"), [("Shop", "class")]),
        (SHOP + "\n\nX = 1\n", []),
        (SHOP.replace("    def close(self):\n        return 2\n", ""), [("close", "method")]),
        # What is no Python any more has lost all that it had.
        ("def broken(:\n", [("Shop", "class"), ("open", "method"), ("close", "method"), ("name", "function")]),
    ],
)
def test_what_a_change_touches(changed: str, names: list[tuple[str, str]], cache: Cache) -> None:
    task = tiny.make_task(cache, start={**tiny.START, "shop/shop.py": SHOP})
    reference = Reference(changes=tiny.tree_of(cache, {"shop/shop.py": changed}), patch=cache.put(b""))
    task = task.model_copy(update={"candidate": task.candidate.model_copy(update={"reference": reference})})
    row = r2e_row(task, trees_of(task, cache))
    assert row["modified_files"] == ["shop/shop.py", "tests/test_prices.py"]
    assert row["relevant_files"] == ["shop/shop.py"]
    assert [(one["name"], one["type"]) for one in row["modified_entity_summaries"]] == names


def test_what_cannot_be_held_is_a_line(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="swesmith cannot hold world tasks") as raised:
        Swesmith().export([worlds.make_world_task(cache, worlds.TASKS[0])], cache, tmp_path / "a", {})
    assert "gymnasium or " in str(raised.value)
    with pytest.raises(ExportError, match="unknown option 'split'"):
        exported(cache, tmp_path / "b", split="train")
    with pytest.raises(ExportError, match="no version"):
        exported(cache, tmp_path / "c", version="new")
    assert list(tmp_path.iterdir()) == []
