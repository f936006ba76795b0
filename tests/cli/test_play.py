"""envsynth play and what catalog show says of worlds."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.cli._score import utility_rows
from envsynth.exporters.gymnasium import Gymnasium
from envsynth.models import Cost, Outcome, Task, Verdict, VerdictStatus


@pytest.fixture
def played(envsynth, worlds, tmp_path: Path) -> dict[str, Task]:
    """The worlds of tests/data/worlds in `catalogs/envsynth.duckdb` of the working folder."""
    cache = Cache(tmp_path / "worlds")
    tasks = {name: worlds.make_world_task(cache, name) for name in worlds.TASKS}
    Path("catalogs").mkdir()
    passed = (Verdict(validator="static", version="1", status=VerdictStatus.PASS),)
    with Catalog.open(Path("catalogs/envsynth.duckdb")) as catalog:
        build = catalog.begin_build({})
        outcomes = [
            Outcome(
                lead=task.candidate.provenance.lead, ladder="1" * 64, candidate=task.candidate, verdicts=passed,
                task=task,
            )
            for task in tasks.values()
        ]  # fmt: skip
        catalog.record(build, outcomes, cache)
        catalog.end_build(build, "done", Cost())
    Gymnasium().export(list(tasks.values()), cache, Path("desk-tasks"), {})
    return tasks


def script(*lines: str) -> str:
    Path("lines.txt").write_text("\n".join(lines), "utf-8")
    return "lines.txt"


def after(text: str, mark: str) -> str:
    assert mark in text
    return text[text.index(mark) :]


def test_a_mechanism_is_played_to_its_end_and_scored_against_the_references(envsynth, played):
    printed = envsynth("play", "two-armed", "--script", script("view", "2 0", *["pull 1"] * 11, "view"))
    assert (printed.code, printed.err) == (0, "")
    assert "Earn as many coins as you can." in printed.out
    assert "  2 pull arm\n      Pull an arm once.\n        arm: 0 or 1: Which arm.\n" in printed.out
    assert "0/40> view\npulls_left\tearned\tarm\tclaimed\n12\t0\t0\t0.7\n12\t0\t1\t0.3\n" in printed.out
    assert "1/40> 2 0\narm: 0\npaid: 0\n" in printed.out
    end = after(printed.out, "\nscore 1: over after 13 calls\n")
    rows = [line.split("\t") for line in end.splitlines()[3:]]
    assert rows == [
        ["hindsight", "8", "at most", ""], ["oracle", "8", "1", "7.8"], ["you", "8", "1", ""],
        ["even", "6", "0.5", "6"], ["default", "4", "0", "4.2"], ["idle", "0", "0", "0"],
        ["check", "holds", "why not"], ["counted", "yes", ""],
    ]  # fmt: skip
    assert not any(word in printed.out for word in ("theta", "tape", "0.65"))


def test_a_task_with_checks_shows_what_does_not_hold_and_the_process(envsynth, played):
    lines = ["3 returns", "find_customers Ito", "refund 101 4656 lamp returned", "refund 101 4655 again", "list 1"]
    printed = envsynth("play", "returns-desk-refund", "--script", script(*lines))
    assert "error: already refunded\n" in printed.out
    assert "0/12> 3 returns\nbody: Goods may be returned" in printed.out
    end = after(printed.out, "score 0: you stopped after 5 calls\n")
    assert "end_state\tno\trefunds: a new row has other values than expected\n" in end
    assert "note_given\tyes\t\n" in end
    assert "process 0.8, which is no part of the score\n" in end
    assert "no_rejected_calls\toptional\tno\tMade no call that was refused.\n" in end


def test_bad_lines_are_one_sentence_and_cost_nothing(envsynth, played):
    bad = [
        "vew",
        "state",
        "undo",
        "reset",
        ":nothing",
        "pull arm=7",
        "help nobody",
        "",
        "# remark",
        "help pull",
        "help 2",
        "tools",
    ]
    printed = envsynth("play", "two-armed", "--script", script(*bad, "task", "quit", "view"))
    assert printed.code == 0
    said = [line for line in printed.out.splitlines() if line.startswith("not a call: ")]
    assert said == [
        "not a call: there is no tool 'vew'; did you mean view?",
        "not a call: the state is not shown: find out with the tools",
        "not a call: there is no undo: what is done is done",
        "not a call: there is no way back: quit, and play again",
        "not a call: there is no ':nothing'; type help",
        "not a call: arm must be 0 or 1, not '7'",
        "not a call: there is no tool 'nobody'; type tools",
    ]
    assert printed.out.count("Earn as many coins") == 2
    assert printed.out.count("Which arm.") == 4
    assert "score 0: you stopped after 0 calls" in printed.out
    assert "1/40>" not in printed.out


def test_an_overdrawn_budget_is_named(envsynth, played):
    printed = envsynth("play", "two-armed", "--script", script(*["view"] * 45))
    end = after(printed.out, "score 0: the budget of 40 calls was overdrawn\n")
    assert "The outcome of 0 does not count: not within budget\n" in end
    assert printed.out.count("> view\n") == 41


def test_a_packs_task_is_played_without_a_catalog(envsynth, played):
    name = played["returns-desk-refuse"].id
    lines = script("find_customers Weber", "list 3", "3 returns", "escalate 104 outside the window")
    printed = envsynth("play", "returns-desk-refuse", "--pack", "desk-tasks", "--script", lines)
    assert (printed.code, "score 1: you stopped after 4 calls" in printed.out) == (0, True)
    assert envsynth("play", name, "--pack", "desk-tasks", "--script", lines).out == printed.out
    assert envsynth("play", name, "--script", lines).out == printed.out
    several = envsynth("play", "returns", "--pack", "desk-tasks", "--script", lines)
    assert (several.code, several.err.count("\n")) == (2, 1)
    assert "several tasks begin with 'returns'" in several.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nobody"], "there is no task or lead"), (["nobody", "--pack", "desk-tasks"], "there is no task 'nobody'"),
        (["two-armed", "--pack", "catalogs"], "this is no pack"),
        (["two-armed", "--script", "gone.txt"], "the script cannot be read"),
        (["two-armed", "--pack", "desk-tasks", "--catalog", "catalogs/envsynth.duckdb"], "both --catalog and --pack"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_one_line(envsynth, played, arguments, why):
    printed = envsynth("play", *arguments)
    assert (printed.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert why in printed.err


def test_standard_input_is_played_where_it_is_no_terminal(played):
    done = subprocess.run(
        [sys.executable, "-c", "from envsynth.cli.main import main; main()", "play", "two-armed"],
        input=b"pull 1\n\xff\xfe\n", capture_output=True, check=True,
    )  # fmt: skip
    text = done.stdout.decode()
    assert "0/40> pull 1\narm: 1\npaid: 1\n" in text
    assert "not a call: a line begins with a tool's name or number; type help\n" in text
    assert "score 0: you stopped after 1 call" in text


def typed_at_a_terminal(command: list[str], lines: dict[str, bytes]) -> tuple[int | None, str]:
    """Exit code and screen of a program; each line is typed once the screen shows the text before it."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    shown, waiting = b"", dict(lines)
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment) as child:
        os.close(follower)
        while select.select([leader], [], [], 20)[0]:
            try:
                shown += os.read(leader, 65536)
            except OSError:
                break  # the program has ended
            for text in [text for text in waiting if text.encode() in shown]:
                os.write(leader, waiting.pop(text))
        try:
            child.wait(20)
        finally:
            child.kill()
    os.close(leader)
    return child.returncode, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


