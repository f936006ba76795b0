from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from envsynth.errors import ConfigError, EnvsynthError, SandboxUnavailable
from envsynth.executors import LocalExecutor, make_executor


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


def defect(unit: str) -> str:
    raise ZeroDivisionError(unit)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_unit_comes_back_once(jobs: int) -> None:
    units = [f"unit{number}" for number in range(7)]
    assert sorted(LocalExecutor(jobs).map(shout, units)) == [(unit, unit.upper()) for unit in units]


@pytest.mark.parametrize("jobs", [1, 2])
def test_our_errors_are_results(jobs: int) -> None:
    results = dict(LocalExecutor(jobs).map(fail, ["a", "b"]))
    assert all(isinstance(error, SandboxUnavailable) and error.where == unit for unit, error in results.items())


def test_a_defect_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        list(LocalExecutor(2).map(defect, ["a", "b"]))


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


def test_an_unknown_executor_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="no executor 'slurm'"):
        make_executor("slurm", 1)
