"""A catalog with outcomes of every status, and the command line in this process."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.cli.main import run
from envsynth.models import Cost, Outcome, OutcomeStatus, Strength, Verdict, VerdictStatus

_SPEC = importlib.util.spec_from_file_location(
    "making_outcomes", Path(__file__).parent.parent / "catalog" / "conftest.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
making = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(making)


_WORLDS = importlib.util.spec_from_file_location(
    "tiny_worlds", Path(__file__).parent.parent / "runtime" / "tiny_worlds.py"
)
assert _WORLDS is not None
assert _WORLDS.loader is not None
tiny_worlds = importlib.util.module_from_spec(_WORLDS)
_WORLDS.loader.exec_module(tiny_worlds)


class Printed(NamedTuple):
    code: int
    out: str
    err: str


Envsynth = Callable[..., Printed]


@pytest.fixture
def envsynth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Envsynth:
    """Runs a command in an empty folder; the cache is there too."""
    folder = tmp_path / "cwd"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ENVSYNTH_CACHE", str(tmp_path / "cache"))

    def call(*arguments: str) -> Printed:
        code = run(list(arguments))
        printed = capsys.readouterr()
        return Printed(code, printed.out, printed.err)

    return call


@pytest.fixture(scope="session")
def worlds():
    """The module that makes tasks of tests/data/worlds."""
    return tiny_worlds


@pytest.fixture(scope="session")
def maker(tmp_path_factory: pytest.TempPathFactory):
    return making.Maker(Cache(tmp_path_factory.mktemp("making")))


STRENGTH = Strength(
    attacks=40, attacks_worked=0, controls=2, controlled=0.5, mutants=8, killed=6, equivalents=3, rewrites=5,
    rewrites_rejected=0,
)  # fmt: skip


def _of_one_change(outcome: Outcome) -> Outcome:
    """The outcome with the fingerprint of always the same change."""
    fingerprint = {"patch": "p", "symbols": ["m.py:f"], "sketch": list(range(64))}
    leakage = Verdict(
        validator="leakage", version="1", status=VerdictStatus.PASS, evidence={"fingerprint": fingerprint}
    )  # fmt: skip
    return outcome.model_copy(update={"verdicts": (*outcome.verdicts, leakage)})


@pytest.fixture(scope="session")
def made(maker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog with two tasks of four leads; both tasks are of the same change."""
    path: Path = tmp_path_factory.mktemp("made") / "made.duckdb"
    outcomes = [
        _of_one_change(maker.outcome(1, flicker=True, strength=STRENGTH)),
        _of_one_change(maker.outcome(2)),
        maker.outcome(3, OutcomeStatus.REJECTED),
        maker.outcome(4, OutcomeStatus.DROPPED),
    ]
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record(build, outcomes, maker.blobs)
        catalog.end_build(build, "done", Cost())
    return path


@pytest.fixture
def task_ids(envsynth: Envsynth, made: Path) -> list[str]:
    """Ids of the tasks in `catalogs/envsynth.duckdb` of the working folder."""
    Path("catalogs").mkdir()
    path = Path(shutil.copy(made, "catalogs/envsynth.duckdb"))
    with Catalog.open(path, read_only=True) as catalog:
        return catalog.task_ids()
