"""Makes the shared worlds importable, and gives clients of scripted models."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.llm import Client, Ledger
from envsynth.llm.pacing import Clock
from envsynth.llm.scripted import Script, ScriptedModel

TESTS = Path(__file__).parent.parent


def _load(path: Path) -> None:
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec
        assert spec.loader
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])


for place in ("worldkit.py", "validators/world_bench.py", "runtime/tiny_task.py", "rolloutkit.py"):
    _load(TESTS / place)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def solver(cache: Cache, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """A client of a scripted model, whose waits take no time: `solver([text("done")], retries=0)`."""
    with ExitStack() as stack:

        def client(script: Script, **more: object) -> Client:
            model = stack.enter_context(ScriptedModel(script))
            clock = Clock(now=time.monotonic, sleep=lambda seconds: None, chance=lambda: 0.0)
            ledger = Ledger(tmp_path / "spend.sqlite", None)
            return stack.enter_context(Client("solver", model.settings(**more), cache, ledger, clock))

        yield client
