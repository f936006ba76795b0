"""Builds with several workers that ask a model: what stops them costs nobody an answer that is under way."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from envsynth import pipeline
from envsynth.errors import BudgetSpent, EndpointDown
from envsynth.executors import LocalExecutor
from envsynth.llm import Ledger
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import Answer, answer_json, failure
from tests.modelkit import CHILD, DEAR, ROOT, config, install, outcomes, silent, work_here

pytestmark = pytest.mark.slow
GOOD = answer_json({"number": 1}, usage=DEAR)
PATIENCE = 120


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setattr)
    monkeypatch.setattr(pipeline, "work", work_here)


def test_a_budget_of_five_cents_holds_between_two_workers_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    leads = ",".join(f"lead{number}" for number in range(24))
    with ScriptedModel(lambda received: GOOD) as model:
        author = model.settings()
        asked = config(tmp_path, leads, author, jobs=2, budget=0.05)
        with pytest.raises(BudgetSpent, match=r"budget of \$0\.05"):
            pipeline.build(asked, silent)
        spent = Ledger(asked.ledger).total()
        # An answer is $0.003 and reserves a little more than that: sixteen fit, seventeen do not.
        assert (spent.settled, spent.settled_usd) == (16, pytest.approx(0.048))
        assert (spent.reserved, spent.uncertain, len(model.requests)) == (0, 0, 16)
        assert len(outcomes(tmp_path)) == 16
        report = pipeline.build(config(tmp_path, leads, author, jobs=2, budget=1.0), silent)
        assert (report.statuses, report.reused, len(model.requests)) == ({"admitted": 24}, 16, 24)
        assert Ledger(asked.ledger).total().settled_usd == pytest.approx(0.072)


def test_a_dead_endpoint_costs_no_other_worker_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped, slow_asked = threading.Event(), threading.Event()

    def answer(received: Received) -> Answer:
        if received.prompt == "slow":
            slow_asked.set()
            assert stopped.wait(PATIENCE)
            return GOOD
        assert slow_asked.wait(PATIENCE)
        return failure(401, "the key has expired")

    def stop(self: LocalExecutor) -> None:
        plain(self)
        stopped.set()

    plain = LocalExecutor.stop
    monkeypatch.setattr(LocalExecutor, "stop", stop)
    with ScriptedModel(answer) as model:
        asked = config(tmp_path, "slow,bad,later", model.settings(timeout=300.0), jobs=2)
        with pytest.raises(EndpointDown, match="HTTP 401"):
            pipeline.build(asked, silent)
        assert outcomes(tmp_path) == {"slow": ("admitted", "")}
        spent = Ledger(asked.ledger).total()
        assert (spent.settled, spent.reserved, spent.uncertain) == (1, 0, 0)
        assert sorted(received.prompt for received in model.requests) == ["bad", "slow"]


def test_an_interrupted_build_takes_in_the_answers_that_are_under_way(tmp_path: Path) -> None:
    both, told = threading.Barrier(3), threading.Event()

    def answer(received: Received) -> Answer:
        if received.number < 2:
            both.wait(PATIENCE)
            assert told.wait(PATIENCE)
        return GOOD

    with ScriptedModel(answer) as model:
        author = model.settings(timeout=300.0)
        command = [sys.executable, "-c", CHILD, str(tmp_path), "a,b,c,d,e", author.to_json(), "2"]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
        with subprocess.Popen(command, **pipes) as child:
            both.wait(PATIENCE)
            child.send_signal(signal.SIGINT)
            assert child.stdout is not None
            assert child.stderr is not None
            assert any(line.startswith("note stopping: answers that models") for line in child.stdout)
            told.set()
            assert "KeyboardInterrupt" in child.stderr.read()
        assert child.returncode != 0
        asked = config(tmp_path, "a,b,c,d,e", author, jobs=2)
        spent = Ledger(asked.ledger).total()
        assert (spent.settled, spent.reserved, spent.uncertain) == (2, 0, 0)
        report = pipeline.build(asked, silent)
        assert (report.statuses, len(model.requests)) == ({"admitted": 5}, 5)
