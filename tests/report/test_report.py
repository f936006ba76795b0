"""The report as a file: what is on it, that nothing gets out of its place, and that it needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from itertools import pairwise

import duckdb
import pytest

from envsynth.catalog import Catalog
from envsynth.errors import ConfigError, ExportError
from envsynth.report import write_report


def _step(task, label, place):
    """A step of a labelled trajectory, with what its numbers stand for."""
    (line,) = [line for line in task["panel"] + task["attempts"] if line["label"] == label]
    places, leaf = [], line["leaf"]
    while leaf >= 0:
        places.insert(0, leaf)
        leaf = task["steps"][leaf]["p"]
    node = task["steps"][places[place]]
    changes = task["texts"][node["d"]] if node.get("d", -1) >= 0 else []
    return node["t"], task["texts"][node["a"]], task["texts"][node["r"]], changes


def test_the_same_catalog_gives_the_same_bytes_and_no_path(made, tmp_path):
    again = write_report(made.catalog, tmp_path / "elsewhere").path.read_bytes()
    assert again == made.file.read_bytes()
    for place in (made.catalog.parent, tmp_path):
        assert str(place).encode() not in again


def test_it_needs_nothing_else(made):
    tags = {tag for tag, _ in made.page.elements}
    assert not tags & {"link", "img", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in made.page.elements:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        if tag != "path" and attributes.get("href"):
            assert attributes["href"].startswith("#")
    (policy,) = [found["content"] for _, found in made.page.elements if found.get("http-equiv")]
    digest = base64.b64encode(hashlib.sha256(made.page.scripts[""].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    style = made.file.read_text("utf-8").split("<style>")[1].split("</style>")[0]
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in policy
    assert not re.search(r"url\(|@import|https?:", style + made.page.scripts[""])


def test_what_tasks_say_stays_text(made):
    from_tasks = [found for tag, found in made.page.elements if tag == "script" and "type" not in found]
    assert len(from_tasks) == 1, "a second script would be a task's"
    task = made.page.task(made.evil)
    assert task["instruction"] == task["hint"] == made.text
    assert _step(task, "mutant:evil", 0)[1]["body"] == made.text
    for name, text in made.page.scripts.items():
        if name:
            assert not re.search("[<>&\u2028\u2029]", text)
            json.loads(text)


def test_a_step_shows_what_it_did_to_the_state(made):
    task = made.page.task(made.shop)
    tool, arguments, result, changes = _step(task, "reference", 1)
    assert (tool, arguments, result) == (
        "order", {"item": "lamp", "amount": 4}, {"id": 1, "item": "lamp", "amount": 4},
    )  # fmt: skip
    orders, state = sorted(changes, key=lambda change: change["table"])
    assert (orders["table"], orders["added"]) == ("orders", [{"id": 1, "item": "lamp", "amount": 4}])
    assert (state["added"], state["removed"]) == ([{"day": 0, "money": 96}], [{"day": 0, "money": 100}])
    # Looking leaves a row that grading forgives; it is shown all the same.
    (audit,) = _step(task, "reference", 0)[3]
    assert audit["added"] == [{"id": 1, "seen": "stock"}]
    assert _step(task, "reference", 3)[3] == []


def test_steps_that_trajectories_share_are_kept_once(made):
    task = made.page.task(made.wheel)
    steps = [(step["p"], step["t"], step["a"]) for step in task["steps"]]
    assert len(steps) == len(set(steps))
    lines = {line["label"]: line for line in task["panel"]}
    assert lines["idle"]["leaf"] == -1
    assert lines["reference"]["grade"]["outcome"] == 1


def test_the_panel_has_the_rewards_that_were_played(made):
    task = made.page.task(made.evil)
    found = {
        line["label"]: (line["wanted"], line["grade"]["reward"], line["grade"]["process"]) for line in task["panel"]
    }
    assert found["reference"] == (1, 1, 1)
    assert found["alternative:note_first"] == (1, 1, 0)
    assert found["mutant:five"] == (0, 0, 0)
    assert not any(line["trouble"] for line in task["panel"])


def test_attempts_are_played_again_as_they_were_recorded(made):
    attempts = made.page.task(made.shop)["attempts"]
    assert [line["k"] for line in attempts] == [0, 1, 2, 3]
    assert not any(line["differs"] or line["trouble"] for line in attempts)
    assert all(line["calls"] == 0 or line["leaf"] >= 0 for line in attempts)


def test_hidden_tables_are_marked(made):
    (name,) = {made.page.task(made.shop)["world"]}
    world = json.loads(made.page.scripts[f"world-{name}"])
    assert {table["name"] for table in world["tables"] if table["hidden"]} == {"suppliers", "tape"}
    assert ["cost", "integer", "hard", True] in next(t for t in world["tables"] if t["name"] == "stock")["columns"]


def test_spend_and_rates_are_told(made):
    words = [word for word in (word.strip() for word in made.page.words) if word]
    assert words[words.index("some-model") + 2 : words.index("some-model") + 6] == ["1", "1,234", "56", "0.0025"]
    assert "scripted skill=0.6" in words
    assert any(word.startswith("For the makers of these tasks only") for word in words)


def test_headings_tables_and_lists_are_in_order(made):
    levels = [int(tag[1]) for tag, _ in made.page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    tags = [tag for tag, _ in made.page.elements]
    assert tags.count("table") == tags.count("caption") > 5
    assert all("scope" in found for tag, found in made.page.elements if tag == "th")
    ids = [found["id"] for _, found in made.page.elements if "id" in found]
    assert len(ids) == len(set(ids))
    links = [str(found["href"])[1:] for tag, found in made.page.elements if tag == "a"]
    assert set(links) <= {*ids, *(f"task={name}" for name in (made.shop, made.wheel, made.evil))}


@pytest.mark.parametrize(
    ("where", "tasks", "first"), [("id LIKE 'wheel%'", 1, "wheel"), ("id LIKE 'shop%'", 2, "shop")]
)
def test_tasks_that_are_asked_for_come_first(made, tmp_path, where, tasks, first):
    written = write_report(made.catalog, tmp_path, where=where, tasks=tasks)
    assert (written.pages, written.tasks) == (tasks, 3)
    names = re.findall(r'data-task="([^"]+)"', written.path.read_text("utf-8"))
    assert len(names) == tasks
    assert names[0].startswith(first)
    assert f"{tasks} of 3 tasks have a page" in written.path.read_text("utf-8")


def test_trouble_is_told(made, tmp_path):
    with pytest.raises(ConfigError, match="there is no catalog"):
        write_report(tmp_path / "none.duckdb", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="SQL cannot be answered"):
        write_report(made.catalog, tmp_path / "out", where="nothing > 1")
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot be written"):
        write_report(made.catalog, tmp_path / "file", tasks=0)


def test_a_damaged_world_is_said_and_takes_no_other_page_along(made, tmp_path):
    path = tmp_path / "damaged.duckdb"
    shutil.copyfile(made.catalog, path)
    with Catalog.open(path, read_only=True) as catalog:
        (wheel,) = catalog.tasks_by_id([made.wheel])
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM blob WHERE digest = ?", [wheel.candidate.environment.world])
    found = type(made.page)(write_report(path, tmp_path / "out").path.read_text("utf-8"))
    assert "world cannot be made" in found.task(made.wheel)["trouble"]
    assert made.wheel in found.task(made.wheel)["trouble"]
    assert found.task(made.shop)["panel"] == made.page.task(made.shop)["panel"]
