from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from envsynth.cache import Cache
from envsynth.runtime.contract import Backend
from envsynth.runtime.seal import seal
from envsynth.runtime.workspace import WorkspaceEpisode, open_task


def _load(name: str) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec
        assert spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


# Test modules import the shared project and the worlds by these names.
tiny = _load("tiny_task")
_load("tiny_worlds")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache that already holds the environment of the tiny project's recipe."""
    cache = Cache(tmp_path_factory.mktemp("cache"))
    environment = cache.root / "environments" / tiny.recipe().digest()
    environment.parent.mkdir()
    tiny.make_environment(environment)
    seal(environment, "tiny")
    return cache


@pytest.fixture
def backend() -> Backend:
    """Bubblewrap, or a skip with the reason."""
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    from envsynth.sandbox.bubblewrap import BubblewrapBackend

    return BubblewrapBackend()


@pytest.fixture
def episode(cache: Cache, backend: Backend) -> Iterator[WorkspaceEpisode]:
    """An episode of the tiny project, reset."""
    task = tiny.make_task(cache)
    episode = open_task(task.document(), cache.get, cache.root, backend, task_id=task.id)
    episode.reset()
    yield episode
    episode.close()
