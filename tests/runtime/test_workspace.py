from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest
import tiny_task as tiny

from envsynth.cache import Cache
from envsynth.runtime.contract import Backend
from envsynth.runtime.edits import edits_between
from envsynth.runtime.play import play
from envsynth.runtime.testrun import run_tests
from envsynth.runtime.workspace import WorkspaceEpisode, open_task
from envsynth.sandbox.bubblewrap import BubblewrapBackend
from envsynth.sandbox.local import LocalBackend

pytestmark = pytest.mark.sandbox


def bash(episode: WorkspaceEpisode, command: str, **more: object) -> dict:
    result = episode.call("bash", {"command": command, **more})
    assert result.ok, result
    return result.result


def test_what_is_not_taken_is_said_where_the_work_is_handed_in(episode: WorkspaceEpisode) -> None:
    (submit,) = [tool for tool in episode.tools() if tool["name"] == "submit"]
    (name,) = re.findall(r"new files named like tests \(such as (\S+)", submit["description"])
    path = f"shop/{name}"
    episode.call("write_file", {"path": path, "content": "x = 1\n"})
    assert [left for left, _ in episode.submission().left_out] == [path]


def test_the_reference_gets_one_and_idle_gets_zero(episode: WorkspaceEpisode) -> None:
    solved = play(episode, [tiny.REPRODUCE, tiny.SOLVE, tiny.RETEST, tiny.SUBMIT])
    assert (solved.reward, solved.outcome, solved.process, solved.gate) == (1.0, 1.0, 1.0, 1.0)
    assert all(solved.checks.values())
    assert set(solved.criteria.values()) == {True}
    idle = play(episode, [tiny.SUBMIT])
    assert (idle.reward, idle.outcome, idle.process, idle.gate) == (0.0, 0.0, 0.0, 1.0)
    assert idle.checks == {"fail_to_pass": False, "pass_to_pass": True, "controls": False, "no_tampering": True}
    assert idle.detail["tests"]["F2P"]["not_passed"] == [{"id": tiny.F2P[0], "after": "failed"}]


def test_a_solution_without_process_is_still_a_solution(episode: WorkspaceEpisode) -> None:
    grade = play(episode, [tiny.SOLVE, tiny.SUBMIT])
    assert (grade.reward, grade.process) == (1.0, 0.0)
    assert grade.criteria["tested_after_last_edit"] is False


def test_breaking_what_worked_is_no_solution(episode: WorkspaceEpisode) -> None:
    broken = tiny.FIXED.replace("(100 - discount)", "(90 - discount)")
    grade = play(episode, [{"tool": "write_file", "arguments": {"path": "shop/prices.py", "content": broken}}])
    assert (grade.checks["fail_to_pass"], grade.checks["pass_to_pass"]) == (False, False)


def test_the_agent_finds_neither_hidden_tests_nor_history(episode: WorkspaceEpisode) -> None:
    assert "discount" not in episode.call("read_file", {"path": "tests/test_prices.py"}).result["content"]
    found = bash(episode, "grep -rl 'discount=10' . /tmp /env/bin; ls -d .git; ls /envsynth* 2>/dev/null")
    assert found["output"] == "ls: cannot access '.git': No such file or directory\n"


def test_bash_reports_code_output_and_limits(episode: WorkspaceEpisode) -> None:
    assert bash(episode, "echo out; echo err >&2; exit 3") == {
        "exit_code": 3, "output": "out\nerr\n", "truncated": False,
    }  # fmt: skip
    assert bash(episode, "(echo out; exit 3) | tail -1") == {"exit_code": 3, "output": "out\n", "truncated": False}
    long = bash(episode, "seq 100000")
    assert long["truncated"]
    assert long["output"].startswith("1\n2\n")
    assert long["output"].endswith("100000\n")
    assert "characters left out" in long["output"]
    slow = bash(episode, "sleep 60", timeout_s=1)
    assert slow["exit_code"] == 124
    assert "longer than 1 s" in slow["stopped"]
    assert bash(episode, r"printf '\377\0x'")["output"] == "\ufffd\0x"


def test_each_command_has_a_fresh_shell_in_the_same_workspace(episode: WorkspaceEpisode) -> None:
    bash(episode, "cd shop; export A=1; touch here; (sleep 300; touch late) & disown")
    assert bash(episode, "echo $A; ls shop/here; pwd; pgrep sleep")["output"].split()[:1] == ["shop/here"]


