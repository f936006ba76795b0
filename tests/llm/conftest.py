"""A client with a cache, a ledger and a clock of its own, and scripted models over real sockets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from envsynth.cache import Cache
from envsynth.llm import Client, Ledger
from envsynth.llm.pacing import Clock
from envsynth.llm.scripted import Script, ScriptedModel


class Bench:
    """What a test of the client needs; its clock does not sleep, it jumps."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.cache = Cache(root / "cache")
        self.path = root / "spend.sqlite"
        self.slept: list[float] = []
        self._ahead = 0.0
        self._lock = threading.Lock()
        self._stack = stack
        self.clock = Clock(now=lambda: time.monotonic() + self._ahead, sleep=self._sleep, chance=lambda: 0.0)

    def _sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self._ahead += seconds

    def ledger(self, budget: float | None = None) -> Ledger:
        return Ledger(self.path, budget)

    def model(self, script: Script, **options: Any) -> ScriptedModel:
        return self._stack.enter_context(ScriptedModel(script, **options))

    def client(self, model: ScriptedModel, *, budget: float | None = None, role: Any = "author", **more: Any) -> Client:
        settings = model.settings(**more)
        return self._stack.enter_context(Client(role, settings, self.cache, self.ledger(budget), self.clock))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path, stack)


@pytest.fixture
def asking(bench: Bench) -> Callable[..., Client]:
    """A client of a scripted model: `asking([text("hello")], retries=0)`."""
    return lambda script, **more: bench.client(bench.model(script), **more)
