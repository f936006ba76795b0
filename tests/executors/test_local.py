from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from envsynth.errors import ConfigError, EnvsynthError, SandboxUnavailable
from envsynth.executors import LocalExecutor, local, make_executor
from envsynth.executors._worker import Worker, WorkerDied
from envsynth.underway import UNDERWAY


def shout(unit: str) -> str:
    return unit.upper()


def fail(unit: str) -> str:
    raise SandboxUnavailable("none here", where=unit)


def die(unit: str) -> str:
    if unit == "deadly":
        os._exit(1)
    return unit


def die_once(unit: str) -> str:
    mark = Path(unit)
    if mark.name == "deadly" and not mark.exists():
        mark.touch()
        os._exit(1)
    return "survived"


def enlarge(unit: str) -> str:
    return unit * 2**22


def leave(unit: str) -> str:
    raise SystemExit(unit)


def defect(unit: str) -> str:
    raise ZeroDivisionError(unit)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_unit_comes_back_once(jobs: int) -> None:
    units = [f"unit{number}" for number in range(7)]
    assert sorted(LocalExecutor(jobs).map(shout, units)) == [(unit, unit.upper()) for unit in units]


def whose(unit: str) -> str:
    return str(os.getpid())


def test_units_of_one_group_go_to_one_worker() -> None:
    groups = [group for group in "abcdef" for _ in range(6)]
    units = [f"{group}{number}" for number, group in enumerate(groups)]
    workers: dict[str, set[str]] = {}
    order: dict[str, list[str]] = {}
    for unit, worker in LocalExecutor(2).map(whose, units, groups):
        assert isinstance(worker, str)
        workers.setdefault(unit[0], set()).add(worker)
        order.setdefault(unit[0], []).append(unit)
    # Whoever has nothing left takes over from the other, so one group may have two.
    assert sum(len(found) == 1 for found in workers.values()) >= 5
    assert len(set.union(*workers.values())) == 2
    assert sorted(unit for done in order.values() for unit in done) == sorted(units)
    whole = [done for group, done in order.items() if len(workers[group]) == 1]
    assert all(done == sorted(done, key=lambda unit: int(unit[1:])) for done in whole)


def test_a_worker_that_dies_leaves_the_rest_of_its_group() -> None:
    units = ["deadly", *(f"unit{number}" for number in range(9))]
    results = dict(LocalExecutor(2).map(die, units, ["one"] * 5 + ["two"] * 5))
    assert isinstance(results.pop("deadly"), EnvsynthError)
    assert results == {unit: unit for unit in units[1:]}


@pytest.mark.parametrize("jobs", [1, 2])
def test_our_errors_are_results(jobs: int) -> None:
    results = dict(LocalExecutor(jobs).map(fail, ["a", "b"]))
    assert all(isinstance(error, SandboxUnavailable) and error.where == unit for unit, error in results.items())


def test_a_defect_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(LocalExecutor(2).map(defect, ["a", "b"]))
    assert "raise ZeroDivisionError(unit)" in "".join(caught.value.__notes__)
    assert multiprocessing.active_children() == []


def test_a_unit_that_leaves_is_a_defect_too() -> None:
    with pytest.raises(SystemExit):
        list(LocalExecutor(2).map(leave, ["a", "b"]))


def test_a_dying_worker_takes_only_its_own_unit(tmp_path: Path) -> None:
    results = dict(LocalExecutor(2).map(die, ["one", "deadly", "two", "three"]))
    deadly = results.pop("deadly")
    assert isinstance(deadly, EnvsynthError)
    assert deadly.retryable
    assert results == {"one": "one", "two": "two", "three": "three"}


def test_a_worker_that_died_once_is_tried_again(tmp_path: Path) -> None:
    units = [str(tmp_path / name) for name in ("one", "deadly", "two")]
    assert dict(LocalExecutor(2).map(die_once, units)) == dict.fromkeys(units, "survived")


