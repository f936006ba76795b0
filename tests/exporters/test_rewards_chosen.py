"""Another reward for the tasks of a pack: what the file may say, and that panel, words and grades follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_worlds as worlds

from envsynth.cache import Cache
from envsynth.cli._reward import read_reward, rewarded
from envsynth.errors import ConfigError
from envsynth.exporters.gymnasium import Gymnasium
from envsynth.exporters.replay import replay

CHOSEN = 'overdrawn = -1\n[group]\nweights = {reward = 1.0, process = 0.2}\nranked_by = "short"\n'


def reward_file(folder: Path, text: str) -> Path:
    file = folder / "reward.toml"
    file.write_text(text)
    return file


def documents(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_panel_words_and_grades_follow_the_chosen_reward(cache: Cache, tmp_path: Path) -> None:
    tasks = [worlds.make_world_task(cache, name) for name in worlds.TASKS]
    plain = Gymnasium().export(tasks, cache, tmp_path / "plain-desk", {})
    spec = read_reward(reward_file(tmp_path, CHOSEN))
    pack = Gymnasium().export(list(rewarded(tasks, spec)), cache, tmp_path / "desk", {})
    lines = {place: documents(place / "panel.jsonl") for place in (plain, pack)}
    changed = [
        (one["reward"], two["reward"], len(two["calls"]))
        for one, two in zip(lines[plain], lines[pack], strict=True) if one != two
    ]  # fmt: skip
    assert changed
    assert {(before, after) for before, after, _ in changed} == {(0.0, -1.0)}
    told = [task["reward"] for task in documents(pack / "desk/tasks.jsonl")]
    assert all("has the reward -1." in one["words"] and "process 0.2" in one["words"] for one in told)
    assert all(one["group"]["ranked_by"] == "short" for one in told)
    report = replay(pack)
    assert (report.exit_code, report.trouble) == (0, "")
    assert -1.0 in {line.got for line in report.lines}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("overdrawn = -2\n", "overdrawn"),
        ("gates = []\n", "gates"),
        ('gate = ["valid_transcript"]\noverdrawn = -1\n', "within_budget"),
        ("[group]\nweights = {}\n", r"group\.weights"),
        ("[group]\nweights = {reward = nan}\n", "larger than 0 and finite"),
        ("[group]\nweights = {reward = 1.0, nonsense = 1.0}\n", "'nonsense' is no component"),
        ("[group]\nlength = inf\n", r"group\.length"),
        ("[group]\nspread = 2\n", r"group\.spread"),
        ("overdrawn = \n", "not TOML"),
    ],
)
def test_what_is_no_reward_is_a_line(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        read_reward(reward_file(tmp_path, text))
    assert "\n" not in str(raised.value)
    assert "reward.toml" in str(raised.value)


def test_a_file_that_is_not_there_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such configuration file"):
        read_reward(tmp_path / "reward.toml")
