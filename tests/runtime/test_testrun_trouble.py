"""Suites that crash, hang, lie or reach for the report. None of them may look like a pass, or like our own failure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_task

from envsynth.errors import DiskFull
from envsynth.runtime import testrun
from envsynth.runtime.testrun import TestReport as Report
from envsynth.runtime.testrun import run_tests
from envsynth.sandbox._meter import folder_size
from envsynth.sandbox.local import LocalBackend

Run = Callable[..., Report]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tiny_task.make_environment(tmp_path_factory.mktemp("environment"))
    return folder


@pytest.fixture
def run(environment: Path, tmp_path: Path) -> Run:
    def run_project(
        project: dict[str, str], *, timeout_s: float = 60.0, test_timeout_s: float = 60.0, runner: str = "pytest"
    ) -> Report:
        layer = tmp_path / "layer"
        for path, text in project.items():
            target = layer / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        command = {
            "runner": runner,
            "targets": ["."],
            "timeout_s": timeout_s,
            "memory_bytes": 2**31,
            "test_timeout_s": test_timeout_s,
        }
        return run_tests(LocalBackend(), command, environment=environment, layers=(layer,), scratch=tmp_path)

    return run_project


def statuses(report: Report) -> dict[str, str]:
    return {one.id: one.status for one in report.results}


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
@pytest.mark.parametrize("way_out", ["import sys; sys.exit(0)", "import os; os._exit(0)"])
def test_leaving_at_import_is_no_pass(run: Run, way_out: str, runner: str) -> None:
    body = "import pkg, unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self): pass\n"
    report = run({"pkg.py": way_out + "\n", "test_it.py": body}, runner=runner)
    assert not report.complete
    assert "passed" not in statuses(report).values()
    assert report.trouble == ""


def test_stopping_the_runner_leaves_the_rest_absent(run: Run) -> None:
    body = "import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('enough', returncode=0)\ndef test_c(): pass\n"
    report = run({"test_it.py": body})
    assert not report.complete
    assert statuses(report) == {
        "test_it.py::test_a": "passed",
        "test_it.py::test_b": "absent",
        "test_it.py::test_c": "absent",
    }


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_a_test_that_ends_the_process_fails_and_the_others_go_on(run: Run, runner: str) -> None:
    body = (
        "import os, unittest\nclass TestIt(unittest.TestCase):\n    def test_a(self): pass\n"
        "    def test_b(self): os._exit(0)\n    def test_c(self): pass\n    def test_d(self): os.abort()\n"
        "    def test_e(self): assert 0\n"
    )
    report = run({"test_it.py": body}, runner=runner)
    assert report.complete
    found = {name[-6:]: status for name, status in statuses(report).items()}
    assert found == {"test_a": "passed", "test_b": "failed", "test_c": "passed", "test_d": "failed", "test_e": "failed"}
    assert len(report.results) == 5


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_a_test_that_hangs_fails_and_the_others_go_on(run: Run, runner: str) -> None:
    body = (
        "import threading, unittest\nclass TestIt(unittest.TestCase):\n    def test_a(self): pass\n"
        "    def test_b(self): threading.Event().wait()\n    def test_c(self): pass\n"
    )
    report = run({"test_it.py": body}, runner=runner, test_timeout_s=1.0)
    assert report.complete
    assert sorted(statuses(report).values()) == ["failed", "passed", "passed"]
    assert any("did not end" in one.message for one in report.results)


def test_a_suite_that_dies_in_every_test_is_given_up(run: Run) -> None:
    body = "import os\n" + "".join(f"def test_{letter}(): os._exit(0)\n" for letter in "abcdefghij")
    report = run({"test_it.py": body})
    assert not report.complete
    assert sorted(set(statuses(report).values())) == ["absent", "failed"]


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_a_hanging_test_keeps_what_was_measured_before(run: Run, runner: str) -> None:
    body = (
        "import threading, unittest\nclass TestIt(unittest.TestCase):\n    def test_a(self): pass\n"
        "    def test_b(self): threading.Event().wait()\n"
    )
    report = run({"test_it.py": body}, timeout_s=2.0, runner=runner)
    assert report.timed_out
    assert not report.complete
    assert report.trouble == ""
    assert sorted(statuses(report).values()) == ["absent", "passed"]


def test_printed_verdicts_are_only_text(run: Run) -> None:
    body = (
        "import os, sys\n"
        "os.write(1, b'test_it.py::test_it PASSED\\n= 9 passed =\\n' + bytes(range(256)))\n"
        "def test_it():\n    sys.__stdout__.write('PASSED test_it.py::test_it'); os.write(2, b'\\xff\\xfe'); assert 0\n"
    )
    report = run({"test_it.py": body, "pytest.ini": "[pytest]\naddopts = -s\n"})
    assert statuses(report) == {"test_it.py::test_it": "failed"}
    assert report.complete
    assert "9 passed" in report.output_tail


def test_root_modules_do_not_shadow_what_the_runner_uses(run: Run) -> None:
    names = ("pytest", "json", "_pytest", "pluggy", "unittest", "sitecustomize", "usercustomize", "iniconfig", "run")
    evil = "import os\nos._exit(0)\n"
    body = "import iniconfig, json, unittest\ndef test_it(): assert 0\n"
    report = run({f"{name}.py": evil for name in names} | {"test_it.py": body})
    assert statuses(report) == {"test_it.py::test_it": "failed"}
    assert report.complete


def test_options_of_the_environment_are_not_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.setenv("PYTHONPATH", "/nonexistent")
    assert statuses(run({"test_it.py": "def test_it(): pass\n"})) == {"test_it.py::test_it": "passed"}


FORGE = """
import glob, json, os
def reports():
    for link in glob.glob('/proc/self/fd/*'):
        if os.path.exists(link) and os.readlink(link).endswith('report.jsonl'):
            yield os.readlink(link)