def test_a_pool_that_breaks_between_two_units_loses_none() -> None:
    units = [f"unit{number}" for number in range(8)]
    results: list[str] = []
    for unit, _ in LocalExecutor(2).map(shout, units):
        results.append(unit)
        if len(results) == 2:
            workers = multiprocessing.active_children()
            for worker in workers:
                worker.kill()
            for worker in workers:
                worker.join()
    assert sorted(results) == units


def test_a_worker_killed_in_the_middle_of_its_answer_is_not_waited_for() -> None:
    worker = Worker()
    worker.give(enlarge, "x")
    assert wait([worker.channel])  # it has begun to answer, with more than a channel holds
    worker.kill()
    with pytest.raises(WorkerDied):
        worker.answer()
    with pytest.raises(WorkerDied):
        worker.give(shout, "next")
    worker.dismiss()
    worker.join()


def test_workers_that_die_while_another_is_started_cost_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deadly(Worker):
        def __init__(self) -> None:
            for other in multiprocessing.active_children():
                other.kill()
                other.join()
            super().__init__()

    monkeypatch.setattr(local, "Worker", Deadly)
    results = list(LocalExecutor(2).map(enlarge, ["a", "b"]))
    assert sorted(results) == [(unit, unit * 2**22) for unit in "ab"]
    assert multiprocessing.active_children() == []


def test_what_is_given_up_ends_its_workers() -> None:
    results = LocalExecutor(2).map(shout, [f"unit{number}" for number in range(20)])
    next(results)
    assert multiprocessing.active_children()
    results.close()  # type: ignore[attr-defined]
    assert multiprocessing.active_children() == []


def test_an_unknown_executor_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="no executor 'slurm'"):
        make_executor("slurm", 1)


@pytest.mark.parametrize(("jobs", "begun"), [(1, 1), (2, 2)])
def test_stopped_it_ends_what_is_under_way_and_begins_nothing(jobs: int, begun: int) -> None:
    executor = LocalExecutor(jobs)
    done = []
    for unit, result in executor.map(shout, list("abcdef"), ["g"] * 3 + [""] * 3):
        executor.stop()
        done.append((unit, result))
    assert len(done) == begun
    assert all(result == unit.upper() for unit, result in done)


def wait_for_ever(unit: str) -> str:
    Path(unit).touch()
    threading.Event().wait(600)
    return unit


def interrupt_once(marks: list[Path]) -> threading.Thread:
    """Ctrl-C, once all units are under way."""

    def press() -> None:
        while not all(mark.exists() for mark in marks):
            threading.Event().wait(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


def test_an_interrupt_ends_what_no_model_is_answering_at_once(tmp_path: Path) -> None:
    marks = [tmp_path / name for name in ("one", "two")]
    told: list[str] = []
    presser = interrupt_once(marks)
    with pytest.raises(KeyboardInterrupt):
        list(LocalExecutor(2, told.append).map(wait_for_ever, [*map(str, marks), str(tmp_path / "three")]))
    presser.join()
    assert multiprocessing.active_children() == []
    assert not (tmp_path / "three").exists()
    assert len(told) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def hold_on(unit: str) -> str:
    with UNDERWAY.call():
        return wait_for_ever(unit)


@pytest.mark.parametrize("way", ["its time is up", "a second interrupt"])
def test_an_answer_that_does_not_come_is_given_up(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = [tmp_path / name for name in ("one", "two")]
    presser = interrupt_once(marks)

    def tell(text: str) -> None:
        if way == "a second interrupt":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(local, "LEAVE_S", 0.2 if way == "its time is up" else 600.0)
    with pytest.raises(KeyboardInterrupt):
        list(LocalExecutor(2, tell).map(hold_on, [str(mark) for mark in marks]))
    presser.join()
    assert multiprocessing.active_children() == []


def test_stopped_it_waits_for_what_is_under_way_so_long_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "FINISH_S", 0.2)
    executor = LocalExecutor(2)
    done = []
    for unit, _ in executor.map(shout_or_wait, [str(tmp_path / "wait"), "a", "b", "c"]):
        executor.stop()
        done.append(unit)
    assert done == ["a"]
    assert multiprocessing.active_children() == []


def shout_or_wait(unit: str) -> str:
    return wait_for_ever(unit) if unit.endswith("wait") else shout(unit)
