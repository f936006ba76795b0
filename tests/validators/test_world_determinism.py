"""Two processes, forks and restored snapshots must go on alike."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import world_bench
import worldkit

from envsynth.cache import Cache
from envsynth.context import BuildContext
from envsynth.errors import SandboxError, SandboxTimeout
from envsynth.models import Candidate, Source, Verdict, VerdictStatus
from envsynth.runtime.worlds import episode as episodes
from envsynth.runtime.worlds import tools
from envsynth.validators.world_determinism import WorldDeterminism, difference
from envsynth.validators.worlds import apart, plays
from envsynth.validators.worlds.opened import opened, task_document
from envsynth.validators.worlds.replayer import Seen

Judge = Callable[[Candidate], Verdict]


@pytest.fixture
def context(tmp_path: Path) -> BuildContext:
    return BuildContext(tmp_path)


@pytest.fixture
def judge(cache: Cache, source: Source, context: BuildContext) -> Judge:
    return lambda candidate: WorldDeterminism().validate(candidate, source, context)


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    yield
    for one in apart._running.values():
        one.close()
    apart._running.clear()
    plays._latest.clear()


def helper() -> apart.Apart:
    return apart._running[os.getpid()]


def test_the_shop_and_the_wheel_are_played_alike_by_one_second_process(cache: Cache, judge: Judge) -> None:
    first = judge(world_bench.candidate(cache, worldkit.shop()))
    process = helper()
    second = judge(world_bench.wheel_task(cache))
    assert (first.status, second.status) == (VerdictStatus.PASS, VerdictStatus.PASS)
    assert helper() is process
    assert first.evidence["calls"] == 10
    assert first.cost.cpu_s > 0


def test_panel_calls_after_the_end_and_refused_ones_are_compared_too(cache: Cache, judge: Judge) -> None:
    odd = world_bench.line(
        "attack:odd", 0, ("submit", {"total": 1}), ("look", {}), ("nothing", {}), ("order", {"a": 1})
    )
    candidate = world_bench.candidate(cache, worldkit.shop(), panel=(*world_bench.SHOP_PANEL, odd))
    assert judge(candidate).status is VerdictStatus.PASS


def test_a_hash_seed_that_shows_is_found(cache: Cache, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result in the order of a set: what this process shows differs from what the other one does."""
    told = tools.WorldTool._shaped

    def shuffled(self: Any, names: Any, rows: Any) -> Any:
        return told(self, names, rows[::-1])

    monkeypatch.setattr(tools.WorldTool, "_shaped", shuffled)
    verdict = judge(world_bench.candidate(cache, worldkit.shop()))
    assert verdict.status is VerdictStatus.FAIL
    assert verdict.reason == "observations_differ"
    assert verdict.findings[0].where == "reference, call 1"


