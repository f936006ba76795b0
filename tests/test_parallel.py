"""Several at once, and the same as one after the other."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from envsynth import parallel
from envsynth.context import BuildContext
from envsynth.errors import SandboxError
from envsynth.models import Origin, Source, SourceKind
from envsynth.parallel import in_order, threads_each
from envsynth.sandbox.bubblewrap import BubblewrapBackend
from envsynth.sandbox.docker import DockerBackend
from envsynth.sandbox.local import LocalBackend

SOURCE = Source(uri="x", kind=SourceKind.GIT, location="x", origin=Origin(file="--source", line=1))


@pytest.mark.parametrize("threads", [0, 1, 2, 5, 50])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    assert in_order(lambda item: item * item, range(20), threads) == [item * item for item in range(20)]
    assert in_order(lambda item: item, [], threads) == []


def test_as_many_are_worked_on_at_once_as_there_are_threads() -> None:
    meeting = threading.Barrier(3, timeout=30)  # broken, and so an error, where fewer than three meet
    assert in_order(lambda item: (meeting.wait(), item)[1], range(6), 3) == list(range(6))


def test_the_first_in_order_that_fails_is_told() -> None:
    second_has_failed = threading.Event()

    def work(item: int) -> int:
        if item == 1:
            second_has_failed.set()
            raise SandboxError("the second")
        assert second_has_failed.wait(30)
        raise SandboxError("the first")

    with pytest.raises(SandboxError, match="the first"):
        in_order(work, range(2), 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_has_not_begun_when_one_fails_is_left_out(threads: int) -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        raise SandboxError("no disk")

    with pytest.raises(SandboxError):
        in_order(work, range(1000), threads)
    assert len(begun) < 1000
    assert not any(one.name.startswith("envsynth-") for one in threading.enumerate())


@pytest.mark.parametrize(
    ("jobs", "units", "threads"), [(1, 1, 1), (2, 1, 2), (2, 2, 1), (2, 9, 1), (8, 3, 2), (8, 0, 8)]
)
def test_threads_are_what_workers_leave_idle(jobs: int, units: int, threads: int) -> None:
    assert threads_each(jobs, units) == threads


@pytest.mark.parametrize(
    ("backends", "at_once"), [((BubblewrapBackend,), 2), ((LocalBackend, DockerBackend), 1)], ids=["apart", "shared"]
)
def test_only_what_is_isolated_from_each_other_runs_at_once(
    backends: Sequence[type], at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for backend in backends:
        context = BuildContext(tmp_path)
        context.threads = 2
        monkeypatch.setattr(context, "backend", lambda _, backend=backend: backend())
        names = set(context.each(lambda _: threading.current_thread().name, range(2), SOURCE))
        assert (names == {threading.current_thread().name}) == (at_once == 1)


@pytest.mark.parametrize("patience_s", [0.0, 30.0])
def test_an_interrupt_begins_nothing_more_and_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    monkeypatch.setattr(parallel, "PATIENCE_S", patience_s)
    begun: list[int] = []
    ended = threading.Event()
    may_end = threading.Event()

    def work(item: int) -> None:
        begun.append(item)
        if item == 1:
            signal.raise_signal(signal.SIGINT)  # this thread is given it, and the main thread acts on it
        assert may_end.wait(30)
        ended.set()

    def clock() -> float:
        """Is asked when the interrupt has come."""
        may_end.set()
        return 0.0

    if patience_s:
        monkeypatch.setattr(parallel, "time", SimpleNamespace(monotonic=clock))
    with pytest.raises(KeyboardInterrupt):
        in_order(work, range(100), 2)
    assert ended.is_set() == bool(patience_s)
    may_end.set()
    assert ended.wait(30)
    assert sorted(begun) == [0, 1]
