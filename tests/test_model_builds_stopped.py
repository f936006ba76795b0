"""Builds with models in every role that are stopped: by their budget, and by kill -9 while a call is under way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envsynth import pipeline
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.errors import BudgetSpent
from envsynth.llm import Ledger
from envsynth.llm.ledger import PICO, Spend
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import Answer, hang
from tests.castkit import PEN, PLAYER, READER, Cast, cast_settings, toml_of

pytestmark = pytest.mark.slow
SOURCE = "scenario:free brief=a_place_with_rules limit=1"
ONE = {"concurrency": 1}
"""One call at a time: then it is known which one is under way."""
PATIENCE = 300
COMMAND = "from envsynth.cli.main import main; main()"


def dollars(cast: Cast) -> float:
    return sum(call.cost for call in cast.answered) / PICO


def spent(folder: Path) -> Spend:
    return Ledger(folder / "c.spend.sqlite").total()


# --- the budget -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [PEN, READER, PLAYER])
def test_five_cents_stop_a_build_in_every_role_and_a_higher_budget_goes_on(tmp_path: Path, role: str) -> None:
    """The role is dear and the others are cheap; where it stops, one more call of that role could cost too much."""
    prices = {name: {"input": 0.01, "output": 0.02} for name in (PEN, READER, PLAYER)}
    prices[role] = {"input": 1.0, "output": 2.0}
    sampling = {"max_tokens": 6000, "seed": 6}
    roles = {name: {**ONE, "prices": prices[name], "sampling": sampling} for name in prices}
    cast = Cast()
    with ScriptedModel(cast) as model:

        def config(budget: float) -> BuildConfig:
            return BuildConfig(
                sources=(SOURCE,), root=tmp_path, cache=tmp_path / "cache", catalog=tmp_path / "c.duckdb",
                out=tmp_path / "out", jobs=1, llm=cast_settings(model, roles, budget=budget),
            )  # fmt: skip

        with pytest.raises(BudgetSpent, match=r"budget of \$0\.05 leaves no room.*higher --budget") as caught:
            pipeline.build(config(0.05), lambda event: None)
        assert caught.value.exit_code == 3
        stopped, asked = spent(tmp_path), len(model.requests)
        assert (stopped.settled, stopped.reserved, stopped.uncertain, stopped.released) == (asked, 0, 0, 0)
        assert 0 < stopped.settled_usd <= 0.05
        assert cast.answered[-1].model in (role, *((PEN, READER) if role == PLAYER else (PEN,)))
        report = pipeline.build(config(5.0), lambda event: None)
    assert (report.statuses, report.exit_code) == ({"admitted": 1}, 0)
    assert (cast.repeated(), cast.lost) == (0, [])
    assert cast.answered[asked].model == role
    assert spent(tmp_path).settled == len(cast.answered) > asked


# --- kill -9 ----------------------------------------------------------------------------------------------------


class Killer:
    """Lets one request hang, and tells when it came."""

    def __init__(self) -> None:
        self.hanging = threading.Event()
        self._stage: tuple[str, int] | None = None
        self._lock = threading.Lock()

    def arm(self, model: str, number: int) -> None:
        """Let the so-manieth request from now on to a model hang, 1-based."""
        self.hanging.clear()
        self._stage = model, number

    def __call__(self, received: Received) -> Answer | None:
        with self._lock:
            if self._stage is None or received.body["model"] != self._stage[0]:
                return None
            model, left = self._stage
            self._stage = (model, left - 1) if left > 1 else None
            if left > 1:
                return None
        self.hanging.set()
        return hang()


STAGES = [(PEN, 1), (PEN, 4), (PEN, 6), (READER, 1), (READER, 7), (PLAYER, 1), (PLAYER, 5)]
"""Which call of the next run is under way when it is killed: the author's first, one amid its world, its last but one,
the judge's first and one amid its opinions, the solver's first and one amid its attempts."""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    """Starts the command in a session of its own."""
    running: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        words = [
            sys.executable, "-c", COMMAND, "build", "--json", "--source", SOURCE, "--jobs", "1", "--config",
            "envsynth.toml", "--catalog", "c.duckdb", "--out", "out", "--cache", "cache",
        ]  # fmt: skip
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        running.append(subprocess.Popen(words, cwd=tmp_path, start_new_session=True, **pipes))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_kill_9_amid_calls_of_every_role_loses_no_settled_spend_and_repeats_no_settled_call(
    tmp_path: Path, started: Any
) -> None:
    killer = Killer()
    cast = Cast(killer)
    with ScriptedModel(cast) as model:
        llm = cast_settings(model, {name: {**ONE, "timeout": 600.0} for name in (PEN, READER, PLAYER)})
        (tmp_path / "envsynth.toml").write_text(toml_of(llm), "utf-8")
        for killed, (name, number) in enumerate(STAGES, 1):
            before = len(cast.answered)
            killer.arm(name, number)
            process = started()
            while not killer.hanging.wait(0.1):
                assert process.poll() is None, process.communicate()
            os.killpg(process.pid, signal.SIGKILL) if killed % 2 else process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL
            assert len(cast.answered) >= before + number - 1
            found = spent(tmp_path)
            assert (found.settled, found.reserved, found.uncertain) == (len(cast.answered), 0, killed)
            assert found.settled_usd == pytest.approx(dollars(cast), abs=1e-12)
            assert found.uncertain_usd > 0
            assert (cast.repeated(), cast.lost) == (0, [])
        process = started()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, (out, err)
    found = spent(tmp_path)
    assert (found.settled, found.reserved, found.uncertain) == (len(cast.answered), 0, len(STAGES))
    assert found.settled_usd == pytest.approx(dollars(cast), abs=1e-12)
    assert (cast.repeated(), cast.lost) == (0, [])
    with Catalog.open(tmp_path / "c.duckdb", read_only=True) as catalog:
        (task,) = catalog.tasks()
    assert (task.tier.value, task.candidate.provenance.author) == ("calibrated", PEN)
