"""What a run of the tests reports, test by test. Real runs of the harness, without isolation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_task

from envsynth.runtime.testrun import TestReport as Report
from envsynth.runtime.testrun import run_tests
from envsynth.sandbox.local import LocalBackend

Run = Callable[..., Report]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The running interpreter with pytest alone."""
    folder: Path = tiny_task.make_environment(tmp_path_factory.mktemp("environment"))
    return folder


@pytest.fixture
def run(environment: Path, tmp_path: Path) -> Run:
    """Run the tests of a project given as path → text."""

    def run_project(project: dict[str, str | bytes], **settings: object) -> Report:
        layer = tmp_path / "layer"
        for path, text in project.items():
            target = layer / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text if isinstance(text, bytes) else text.encode())
        names = ("files", "removed", "collect_only", "select")
        options = {name: settings.pop(name) for name in names if name in settings}
        command = {"runner": "pytest", "targets": ["."], "roots": ["."], "timeout_s": 60.0, "memory_bytes": 2**31}
        return run_tests(
            LocalBackend(), command | settings, environment=environment, layers=(layer,), scratch=tmp_path, **options
        )

    return run_project


def statuses(report: Report) -> dict[str, str]:
    return {one.id: one.status for one in report.results}


ALL_KINDS = """
import pytest

@pytest.fixture
def broken():
    raise ValueError("before")

@pytest.fixture
def leaves_broken():
    yield
    raise ValueError("after")

def test_passed(): pass
def test_failed():
    left = {"a": 1}
    assert left == {"a": 2}, "they differ"
def test_error(broken): pass
def test_error_after(leaves_broken): pass
def test_skipped(): pytest.skip("not here")
@pytest.mark.xfail
def test_xfailed(): assert 0
@pytest.mark.xfail
def test_xpassed(): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
@pytest.mark.xfail(run=False)
def test_not_run(): pass
"""


def test_every_status(run: Run) -> None:
    report = run({"test_kinds.py": ALL_KINDS})
    assert {name.split("::")[1]: status for name, status in statuses(report).items()} == {
        "test_passed": "passed",
        "test_failed": "failed",
        "test_error": "error",
        "test_error_after": "error",
        "test_skipped": "skipped",
        "test_xfailed": "xfailed",
        "test_xpassed": "xpassed",
        "test_strict": "failed",
        "test_not_run": "xfailed",
    }
    assert (report.complete, report.exit_code, report.trouble, report.timed_out) == (True, 1, "", False)


def test_a_failure_says_what_and_where(run: Run) -> None:
    (failed,) = [one for one in run({"test_kinds.py": ALL_KINDS}).results if one.id.endswith("::test_failed")]
    assert "they differ" in failed.message
    assert "{'a': 1} == {'a': 2}" in failed.message
    assert ALL_KINDS.splitlines()[failed.line - 1].strip().startswith("assert left")


def test_ids_are_verbatim(run: Run) -> None:
    ids = ["a b", "[x]", "a::b", "with/slash", "", "x" * 80]
    report = run({"test_ids.py": f"import pytest\n@pytest.mark.parametrize('v', {ids!r})\ndef test_it(v): pass\n"})
    assert set(statuses(report)) == {f"test_ids.py::test_it[{one}]" for one in ids}


def test_ids_with_unicode(run: Run) -> None:
    body = "import pytest\n@pytest.mark.parametrize('v', ['é→ü', 'ß'])\ndef test_ünï(v): pass\n"
    ini = "[pytest]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n"
    report = run({"test_ünï.py": body, "pytest.ini": ini})
    assert statuses(report) == {"test_ünï.py::test_ünï[é→ü]": "passed", "test_ünï.py::test_ünï[ß]": "passed"}


def test_the_worst_of_equal_keys_counts(run: Run) -> None:
    body = (
        "import pytest\nVALUES = [object(), object(), object()]\n"
        "@pytest.mark.parametrize('v', VALUES, ids=map(repr, VALUES))\ndef test_it(v): assert v is not VALUES[1]\n"
    )
    (result,) = run({"test_a.py": body}).results
    assert (result.key, result.status) == ("test_a.py::test_it[<object object at <address>>]", "failed")


def test_random_ids_get_one_key_in_every_run(run: Run) -> None:
    body = (
        "import pytest, random, time, uuid\n"
        "VALUES = [object(), uuid.uuid4(), random.random(), time.time()]\n"
        "@pytest.mark.parametrize('v', VALUES, ids=[repr(v) for v in VALUES])\ndef test_it(v): pass\n"
    )
    first, second = run({"test_r.py": body}), run({"test_r.py": body})
    assert {one.id for one in first.results}.isdisjoint({one.id for one in second.results})
    assert {one.key for one in first.results} == {one.key for one in second.results}


def test_docstrings_are_not_ids(run: Run) -> None:
    body = "import unittest\nclass TestIt(unittest.TestCase):\n    def test_one(self):\n        'A sentence.'\n"
    for runner, name in (("pytest", "test_doc.py::TestIt::test_one"), ("unittest", "test_doc.TestIt.test_one")):
        assert statuses(run({"test_doc.py": body}, runner=runner)) == {name: "passed"}


def test_a_broken_file_does_not_hide_the_others(run: Run) -> None:
    report = run({"test_good.py": "def test_it(): pass\n", "test_bad.py": "import no_such_module\n"})
    assert statuses(report) == {"test_good.py::test_it": "passed", "test_bad.py": "error"}
    assert any("no_such_module" in one.message for one in report.results)
    assert report.complete


def test_a_file_that_skips_itself(run: Run) -> None:
    report = run({"test_skip.py": "import pytest\npytest.skip('whole file', allow_module_level=True)\n"})
    assert statuses(report) == {"test_skip.py": "skipped"}


