"""Judges that are scripted, over real sockets, and the panel that they are tried on."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from envsynth.cache import Cache
from envsynth.judge import Judge, Labelled, Rubric, rubric_of
from envsynth.llm import Client, Ledger
from envsynth.llm.scripted import ScriptedModel


def _load(name: str, folder: Path) -> None:
    """Make a module of another folder importable by the tests, which are no package."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec
        assert spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])


_load("worldkit", Path(__file__).parents[1])
_load("judgekit", Path(__file__).parent)

import judgekit  # noqa: E402
import worldkit  # noqa: E402


@pytest.fixture
def rubric() -> Rubric:
    return rubric_of(worldkit.INSTRUCTION, judgekit.CRITERIA)


@pytest.fixture
def panel() -> list[Labelled]:
    return [Labelled(label, right, judgekit.case_of_calls(calls)) for label, (right, calls) in judgekit.PANEL.items()]


class Bench:
    """Judges over real sockets."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self._root = root
        self._stack = stack
        self.model: ScriptedModel | None = None

    def judge(self, script: Any, **settings: Any) -> Judge:
        self.model = self._stack.enter_context(ScriptedModel(script))
        cache, ledger = Cache(self._root / "cache"), Ledger(self._root / "spend.sqlite", None)
        client = Client("judge", self.model.settings(retries=0, **settings), cache, ledger)
        return Judge(self._stack.enter_context(client))

    @property
    def prompts(self) -> list[str]:
        assert self.model is not None
        return [received.prompt for received in self.model.requests]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path, stack)
