"""What an agent may try against the grader: nothing here solves the task, so each gets outcome 0 and no error."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_task as tiny

from envsynth.cache import Cache
from envsynth.models import Origin, Source, SourceKind, Verdict, VerdictStatus
from envsynth.parallel import in_order
from envsynth.runtime.contract import Backend
from envsynth.runtime.play import play
from envsynth.runtime.workspace import WorkspaceEpisode, open_task
from envsynth.validators.adversary import Adversary, validator
from envsynth.validators.adversary.attack import bash, text
from envsynth.validators.adversary.battery import ATTACKS, BY_NAME
from envsynth.validators.adversary.target import Target, target_of

pytestmark = pytest.mark.sandbox

PLAIN = {
    "sitecustomize", "plugin_by_pytest_ini", "shadowed_runner", "linked_tests_folder", "fifo_and_device",
    "background_process", "equal_to_all", "frame_oracle", "report_replaced", "report_rewritten",
}  # fmt: skip
"""What plain pytest tries; the rest is slow together."""


GUESSING = ("deferred_by_signal",)
"""Whose forgery is a matter of time, so of chance: right in 1 of 25 gradings, and not to be so twice in three."""


@pytest.fixture(scope="module")
def target(cache: Cache) -> Target:
    task = tiny.make_task(cache)
    assert task.tests
    return target_of(task.candidate, task.tests, cache)


def calls_of(name: str, target: Target) -> list[dict]:
    return [call.document() for call in BY_NAME[name].calls(target)]


@pytest.mark.parametrize(
    "attack", [pytest.param(one.name, marks=() if one.name in PLAIN else pytest.mark.slow) for one in ATTACKS]
)
def test_an_attack_gets_nothing(episode: WorkspaceEpisode, target: Target, attack: str) -> None:
    # A cache is older than an episode, and dates can tell.
    for path in episode.task.pristine_folder.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    episode.reset()
    for call in calls_of(attack, target):
        episode.call(call["tool"], call["arguments"])
    grades = [episode.grade(quick=True) for _ in range(3 if attack in GUESSING else 1)]
    assert sum((grade.outcome, grade.reward) != (0.0, 0.0) for grade in grades) <= (attack in GUESSING)


def test_an_eight_line_conftest_fools_pytest_and_not_the_grader(
    episode: WorkspaceEpisode, target: Target, cache: Cache, tmp_path: Path
) -> None:
    hook = text("hook")
    assert hook.count("\n") == 8
    # By hand: the workspace as the attacker leaves it, with the hidden tests laid over it.
    for path, content in {**tiny.START, **tiny.HIDDEN, "conftest.py": hook}.items():
        tmp_path.joinpath(path).parent.mkdir(exist_ok=True)
        tmp_path.joinpath(path).write_text(content)
    python = cache.root / "environments" / tiny.recipe().digest() / "bin" / "python"
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path)]
    fooled = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (fooled.returncode, "3 passed" in fooled.stdout) == (0, True)
    tmp_path.joinpath("conftest.py").unlink()
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1

    grade = play(episode, calls_of("root_conftest", target))
    assert (grade.outcome, grade.reward) == (0.0, 0.0)
    assert not grade.checks["fail_to_pass"]
    assert grade.criteria["edited_a_test"] is False
    assert {line["path"] for line in grade.detail["left_out"]} == {"conftest.py"}


@pytest.mark.slow
def test_a_true_solution_counts_whatever_lies_around_it(episode: WorkspaceEpisode, target: Target) -> None:
    names = ("root_conftest", "linked_tests_folder", "fifo_and_device", "long_path")
    calls = [call for name in names for call in calls_of(name, target)[:-1]]
    assert play(episode, [*calls, bash("rm -f shop/prices.py").document(), tiny.SOLVE, tiny.SUBMIT]).outcome == 1.0


def test_debris_is_seen_in_the_rubric(episode: WorkspaceEpisode, target: Target) -> None:
    grade = play(episode, calls_of("repository_with_hooks", target))
    assert grade.criteria["left_debris"] is False
    assert {line["path"] for line in grade.detail["left_out"]} == {".git/config", ".git/hooks/post-checkout"}


def test_nothing_outlives_a_command(episode: WorkspaceEpisode) -> None:
    episode.call("bash", {"command": "(setsid sh -c 'while :; do date > beat; sleep 0.05; done' &) ; sleep 0.2"})
    first = episode.call("bash", {"command": "cat beat; sleep 0.3; cat beat"}).result["output"].split("\n")
    assert first[0] == first[1]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_the_validator_plays_for_real(
    cache: Cache, backend: Backend, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    names = ("deleted_tests", "root_conftest", "profiled", "hard_exit_at_import")
    monkeypatch.setattr(validator, "ATTACKS", tuple(BY_NAME[name] for name in names))
    task = tiny.make_task(cache)
    source = Source(uri="x", kind=SourceKind.GIT, location="x", origin=Origin(file="--source", line=1))
    context = SimpleNamespace(blobs=cache, cache_dir=cache.root, remember=cache.remember, backend=lambda _: backend,
                              each=lambda play, plays, source: in_order(play, plays, threads))  # fmt: skip
    earlier = [
        Verdict(validator="execution", version="1", status=VerdictStatus.PASS, tests=task.tests),
        Verdict(validator="controls", version="1", status=VerdictStatus.PASS, controls=task.controls),
    ]
    verdict = Adversary().validate(task.candidate, source, context, earlier)
    assert (verdict.status, verdict.findings) == (VerdictStatus.PASS, ())
    assert verdict.strength
    assert (verdict.strength.attacks, verdict.strength.attacks_worked) == (4, 0)
    # The first two hand in nothing.
    assert verdict.evidence["distinct_submissions"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["equal_to_all", "results_subclassed", "frame_oracle"])
def test_an_equality_without_a_literal_is_controlled_too(
    cache: Cache, backend: Backend, target: Target, attack: str
) -> None:
    """Parametrised tests compare with a name: what stands there is put into a tuple, which no right result equals."""
    task = tiny.make_task(cache)
    wrapped = tiny.CONTROLS[0].text.replace("183", "(180, 4)")
    control = tiny.CONTROLS[0].model_copy(update={"kind": "wrapped", "text": wrapped})
    document = task.model_copy(update={"controls": (control,)}).document()
    episode = open_task(document, cache.get, cache.root, backend, task_id=task.id)
    try:
        assert play(episode, calls_of(attack, target)).outcome == 0.0
        assert play(episode, [tiny.SOLVE, tiny.SUBMIT]).outcome == 1.0
    finally:
        episode.close()


FORGERS = ("frame_oracle", "profiled", "channel_selective", "exit_patched", "watcher_forked", "asserts_stripped")


@pytest.mark.slow
@pytest.mark.parametrize("attack", FORGERS)
def test_control_runs_are_what_tells_a_forger(episode: WorkspaceEpisode, target: Target, attack: str) -> None:
    """Without them these attacks pass: they are real."""
    grade = play(episode, calls_of(attack, target))
    assert [name for name, holds in grade.checks.items() if not holds] == ["controls"]
