"""The virtual environments of targets: made once, and never taken for whole when they are half made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from envsynth.errors import ConfigError, SandboxError
from envsynth.exporters import _target_env
from envsynth.exporters._target_env import interpreter_of


class Maker:
    """Stands in for uv: an interpreter comes first, packages after it."""

    def __init__(self) -> None:
        self.made = 0
        self.is_killed = False

    def __call__(self, target: str, venv: Path, wanted: Mapping[str, Any]) -> None:
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "python").touch()
        if self.is_killed:
            raise KeyboardInterrupt
        self.made += 1


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Maker:
    found = Maker()
    monkeypatch.setattr(_target_env, "_make", found)
    return found


def test_an_environment_is_made_once(maker: Maker, tmp_path: Path) -> None:
    assert interpreter_of("trl", tmp_path) == interpreter_of("trl", tmp_path)
    assert maker.made == 1


def test_what_was_half_made_when_it_was_killed_is_made_again(maker: Maker, tmp_path: Path) -> None:
    interpreter_of("trl", tmp_path)
    shutil.rmtree(tmp_path / "targets" / "trl" / "venv")
    maker.is_killed = True
    with pytest.raises(KeyboardInterrupt):
        interpreter_of("trl", tmp_path)
    maker.is_killed = False
    interpreter_of("trl", tmp_path)
    assert maker.made == 2


def test_a_target_that_is_none_and_a_cache_that_is_a_file_are_lines(maker: Maker, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="replay without --target"):
        interpreter_of("nonesuch", tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(SandboxError, match="name another ENVSYNTH_CACHE"):
        interpreter_of("trl", tmp_path / "file")
    assert maker.made == 0