def test_states_that_differ_are_found(cache: Cache, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers from another state."""
    plain = episodes.build_image

    def other(document: Any) -> bytes:
        tape = [[day, pays + (day == 5)] for day, pays in enumerate(world_bench.PAYS)]
        return plain({**document, "rows": {**document["rows"], "tape": tape}})

    # Worlds are kept by their content; this one is no other test's.
    candidate = world_bench.wheel_task(cache, world_bench.wheel(id="wheel-states"))
    monkeypatch.setattr(episodes, "build_image", other)
    verdict = judge(candidate)
    assert verdict.status is VerdictStatus.FAIL
    assert {finding.rule for finding in verdict.findings} == {"observations_differ", "states_differ"}


def test_equal_states_with_other_images_are_equal(cache: Cache, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images may differ where states do not, and then states are asked for."""
    plain = episodes.build_image

    def other(document: Any) -> bytes:
        tape = document["rows"]["tape"][::-1]
        return plain({**document, "rows": {**document["rows"], "tape": tape}})

    document = worldkit.shop(id="shop-images")
    candidate = world_bench.candidate(cache, document)
    monkeypatch.setattr(episodes, "build_image", other)
    assert judge(candidate).status is VerdictStatus.PASS


def test_a_fork_or_restore_that_forgets_is_found(cache: Cache, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: episodes.WorldEpisode, snapshot: Any) -> None:
        self.reset()

    monkeypatch.setattr(episodes.WorldEpisode, "restore", forgetful)
    verdict = judge(world_bench.candidate(cache, worldkit.shop()))
    assert [finding.rule for finding in verdict.findings] == ["fork_differs", "restore_differs"]


SEEN = Seen(["instruction", "tools", "one", "two"], ["a", "b"], "end", "grade")


@pytest.mark.parametrize(
    ("other", "rule", "where"),
    [
        (SEEN, None, ""),
        (SEEN._replace(observations=["other", "tools", "one", "two"]), "observations_differ", "x, the instruction"),
        (SEEN._replace(observations=["instruction", "more", "one", "two"]), "observations_differ", "x, the tools"),
        (SEEN._replace(observations=["instruction", "tools", "one", "too"]), "observations_differ", "x, call 2"),
        (SEEN._replace(states=["a", "c"]), "states_differ", "x, call 2"),
        (SEEN._replace(end="other"), "states_differ", "x"),
        (SEEN._replace(grade="other"), "grades_differ", "x"),
    ],
)
def test_the_first_difference_is_named(other: Seen, rule: str | None, where: str) -> None:
    found = difference("x", SEEN, other)
    assert (found and found.rule, found.where if found else "") == (rule, where)


def replayed(cache: Cache, context: BuildContext, **changes: Any) -> apart.PlayedApart:
    candidate = world_bench.candidate(cache, worldkit.shop())
    world = opened(candidate, context).world.to_json()
    fields = {"world": world, "task": task_document(candidate), "panel": [[("look", {})]], "task_id": "x"} | changes
    return apart.replay_apart(fields.pop("world"), fields.pop("task"), fields.pop("panel"), **fields)


def test_the_second_process_says_what_is_wrong_and_goes_on(cache: Cache, context: BuildContext) -> None:
    with pytest.raises(SandboxError, match="cannot be played"):
        replayed(cache, context, world="{}")
    process = helper()
    assert len(replayed(cache, context).plays) == 1
    assert helper() is process


def test_a_second_process_that_died_is_started_again(cache: Cache, context: BuildContext) -> None:
    replayed(cache, context)
    process = helper()
    os.kill(process._process.pid, signal.SIGKILL)
    process._process.wait()
    assert replayed(cache, context).plays
    assert helper() is not process


def test_a_second_process_that_ends_while_it_is_asked_is_no_verdict(
    cache: Cache, context: BuildContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart.sys, "executable", "/bin/true")
    with pytest.raises(SandboxError, match="has ended"):
        replayed(cache, context)


def test_a_second_process_that_does_not_answer_is_no_verdict(
    cache: Cache, context: BuildContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/sh\nexec sleep 60\n")
    mute.chmod(0o755)
    monkeypatch.setattr(apart.sys, "executable", str(mute))
    monkeypatch.setattr(apart, "TIMEOUT_S", 0.2)
    with pytest.raises(SandboxTimeout, match="took too long"):
        replayed(cache, context)
    assert not helper().alive


OWNER = """
import os, sys, time
from envsynth.validators.worlds import apart
one = apart.Apart()
print(one._process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_the_second_process_ends_with_the_one_that_started_it() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    helper_id = int(owner.stdout.readline())
    assert Path(f"/proc/{helper_id}").exists()
    owner.kill()
    owner.wait()
    owner.stdout.close()
    for _ in range(100):
        if not _runs(helper_id):
            return
        time.sleep(0.05)
    pytest.fail("it is still there")


def _runs(process: int) -> bool:
    """A process that has ended and was not yet taken note of counts as gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
