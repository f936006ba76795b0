"""Runs unittest with a result class of ours. Ids come from `test.id()`, never from docstrings."""

# ruff: noqa: D102, PTH100, PTH113, PTH118, PTH119, PTH120, PTH122
# Paths are plain strings: runners and interpreters of every age take them.

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
import os
import sys
import traceback
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from .channel import Channel
from .limit import Limit
from .order import worst

PATTERNS = ("test*.py", "*_test.py", "tests.py")


class Result(unittest.TestResult):
    """Turns unittest's calls into records; subtests fold into their test."""

    def __init__(self, channel: Channel, ids: list[str], seconds: float) -> None:
        super().__init__()
        self._limit = Limit(seconds)
        self._channel = channel
        self._ids = ids
        self._open: dict[str, dict[str, Any]] = {}
        self.good = True

    def _note(self, test: Any, status: str, message: str = "", line: int = 0) -> None:
        name = test.id()
        self.good = self.good and status not in ("failed", "error")
        if name not in self._open:
            self._shared(name, status, message)
            return
        known = self._open[name]
        if known["status"] is None or worst(known["status"], status) != known["status"]:
            self._open[name] = {"status": status, "message": message, "line": line}

    def _shared(self, name: str, status: str, message: str) -> None:
        """A class or module fixture that fails or skips decides for every test below it."""
        owner = name[name.find("(") + 1 : -1] if name.endswith(")") else name
        below = [known for known in self._ids if known.startswith(owner + ".")] or [name]
        for known in below:
            self._channel.send("test", id=known, status=status, line=0, message=self._channel.shorten(message))

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self._open[test.id()] = {"status": None, "message": "", "line": 0}
        self._channel.send("begin", id=test.id())
        self._limit.start()

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        self._limit.stop()
        record = self._open.pop(test.id(), None)
        if record is not None and record["status"] is not None:
            record["message"] = self._channel.shorten(record["message"])
            self._channel.send("test", id=test.id(), **record)

    def addSuccess(self, test: Any) -> None:
        self._note(test, "passed")

    def addFailure(self, test: Any, err: Any) -> None:
        self._note(test, "failed", message_of(err), line_of(test, err))

    def addError(self, test: Any, err: Any) -> None:
        # unittest calls any exception but a failed assertion an error; elsewhere that word means "did not run".
        status = "failed" if test.id() in self._open else "error"
        self._note(test, status, message_of(err), line_of(test, err))

    def addSkip(self, test: Any, reason: Any) -> None:
        self._note(test, "skipped", str(reason))

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self._note(test, "xfailed", message_of(err))

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._note(test, "failed", "unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._note(test, "failed", message_of(err), line_of(test, err))


def message_of(err: Any) -> str:
    """Type and text of an exception."""
    return "".join(traceback.format_exception_only(err[0], err[1])).strip()


def line_of(test: Any, err: Any) -> int:
    """Last line of the traceback that is in the test's own file; 0 where there is none."""
    module = sys.modules.get(type(test).__module__)
    path = getattr(module, "__file__", None)
    line, trace = 0, err[2]
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def files_of(target: str, workspace: str) -> list[str]:
    """Test files below a target, relative, sorted."""
    path = os.path.normpath(os.path.join(workspace, target))
    if os.path.isfile(path):
        return [os.path.relpath(path, workspace)]
    found = []
    for parent, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        found += [
            os.path.relpath(os.path.join(parent, name), workspace)
            for name in sorted(names)
            if any(fnmatch.fnmatch(name, pattern) for pattern in PATTERNS)
        ]
    return found


def load(path: str, workspace: str) -> Any:
    """Import a test file under the name its packages give it."""
    parts = [os.path.splitext(os.path.basename(path))[0]]
    folder = os.path.dirname(os.path.join(workspace, path))
    while os.path.isfile(os.path.join(folder, "__init__.py")) and folder != workspace:
        parts.insert(0, os.path.basename(folder))
        folder = os.path.dirname(folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = ".".join(parts)
    known = sys.modules.get(name)
    if known is None:
        known = importlib.import_module(name)
    if os.path.abspath(getattr(known, "__file__", None) or "") == os.path.join(workspace, path):
        return known
    # Two folders without packages hold files of the same name: the second gets a name of its own.
    name = os.path.splitext(path)[0].replace(os.sep, ".")
    spec: Any = importlib.util.spec_from_file_location(name, os.path.join(workspace, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def cases(suite: Any) -> Iterator[Any]:
    """Every test case of nested suites."""
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from cases(entry)
        else:
            yield entry


def may_hold(path: str, select: frozenset[str]) -> bool:
    """Whether a file may hold one of the selected tests, by its module's last name."""
    stem = os.path.splitext(os.path.basename(path))[0]
    return any(stem in name.split(".") for name in select)


def drop(suite: Any, unwanted: Callable[[str], bool]) -> None:
    """Take cases out of nested suites; suites stay, since class fixtures run by them."""
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            drop(entry, unwanted)
    suite._tests = [
        entry for entry in suite if isinstance(entry, unittest.TestSuite) or not unwanted(portable(entry.id()))
    ]


def portable(name: str) -> str:
    """An id as the reader of the report spells it."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def run(config: Any, channel: Channel, workspace: str) -> int:
    """Load every test file by itself, then run; returns 0 when all is well, else 1."""
    loader = unittest.TestLoader()
    whole = unittest.TestSuite()
    broken = False
    select = frozenset(config["select"])
    paths = [path for target in config["targets"] for path in files_of(target, workspace)]
    for path in [path for path in paths if not select or may_hold(path, select)]:
        try:
            whole.addTests(loader.loadTestsFromModule(load(path, workspace)))
        except unittest.SkipTest as exc:
            channel.send("test", id=path, status="skipped", line=0, message=str(exc))
        except Exception:
            broken = True
            message = channel.shorten(traceback.format_exc())
            channel.send("test", id=path, status="error", line=0, message=message)
    # What was not asked for, and what an earlier process of this run has settled, is left out.
    skip = frozenset(config["skip"])
    drop(whole, lambda name: name in skip or bool(select and name not in select))
    ids = [test.id() for test in cases(whole)]
    for start in range(0, len(ids), 500):
        channel.send("collected", ids=ids[start : start + 500])
    if config["collect_only"]:
        return 1 if broken else 0
    result = Result(channel, ids, config["test_s"])
    whole.run(result)
    return 0 if result.good and not broken else 1
