"""pytest's byte code of installed plug-ins is made once for an environment, and changes no result."""

from __future__ import annotations

import marshal
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_task

from envsynth.runtime import plugincode
from envsynth.runtime.plugincode import DONE, keep_plugin_code
from envsynth.runtime.seal import break_if_damaged, is_whole, seal
from envsynth.runtime.testrun import TestReport as Report
from envsynth.runtime.testrun import run_tests
from envsynth.sandbox.local import LocalBackend

PLUGIN = """
import pytest

@pytest.fixture
def strict():
    def check(value):
        assert value == "expected"
    return check
"""
TESTS = "def test_right(strict): strict('expected')\ndef test_wrong(strict): strict('other')\n"

Run = Callable[[], Report]


@pytest.fixture(scope="module")
def with_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tiny_task.make_environment(tmp_path_factory.mktemp("environment"))
    site = next(folder.glob("lib/python3*/site-packages"))
    (site / "strictness_plugin.py").write_text(PLUGIN)
    (site / "strictness-1.dist-info").mkdir()
    (site / "strictness-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: strictness\nVersion: 1\n")
    (site / "strictness-1.dist-info/entry_points.txt").write_text("[pytest11]\nstrict = strictness_plugin\n")
    (site / "strictness-1.dist-info/RECORD").write_text("strictness_plugin.py,,\n")
    return folder


@pytest.fixture
def environment(with_plugin: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "environment"
    shutil.copytree(
        with_plugin, folder, symlinks=True, copy_function=lambda one, other: tiny_task._link(Path(one), Path(other))
    )
    return folder


@pytest.fixture
def run(environment: Path, tmp_path: Path) -> Run:
    layer = tmp_path / "layer"
    layer.mkdir()
    (layer / "test_it.py").write_text(TESTS)
    command = {"runner": "pytest", "targets": ["."], "roots": ["."], "timeout_s": 60.0, "memory_bytes": 2**31}

    def once() -> Report:
        plugincode._looked_at.clear()
        return run_tests(LocalBackend(), command, environment=environment, layers=(layer,), scratch=tmp_path)

    return once


def byte_code(environment: Path) -> list[Path]:
    return sorted(environment.glob("lib/python3*/site-packages/__pycache__/strictness_plugin.*-pytest-*.pyc"))


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def told(report: Report) -> list[tuple[str, str, str]]:
    return [(one.key, one.status, one.message) for one in report.results]


def test_a_sealed_environment_gets_it_and_is_still_whole(environment: Path, run: Run) -> None:
    unsealed = run()
    assert not byte_code(environment)
    seal(environment, "an environment")
    assert told(run()) == told(unsealed)
    (kept,) = byte_code(environment)
    assert is_whole(environment)
    assert not break_if_damaged(environment)
    # What was kept explains the plug-in's asserts as what pytest compiles anew does.
    assert [(status, "'other' == 'expected'" in message) for _, status, message in told(run())] == [
        ("passed", False), ("failed", True),
    ]  # fmt: skip
    assert kept.stat().st_mode & 0o777 == 0o644


@pytest.mark.slow
def test_what_was_kept_is_what_runs_load(environment: Path, run: Run) -> None:
    seal(environment, "an environment")
    assert [one.status for one in run().results] == ["passed", "failed"]
    (kept,) = byte_code(environment)
    lax = compile(PLUGIN.replace("assert value ==", "value =="), "strictness_plugin.py", "exec")
    kept.write_bytes(kept.read_bytes()[:16] + marshal.dumps(lax))
    assert [one.status for one in run().results] == ["passed", "passed"]


@pytest.mark.slow
def test_byte_code_of_other_source_counts_for_nothing(environment: Path, run: Run) -> None:
    seal(environment, "an environment")
    run()
    (kept,) = byte_code(environment)
    kept.write_bytes(b"damaged" + kept.read_bytes())
    assert [one.status for one in run().results] == ["passed", "failed"]


def test_only_byte_code_of_source_that_is_there_is_taken(environment: Path, tmp_path: Path) -> None:
    seal(environment, "an environment")
    site = next(environment.glob("lib/python3*/site-packages")).relative_to(environment).as_posix()
    (tmp_path / "outside.py").touch()
    offered = [
        (f"{site}/strictness_plugin.cpython-311-pytest-8.pyc", b"taken"),
        (f"{site}/strictness_plugin.cpython-311.pyc", b"python's own"),
        (f"{site}/nothing.cpython-311-pytest-8.pyc", b"no source"),
        (f"{site}/../../../../outside.cpython-311-pytest-8.pyc", b"outside"),
        ("pyvenv.cfg", b"no byte code"),
    ]
    before = files_below(tmp_path)
    keep_plugin_code(environment, lambda: offered)
    kept = f"{site}/__pycache__/strictness_plugin.cpython-311-pytest-8.pyc"
    assert files_below(tmp_path) - before == {f"environment/{kept}", f"environment/__pycache__/{DONE}"}
    assert (environment / "pyvenv.cfg").read_bytes() != b"no byte code"
    assert is_whole(environment)


def test_nothing_is_compiled_twice_or_without_plugins(environment: Path) -> None:
    asked: list[Path] = []

    def compiled(folder: Path) -> list[tuple[str, bytes]]:
        asked.append(folder)
        return []

    keep_plugin_code(environment, lambda: compiled(environment))
    assert not asked, "one that is not sealed is not ours"
    seal(environment, "an environment")
    for _ in range(2):
        plugincode._looked_at.clear()
        keep_plugin_code(environment, lambda: compiled(environment))
    assert asked == [environment]
    plain = environment.parent / "plain"
    plain.mkdir()
    seal(plain, "an environment without plug-ins")
    keep_plugin_code(plain, lambda: compiled(plain))
    assert asked == [environment]