def test_files_are_read_written_and_edited(episode: WorkspaceEpisode) -> None:
    call = episode.call
    assert call("write_file", {"path": "a/b.txt", "content": "one\ntwo\ntwo\r\n"}).result == {"written_bytes": 13}
    assert call("read_file", {"path": "a/b.txt", "start": 2, "lines": 1}).result == {
        "content": "two\n", "start": 2, "total_lines": 3, "truncated": False,
    }  # fmt: skip
    assert call("edit_file", {"path": "a/b.txt", "old": "one\n", "new": "1\n"}).result == {"line": 1}
    assert "more than once" in call("edit_file", {"path": "a/b.txt", "old": "two", "new": ""}).error
    assert "does not occur" in call("edit_file", {"path": "a/b.txt", "old": "one", "new": ""}).error
    assert "CR LF" in call("edit_file", {"path": "a/b.txt", "old": "two\ntwo\n", "new": ""}).error
    assert "other white space" in call("edit_file", {"path": "a/b.txt", "old": "two  two", "new": ""}).error
    assert call("read_file", {"path": "a/b.txt"}).result["content"] == "1\ntwo\ntwo\r\n"


def test_what_each_call_changed_is_recorded_whatever_changed_it(episode: WorkspaceEpisode) -> None:
    bash(episode, "sed -i 's/discount/rebate/' shop/prices.py; echo x > /tmp/scratch.py; mkdir -p .pytest_cache/v")
    episode.call("read_file", {"path": "shop/prices.py"})
    snapshot = episode.snapshot()
    episode.call("write_file", {"path": "tests/test_new.py", "content": "x = 1\n"})
    episode.call("write_file", {"path": "tests/test_new.py", "content": "x = 1\n"})
    bash(episode, "sed -i 's/rebate/discount/' shop/prices.py; rm tests/test_new.py README.md")
    found = [(1, "shop/prices.py", "source"), (3, "tests/test_new.py", "test"), (5, "shop/prices.py", "source"),
             (5, "README.md", "other"), (5, "tests/test_new.py", "test")]  # fmt: skip
    assert [tuple(row) for row in episode.edits] == found
    with closing(episode.fork()) as twin:
        bash(twin, "touch shop/new.py")
        assert [tuple(row) for row in twin.edits] == [*found, (6, "shop/new.py", "source")]
    assert len(episode.edits) == len(found)
    episode.restore(snapshot)
    bash(episode, "true")
    assert [tuple(row) for row in episode.edits] == found[:1]
    episode.reset()
    assert episode.edits == ()


def test_of_a_call_that_changes_very_many_files_the_source_files_are_noted(episode: WorkspaceEpisode) -> None:
    rows = edits_between(
        1, {}, {f"a{number:04}": "file" for number in range(2000)} | {"z.py": "file"}, episode.task.roles
    )
    assert (rows[0].path, len(rows)) == ("z.py", 1000)


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("shell", {}, "there is no tool 'shell'"),
        ("bash", {}, "missing argument 'command'"),
        ("bash", {"command": "touch x", "cwd": "/"}, "unknown argument 'cwd'"),
        ("bash", {"command": "touch x", "timeout_s": True}, "must be an integer"),
        ("bash", {"command": "touch x", "timeout_s": 1.5}, "must be an integer"),
        ("bash", {"command": "touch x", "timeout_s": 10**400}, "must be at most 15"),
        ("bash", {"command": "touch x", "timeout_s": float("inf")}, "must be an integer"),
        ("bash", {"command": "touch x\0"}, "NUL"),
        ("bash", {"command": "é" * 90_000}, "longer than"),
        ("bash", ["touch x"], "must be a JSON object"),
        ("bash", None, "must be a JSON object"),
        ("write_file", {"path": "x", "content": "\ud800"}, "not valid Unicode"),
        ("write_file", {"path": "x\0", "content": ""}, "NUL"),
        ("write_file", {"path": "shop", "content": ""}, "shop: "),
        ("write_file", {"path": "README.md/x", "content": ""}, "README.md/x: "),
        ("read_file", {"path": "nowhere"}, "No such file"),
        ("read_file", {"path": "README.md", "start": 9}, "it has 1 lines"),
        ("read_file", {"path": "README.md", "start": 0}, "at least 1"),
        ("edit_file", {"path": "README.md", "old": "", "new": "x"}, "at least 1 characters"),
        ("edit_file", {"path": "README.md", "old": "x", "new": "x"}, "are the same"),
    ],
)
def test_a_mistake_is_a_result_and_changes_nothing(
    episode: WorkspaceEpisode, tool: str, arguments: object, error: str
) -> None:
    before = episode.state_hash()
    result = episode.call(tool, arguments)
    assert not result.ok
    assert not result.done
    assert error in result.error
    assert episode.state_hash() == before
    assert not episode.trace[-1].ok
    json.loads(episode.trace[-1].arguments)