@pytest.mark.slow
def test_a_terminal_has_a_prompt_and_drawn_tables(played):
    command = [sys.executable, "-c", "from envsynth.cli.main import main; main()", "play", "two-armed"]
    code, text = typed_at_a_terminal(command, {"0/40> ": b"view\n", "1/40> ": b"\x04"})
    assert code == 0
    assert re.search(r"pulls_left +earned +arm +claimed", text)
    assert "──" in text
    assert "score 0: you stopped after 1 call" in text


def test_show_tells_a_worlds_tools_checks_references_and_panel(envsynth, played):
    shown = envsynth("catalog", "show", "two-armed").out
    for part in (
        "two-armed: 5 tables, 29 rows", "hidden           theta, tape", "budget           40 calls",
        "pull (write) Pull an arm once.\n    arm: 0 or 1\n", "utility          SELECT earned FROM state",
        "oracle\t8\t1\t7.8\n", "hindsight\t8\tat most", "panel (6)", "alternative:even\t0.5\t12\t",
    ):  # fmt: skip
        assert part in shown
    desk = envsynth("catalog", "show", "returns-desk-refund").out
    assert '{"added": [{"cents": 4655, "order_id": 101}]}' in desk
    assert "invariant window stated in policies/returns" in desk
    assert "references" not in desk
    patch = envsynth("catalog", "show", "two-armed", "--patch")
    assert (patch.code, patch.err.count("\n")) == (2, 1)
    assert "no patch" in patch.err


def test_utilities_are_whole_amounts_or_have_two_decimals():
    utility = {"default": 0.0, "reference": 2e6, "expected": {"oracle": 1234567.891}, "hindsight": 3e6}
    assert utility_rows(utility, {"oracle": 1234567.0, "idle": -0.125}) == [
        ("hindsight", "3000000", "at most", ""), ("oracle", "1234567", "0.6173", "1234567.89"),
        ("idle", "-0.12", "0", ""),
    ]  # fmt: skip


def test_a_catalog_keeps_worlds_while_a_task_needs_them(envsynth, played):
    refund, refuse, _ = sorted(task.id for task in played.values())
    digest = played["returns-desk-refund"].candidate.world.world
    for name, kept in ((refund, True), (refuse, False)):
        assert envsynth("catalog", "rm", name).code == 0
        with Catalog.open(Path("catalogs/envsynth.duckdb"), read_only=True) as catalog:
            if kept:
                assert catalog.blobs.get(digest)
            else:
                with pytest.raises(KeyError):
                    catalog.blobs.get(digest)