def test_subtests_fold_into_their_test(run: Run) -> None:
    body = (
        "import unittest\n"
        "def test_sub(subtests):\n    for i in range(3):\n        with subtests.test(i=i): assert i != 1\n"
        "class TestU(unittest.TestCase):\n    def test_u(self):\n        for i in range(3):\n"
        "            with self.subTest(i=i): self.assertNotEqual(i, 2)\n"
    )
    report = run({"test_s.py": body})
    assert statuses(report) == {"test_s.py::test_sub": "failed", "test_s.py::TestU::test_u": "failed"}


def test_the_projects_options_do_not_end_a_run_early(run: Run) -> None:
    ini = "[pytest]\naddopts = -x --maxfail=1 --cov=pkg --cov-report term -n auto --lf\n"
    body = "def test_a(): assert 0\ndef test_b(): assert 0\n"
    report = run({"pytest.ini": ini, "test_a.py": body})
    assert statuses(report) == {"test_a.py::test_a": "failed", "test_a.py::test_b": "failed"}


def test_no_tests_are_a_complete_run_without_results(run: Run) -> None:
    report = run({"module.py": ""})
    assert (report.complete, report.exit_code, report.results) == (True, 5, ())


def test_collecting_runs_nothing(run: Run) -> None:
    report = run({"test_a.py": "def test_a(): assert 0\n"}, collect_only=True)
    assert statuses(report) == {"test_a.py::test_a": "absent"}


def test_files_are_laid_over_and_removed(run: Run) -> None:
    report = run(
        {"pkg.py": "VALUE = 1\n", "test_old.py": "def test_old(): pass\n", "folder/x": ""},
        files={
            "pkg.py": (b"VALUE = 2\n", "file"),
            "folder": (b"pkg.py", "symlink"),
            "test_new.py": (b"import pkg\ndef test_new(): assert pkg.VALUE == 2\n", "executable"),
        },
        removed=("test_old.py",),
    )
    assert statuses(report) == {"test_new.py::test_new": "passed"}


def test_variables_and_roots(run: Run) -> None:
    body = (
        "import os, subprocess, sys, pkg\n"
        "def test_it():\n    assert os.environ['GIVEN'] == 'yes' and os.environ['TZ'] == 'UTC'\n"
        "    assert subprocess.run([sys.executable, '-c', 'import pkg']).returncode == 0\n"
        "    assert 'HOST_SECRET' not in os.environ\n"
    )
    project = {"src/pkg/__init__.py": "", "tests/test_it.py": body}
    report = run(project, roots=["src"], targets=["tests"], variables=[["GIVEN", "yes"]])
    assert statuses(report) == {"tests/test_it.py::test_it": "passed"}


def test_the_projects_own_copy_of_an_installed_module(run: Run) -> None:
    body = "import iniconfig\ndef test_it(): assert iniconfig.MINE\n"
    report = run({"iniconfig.py": "MINE = True\n", "test_it.py": body}, modules=["iniconfig"])
    assert statuses(report) == {"test_it.py::test_it": "passed"}


UNITTEST = """
import unittest

class TestKinds(unittest.TestCase):
    def test_passed(self): pass
    def test_failed(self): self.assertEqual(1, 2)
    def test_raised(self): raise ValueError("no")
    def test_skipped(self): self.skipTest("not here")
    @unittest.expectedFailure
    def test_xfailed(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)

class TestFixture(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError("class")
    def test_below(self): pass
"""


def test_unittest_statuses(run: Run) -> None:
    project = {"tests/__init__.py": "", "tests/test_u.py": UNITTEST, "tests/test_bad.py": "import no_such_module\n"}
    report = run(project, runner="unittest", targets=["tests"])
    assert statuses(report) == {
        "tests.test_u.TestKinds.test_passed": "passed",
        "tests.test_u.TestKinds.test_failed": "failed",
        "tests.test_u.TestKinds.test_raised": "failed",
        "tests.test_u.TestKinds.test_skipped": "skipped",
        "tests.test_u.TestKinds.test_xfailed": "xfailed",
        "tests.test_u.TestKinds.test_unexpected": "failed",
        "tests.test_u.TestKinds.test_sub": "failed",
        "tests.test_u.TestFixture.test_below": "error",
        "tests/test_bad.py": "error",
    }
    assert report.complete
    (failed,) = [one for one in report.results if one.id.endswith("test_failed")]
    assert failed.line == 6


def test_unittest_files_of_the_same_name(run: Run) -> None:
    body = "import unittest\nclass TestIt(unittest.TestCase):\n    def test_one(self): pass\n"
    report = run({"one/test_x.py": body, "two/test_x.py": body}, runner="unittest")
    assert statuses(report) == {"test_x.TestIt.test_one": "passed", "two.test_x.TestIt.test_one": "passed"}


PARTS = (
    "import unittest, pytest\nclass TestU(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): pass\n"
    "@pytest.mark.parametrize('x', ['1', 'a::b[c]'])\ndef test_p(x): pass\ndef test_q(): pass\n"
)


def test_only_what_is_selected_runs(run: Run) -> None:
    project = {"test_x.py": PARTS, "test_y.py": "raise SystemExit('not collected')\n"}
    report = run(project, select=["test_x.py::test_p", "test_x.py::TestU::test_b"])
    assert statuses(report) == dict.fromkeys(
        ("test_x.py::TestU::test_b", "test_x.py::test_p[1]", "test_x.py::test_p[a::b[c]]"), "passed"
    )
    report = run(project, select=["test_x.TestU.test_a"], runner="unittest")
    assert statuses(report) == {"test_x.TestU.test_a": "passed"}
