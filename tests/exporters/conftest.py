from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.runtime.seal import seal

if "tiny_task" not in sys.modules:
    spec = importlib.util.spec_from_file_location("tiny_task", Path(__file__).parents[1] / "runtime" / "tiny_task.py")
    assert spec
    assert spec.loader
    sys.modules["tiny_task"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["tiny_task"])
tiny = sys.modules["tiny_task"]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache that already holds the environment of the tiny project's recipe."""
    cache = Cache(tmp_path_factory.mktemp("cache"))
    environment = cache.root / "environments" / tiny.recipe().digest()
    environment.parent.mkdir()
    tiny.make_environment(environment)
    seal(environment, "tiny")
    return cache
