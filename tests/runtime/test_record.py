"""Records of calls: written where a world is played, graded elsewhere, and of no use where they are not whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_worlds as worlds

from envsynth.cache import Cache
from envsynth.errors import ConfigError, SandboxError
from envsynth.exporters.gymnasium import Gymnasium
from envsynth.runtime.pack import Pack
from envsynth.runtime.player import Player
from envsynth.runtime.record import MAX_CALL, RecordedPlayer, graded, main, read_calls


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    store = Cache(tmp_path_factory.mktemp("store"))
    tasks = [worlds.make_world_task(store, name) for name in worlds.TASKS]
    out = Gymnasium().export(tasks, store, tmp_path_factory.mktemp("packs") / "desk-tasks", {})
    return Pack(out / "desk_tasks", name="desk_tasks")


def task_of(pack: Pack, name: str = "returns-desk-refund") -> str:
    return next(task for task in pack.budgets if task.startswith(name))


def reference(pack: Pack, task: str) -> list[dict[str, object]]:
    return next(line["calls"] for line in pack.panel() if (line["task"], line["label"]) == (task, "reference"))


def record_of(pack: Pack, task: str, place: Path, calls: list[dict[str, object]]) -> RecordedPlayer:
    play = RecordedPlayer(pack, task, place)
    for call in calls:
        play.call(str(call["tool"]), call["arguments"])
    return play


def test_a_record_is_graded_as_the_episode_that_it_is_of(pack: Pack, tmp_path: Path) -> None:
    rewards = set()
    for number, line in enumerate(pack.panel()):
        record_of(pack, line["task"], tmp_path / f"{number}", line["calls"])
        player = Player(pack)
        player.begin(line["task"])
        told = player.play(line["calls"])
        player.close()
        assert graded(pack, line["task"], tmp_path / f"{number}") == told
        rewards.add(told["reward"])
    assert rewards > {0.0, 1.0}


def test_who_makes_no_call_is_graded_by_the_empty_record(pack: Pack, tmp_path: Path) -> None:
    for task in pack.budgets:
        record_of(pack, task, tmp_path / task, [])
        assert graded(pack, task, tmp_path / task)["reward"] == 0.0


def test_calls_after_the_end_and_beyond_the_budget_are_no_part_of_it(pack: Pack, tmp_path: Path) -> None:
    task, place = task_of(pack), tmp_path / "record"
    turns = pack.budgets[task]
    play = record_of(pack, task, place, [{"tool": "no_such_tool", "arguments": {"n": n}} for n in range(turns + 50)])
    assert play.call("no_such_tool", {}) == "error: the episode is over"
    assert len(read_calls(place, task, turns=turns)) == turns + 1
    told = graded(pack, task, place)
    assert (told["reward"], told["gate"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    "arguments",
    [{"x": float("nan")}, {"x": 10**5000}, {"x": "a" * MAX_CALL}, {"x": [[]] * 10 + [float("inf")]}],
    ids=["nan", "long-number", "long-text", "nested"],
)
def test_what_would_not_be_read_again_is_refused_and_is_no_call(
    pack: Pack, tmp_path: Path, arguments: dict[str, object]
) -> None:
    task, place = task_of(pack), tmp_path / "record"
    play = RecordedPlayer(pack, task, place)
    assert "nothing was done" in play.call("no_such_tool", arguments)
    assert read_calls(place, task, turns=pack.budgets[task]) == []


def test_a_lone_half_of_a_pair_survives_the_record(pack: Pack, tmp_path: Path) -> None:
    task, place = task_of(pack), tmp_path / "record"
    record_of(pack, task, place, [{"tool": "no\ud800", "arguments": {"\udfff": "\ud800", "n": -0.0}}])
    (call,) = read_calls(place, task, turns=9)
    assert call == {"tool": "no\ud800", "arguments": {"\udfff": "\ud800", "n": -0.0}}
    assert graded(pack, task, place)["gate"] == 1.0


def test_a_process_that_was_killed_is_followed_by_one_that_goes_on(pack: Pack, tmp_path: Path) -> None:
    task, place = task_of(pack), tmp_path / "record"
    calls = reference(pack, task)
    record_of(pack, task, place, calls[:2])
    with place.open("ab") as file:
        file.write(b'{"tool": "refu')
    with pytest.raises(SandboxError, match="its end is missing"):
        graded(pack, task, place)
    record_of(pack, task, place, calls[2:])
    assert read_calls(place, task, turns=pack.budgets[task]) == calls
    assert graded(pack, task, place)["reward"] == 1.0


def test_a_process_killed_before_its_first_line_was_whole_begins_anew(pack: Pack, tmp_path: Path) -> None:
    task, place = task_of(pack), tmp_path / "record"
    place.write_bytes(b'{"schema": 1, "ta')
    record_of(pack, task, place, reference(pack, task))
    assert graded(pack, task, place)["reward"] == 1.0


def test_where_the_environment_failed_there_is_no_grade(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, place = task_of(pack), tmp_path / "record"
    calls = reference(pack, task)
    play = record_of(pack, task, place, calls[:1])

    def failing(*_: object) -> str:
        raise SandboxError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Player, "call", failing)
        with pytest.raises(SandboxError, match="the disk is gone"):
            play.call(str(calls[1]["tool"]), calls[1]["arguments"])
    with pytest.raises(SandboxError, match="the environment has failed"):
        play.call(str(calls[1]["tool"]), calls[1]["arguments"])
    for use in (lambda: graded(pack, task, place), lambda: RecordedPlayer(pack, task, place)):
        with pytest.raises(SandboxError, match="the disk is gone"):
            use()


def broken(content: bytes, how: str) -> bytes:
    head, *lines = content.splitlines(keepends=True)
    return {
        "empty": b"",
        "no head": b"".join(lines),
        "torn": content[:-1],
        "another task": content.replace(b"returns-desk-refund", b"returns-desk-refuse"),
        "another schema": content.replace(b'"schema": 1', b'"schema": 2'),
        "no calls": head + b'{"reward": 1.0}\n',
        "more than calls": head + lines[0].replace(b'"tool"', b'"grade": 1, "tool"'),
        "no JSON": head + b"\x00\xff\n",
        "lists": head + b"[]\n",
        "too many": head + lines[0] * 100,
        "huge": head + b'{"tool": "' + b"a" * (16 * MAX_CALL) + b'", "arguments": {}}\n',
        "after the end": content + lines[0],
    }[how]


@pytest.mark.parametrize("how", [
    "empty", "no head", "torn", "another task", "another schema", "no calls", "more than calls", "no JSON", "lists",
    "too many", "huge", "after the end",
])  # fmt: skip
def test_a_record_that_is_not_whole_is_no_grade(pack: Pack, tmp_path: Path, how: str) -> None:
    task, place = task_of(pack, "two-armed"), tmp_path / "record"
    calls = reference(pack, task)
    record_of(pack, task, place, calls)
    if how == "another task":
        task = task_of(pack)
        record_of(pack, task, tmp_path / "refund", reference(pack, task))
        content = (tmp_path / "refund").read_bytes()
    else:
        content = place.read_bytes()
    assert broken(content, how) != content
    place.write_bytes(broken(content, how))
    with pytest.raises(SandboxError):
        graded(pack, task, place)


def test_no_record_a_link_and_a_folder_are_no_grade(pack: Pack, tmp_path: Path) -> None:
    task = task_of(pack)
    record_of(pack, task, tmp_path / "real", reference(pack, task))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "folder").mkdir()
    for name in ("none", "link", "folder"):
        with pytest.raises(SandboxError, match="there is none"):
            graded(pack, task, tmp_path / name)
    with pytest.raises(ConfigError):
        graded(pack, "no-such-task", tmp_path / "real")


def test_the_command_writes_rewards_anew_or_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Cache(tmp_path_factory.mktemp("store"))
    out = Gymnasium().export([worlds.make_world_task(store, worlds.TASKS[1])], store, tmp_path / "desk", {})
    (tmp_path / "desk" / "panel.jsonl").rename(out / "desk" / "panel.jsonl")
    pack = Pack(out / "desk", name="desk")
    (task,) = pack.budgets
    reward, record = tmp_path / "reward.json", tmp_path / "record"
    assert main(["prepare", str(pack.folder)]) == 0
    reward.write_text('{"reward": 1.0}')
    assert main(["grade", str(pack.folder), str(record), str(tmp_path)]) == 3
    assert "there is none" in capsys.readouterr().err
    assert not reward.exists()
    record_of(pack, task, record, reference(pack, task))
    assert main(["grade", str(pack.folder), str(record), str(tmp_path)]) == 0
    assert json.loads(reward.read_text()) == graded(pack, task, record)
    panel = pack.folder / "panel.jsonl"
    panel.write_text(panel.read_text().replace('"outcome":1.0,"reward":1.0', '"outcome":1.0,"reward":0.5'))
    assert main(["prepare", str(pack.folder)]) == 3
    assert "graded otherwise here" in capsys.readouterr().err