@pytest.mark.slow
def test_a_call_beyond_the_budget_ends_the_episode_with_gate_zero(cache: Cache, backend: Backend) -> None:
    task = tiny.make_task(cache, turns=2)
    episode = open_task(task.document(), cache.get, cache.root, backend, task_id=task.id)
    on_time = play(episode, [tiny.SOLVE, tiny.SUBMIT])
    late = play(episode, [tiny.SOLVE, tiny.REPRODUCE, tiny.SUBMIT])
    episode.close()
    assert (on_time.gate, on_time.reward) == (1.0, 1.0)
    assert (late.gate, late.outcome, late.reward) == (0.0, 1.0, 0.0)
    assert late.detail["transcript"]["within_budget"] is False


@pytest.mark.slow
def test_a_malformed_action_ends_the_episode_with_gate_zero(episode: WorkspaceEpisode) -> None:
    episode.call(tiny.SOLVE["tool"], tiny.SOLVE["arguments"])
    assert episode.malformed("not \ud800 JSON").done
    grade = episode.grade()
    assert (grade.gate, grade.outcome, grade.reward) == (0.0, 1.0, 0.0)
    assert episode.call("bash", {"command": "true"}) == (False, None, "the episode is over", True)


def test_state_hash_sees_the_state_and_not_the_way(episode: WorkspaceEpisode) -> None:
    empty = episode.state_hash()
    bash(episode, "echo new > x; rm README.md; touch shop/prices.py; mkdir -p .pytest_cache; date > .pytest_cache/d")
    changed = episode.state_hash()
    assert changed != empty
    bash(episode, "rm x; printf '# shop\\n' > README.md; chmod 644 README.md")
    assert episode.state_hash() == empty
    episode.call("write_file", {"path": "x", "content": "new\n"})
    bash(episode, "rm README.md")
    assert episode.state_hash() == changed
    bash(episode, "chmod +x x")
    assert episode.state_hash() != changed


@pytest.mark.slow
def test_forks_and_snapshots_are_independent(episode: WorkspaceEpisode) -> None:
    start = episode.snapshot()
    twin = episode.fork()
    episode.call(tiny.SOLVE["tool"], tiny.SOLVE["arguments"])
    assert (episode.grade().outcome, twin.grade().outcome) == (1.0, 0.0)
    assert (len(episode.trace), len(twin.trace)) == (1, 0)
    twin.close()
    episode.restore(start)
    assert (episode.grade().outcome, len(episode.trace)) == (0.0, 0)


@pytest.mark.slow
def test_grading_leaves_the_episode_as_it_is(episode: WorkspaceEpisode) -> None:
    episode.call(tiny.SOLVE["tool"], tiny.SOLVE["arguments"])
    before = episode.state_hash()
    assert episode.grade() == episode.grade()
    assert episode.state_hash() == before
    assert not episode.call("bash", {"command": "ls tests"}).done


def test_an_episode_that_was_not_reset_says_so(cache: Cache, backend: Backend) -> None:
    task = tiny.make_task(cache)
    episode = open_task(task.document(), cache.get, cache.root, backend, task_id=task.id)
    with pytest.raises(RuntimeError, match="call reset first"):
        episode.grade()
    episode.close()
    episode.close()


def test_without_isolation_the_same_trajectories_get_the_same_grades(cache: Cache) -> None:
    task = tiny.make_task(cache)
    episode = open_task(task.document(), cache.get, cache.root, LocalBackend(), task_id=task.id)
    solved = play(episode, [tiny.REPRODUCE, tiny.SOLVE, tiny.RETEST, tiny.SUBMIT])
    idle = play(episode, [tiny.SUBMIT])
    episode.close()
    assert (solved.reward, solved.process, idle.reward) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize("kind", [BubblewrapBackend, LocalBackend])
def test_a_folder_in_a_links_place_does_not_reach_through_it(cache: Cache, tmp_path: Path, kind: type[Backend]) -> None:
    backend = kind()
    if backend.unavailable():
        pytest.skip(backend.unavailable())
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text(
        "import os\n\n\ndef test_it():\n    assert not os.path.exists('tests/x')\n"
    )
    (tmp_path / "link").symlink_to("tests")
    command = tiny.make_task(cache).candidate.environment.command.document()
    environment = cache.root / "environments" / tiny.recipe().digest()
    files = {"link/x": (b"", "file")}
    report = run_tests(backend, command, environment=environment, layers=[tmp_path], files=files)
    assert [result.status for result in report.results] == ["passed"]