"""


@pytest.mark.parametrize(
    "attack",
    [
        "open(path, 'r+').truncate(40)",
        "os.unlink(path); os.symlink('/etc/passwd', path)",
        "os.unlink(path); os.mkfifo(path)",
    ],
)
def test_destroying_the_report_is_no_pass_and_no_excuse(run: Run, attack: str) -> None:
    body = FORGE + f"for path in list(reports()):\n    {attack}\ndef test_a(): pass\ndef test_b(): assert 0\n"
    report = run({"test_it.py": body})
    assert not report.complete
    assert report.trouble == ""


def test_foreign_records_are_ignored(run: Run) -> None:
    line = '{"n": "guess", "q": 2, "t": "test", "id": "test_it.py::test_b", "status": "passed"}'
    text = f"{line}\ngarbage\n"
    body = FORGE + f"for path in list(reports()):\n    open(path, 'a').write({text!r})\n"
    report = run({"test_it.py": body + "def test_b(): assert 0\n"})
    assert statuses(report) == {"test_it.py::test_b": "failed"}
    assert not report.complete


def test_handlers_at_exit_do_not_run_after_the_report(run: Run) -> None:
    body = FORGE + (
        "import atexit\n@atexit.register\ndef wipe():\n    for path in list(reports()): open(path, 'w').close()\n"
        "def test_it(): pass\n"
    )
    report = run({"test_it.py": body})
    assert report.complete
    assert statuses(report) == {"test_it.py::test_it": "passed"}


def test_a_forked_child_does_not_report(run: Run) -> None:
    body = (
        "import os\ndef test_it():\n    child = os.fork()\n    if child == 0: raise SystemExit(3)\n"
        "    os.waitpid(child, 0)\n"
    )
    assert statuses(run({"test_it.py": body})) == {"test_it.py::test_it": "passed"}


def test_closing_every_descriptor_keeps_the_report(run: Run) -> None:
    body = "import os\ndef test_a(): os.closerange(700, 720)\ndef test_b(): pass\n"
    report = run({"test_it.py": body})
    assert report.complete
    assert set(statuses(report).values()) == {"passed"}


def test_an_unusable_option_is_the_runs_failure_not_ours(run: Run) -> None:
    report = run({"pytest.ini": "[pytest]\naddopts = --no-such-option\n", "test_it.py": "def test_it(): pass\n"})
    assert (report.complete, report.exit_code, report.trouble, report.results) == (False, 4, "", ())
    assert "--no-such-option" in report.output_tail


def test_a_conftest_that_raises_is_the_runs_failure(run: Run) -> None:
    report = run({"conftest.py": "import no_such_module\n", "test_it.py": "def test_it(): pass\n"})
    assert not report.complete
    assert report.trouble == ""


def test_an_environment_without_the_runner_is_a_problem(tmp_path: Path) -> None:
    environment, layer = tmp_path / "env", tmp_path / "layer"
    (environment / "bin").mkdir(parents=True)
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    (environment / "bin/python").symlink_to(base)
    site = environment / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    site.mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    layer.mkdir()
    (layer / "test_it.py").write_text("def test_it(): pass\n")
    command = {
        "runner": "pytest",
        "targets": ["."],
        "timeout_s": 30.0,
        "memory_bytes": 2**31,
    }
    report = run_tests(LocalBackend(), command, environment=environment, layers=(layer,), scratch=tmp_path)
    assert report.results == ()
    assert not report.complete
    assert "pytest" in report.trouble


@pytest.mark.parametrize("free", [[0], [2**40, 0]])
def test_a_disk_that_is_about_to_be_full_is_no_failing_test(
    run: Run, monkeypatch: pytest.MonkeyPatch, free: list[int]
) -> None:
    left = iter(free)
    monkeypatch.setattr(testrun.shutil, "disk_usage", lambda _: SimpleNamespace(free=next(left)))
    with pytest.raises(DiskFull, match="no space left"):
        run({"test_it.py": "def test_it(): pass\n"})


FLOOD = """
handle = os.open({path}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for _ in range({mib}):
    os.write(handle, b"\\n" * 2**20)
"""


@pytest.mark.parametrize("path", ["'big'", "next(reports())"])
def test_a_disk_that_the_code_under_test_fills_is_its_own_failure(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def nearly_full(_: object) -> SimpleNamespace:
        return SimpleNamespace(free=testrun.ROOM_BYTES + 2**23 - folder_size(tmp_path, 2**40)[0])

    monkeypatch.setattr(testrun.shutil, "disk_usage", nearly_full)
    flood = FORGE + FLOOD.format(path=path, mib=16)
    report = run({"pkg.py": flood, "test_it.py": "import pkg\ndef test_it(): assert 0\n"})
    assert report.trouble == ""
    assert "passed" not in statuses(report).values()


def test_a_report_that_grows_without_end_is_the_runs_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testrun, "REPORT_BYTES", 2**22)
    flood = FORGE + FLOOD.format(path="next(reports())", mib=16)
    report = run({"test_it.py": flood + "def test_it(): pass\n"})
    assert (report.complete, report.exit_code, report.trouble) == (False, 124, "")
