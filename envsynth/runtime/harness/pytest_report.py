"""Runs pytest with a reporting plug-in of ours."""

# ruff: noqa: PTH118, PTH120
# Paths are plain strings: runners and interpreters of every age take them.

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

from .channel import Channel
from .limit import Limit
from .order import worst
from .pytest_config import arguments_without, config_file

CHUNK = 500


class Reporter:
    """pytest plug-in that turns hooks into records."""

    def __init__(self, channel: Channel, config: Any) -> None:
        self._channel = channel
        self._skip = frozenset(config["skip"])
        self._select = frozenset(config["select"])
        self._limit = Limit(config["test_s"])
        self._open: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, args: list[str]) -> None:
        """Drop options of the project that stop early, run elsewhere or need plug-ins we do without."""
        args[:] = arguments_without(args)

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be collected, or skips itself, is a record of its own."""
        if report.passed:
            return
        status = "skipped" if report.skipped else "error"
        self._channel.send(
            "test", id=report.nodeid or ".", status=status, line=0, message=self._channel.shorten(message_of(report))
        )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out what was not asked for, and what an earlier process of this run has settled."""
        if self._select:
            items[:] = [item for item in items if function_of(portable(item.nodeid)) in self._select]
        items[:] = [item for item in items if portable(item.nodeid) not in self._skip]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say which test is running, and end the process if it runs too long: a loop in C cannot be interrupted."""
        self._channel.send("begin", id=nodeid)
        self._limit.start()

    def pytest_collection_finish(self, session: Any) -> None:
        """Announce every test that is to run."""
        ids = [item.nodeid for item in session.items]
        for start in range(0, len(ids), CHUNK):
            self._channel.send("collected", ids=ids[start : start + CHUNK])

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        """Note the failing line of the test's own file, which the report does not keep."""
        outcome = yield
        if call.excinfo is not None:
            line = 0
            path = str(getattr(item, "fspath", "") or getattr(item, "path", ""))
            trace = call.excinfo.tb
            while trace is not None:
                if trace.tb_frame.f_code.co_filename == path:
                    line = trace.tb_lineno
                trace = trace.tb_next
            outcome.get_result().envsynth_line = line

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Fold a phase or a subtest into its test; a rerun starts the test afresh."""
        if report.outcome == "rerun":
            self._open.pop(report.nodeid, None)
            return
        status = status_of(report)
        known = self._open.get(report.nodeid)
        if known is None or worst(known["status"], status) != known["status"]:
            known = {"status": status, "line": getattr(report, "envsynth_line", 0), "message": message_of(report)}
            self._open[report.nodeid] = known

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """The test is over: write its record."""
        self._limit.stop()
        record = self._open.pop(nodeid, None)
        if record is not None:
            record["message"] = self._channel.shorten(record["message"])
            self._channel.send("test", id=nodeid, **record)

    def pytest_internalerror(self, excrepr: Any) -> None:
        """An error of pytest or of a plug-in, for people."""
        self._channel.send("internal", message=self._channel.shorten(str(excrepr)))


def portable(name: str) -> str:
    """An id as the reader of the report spells it."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def function_of(name: str) -> str:
    """An id without its parameters: `testkeys.function_of`, which is not where the harness runs."""
    path, colons, rest = name.partition("::")
    return path + colons + rest.partition("[")[0]


def status_of(report: Any) -> str:
    """Status of one phase."""
    expected = hasattr(report, "wasxfail")
    if report.outcome == "passed":
        return "xpassed" if expected and report.when == "call" else "passed"
    if report.outcome == "skipped":
        return "xfailed" if expected else "skipped"
    return "failed" if report.when == "call" else "error"


def message_of(report: Any) -> str:
    """What a report says: the assertion's introspection where there is one, else the whole text."""
    longrepr = getattr(report, "longrepr", None)
    if longrepr is None:
        return ""
    if isinstance(longrepr, tuple) and len(longrepr) == 3:
        return str(longrepr[2])
    crash = getattr(longrepr, "reprcrash", None)
    return str(getattr(crash, "message", None) or longrepr)


def run(config: Any, channel: Channel, workspace: str) -> int:
    """Run pytest on the targets; returns its exit status."""
    arguments = [
        "--rootdir=" + workspace, "--confcutdir=" + workspace, "-c", config_file(workspace, config["targets"]),
        "-p", "no:cacheprovider", "-p", "no:pytest_cov", "-p", "no:randomly", "-p", "no:random_order",
    ]  # fmt: skip
    if "hypothesis" not in config["modules"] and importlib.util.find_spec("hypothesis") is not None:
        arguments.append("--hypothesis-seed=0")
    if importlib.util.find_spec("pytest_benchmark") is not None:
        arguments.append("--benchmark-disable")
    arguments += list(config["arguments"])
    arguments += ["--continue-on-collection-errors", "--tb=short", "--color=no"]
    if config["collect_only"]:
        arguments += ["--collect-only", "-qq"]
    arguments += sorted({name.partition("::")[0] for name in config["select"]}) or list(config["targets"])
    sys.argv = [os.path.join(os.path.dirname(sys.executable), "pytest"), *arguments]
    if config["compiled"]:
        # Where an interpreter is too old to know the prefix, the environment is read-only and nothing is kept.
        sys.pycache_prefix, sys.dont_write_bytecode = config["compiled"], False
    return int(pytest.main(arguments, plugins=[Reporter(channel, config)]))
