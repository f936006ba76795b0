from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.runtime.seal import seal

for _name in ("tiny_task", "tiny_attacks", "tiny_worlds", "schema_calls", "runners", "made_tasks", "pack_files"):
    if _name not in sys.modules:
        _folder = Path(__file__).parents[1] / "runtime" if _name.startswith("tiny_") else Path(__file__).parent
        _path = _folder / f"{_name}.py"
        spec = importlib.util.spec_from_file_location(_name, _path)
        assert spec
        assert spec.loader
        sys.modules[_name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[_name])
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


@pytest.fixture
def targets_kept(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's cache is one of this run, in which environments of targets are made once."""
    monkeypatch.setenv("ENVSYNTH_CACHE", str(tmp_path_factory.getbasetemp() / "targets-cache"))
