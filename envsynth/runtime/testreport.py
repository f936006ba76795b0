"""Reads the report that the harness wrote. Nothing in it need be well-formed: the code under test could reach it."""

from __future__ import annotations

import io
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .contract import JSON
from .testkeys import normalised_key

STATUSES = ("passed", "xpassed", "xfailed", "skipped", "absent", "failed", "error")
"""From best to worst."""

REPORT_BYTES = 2**26
"""Read of a report at most; the rest counts as missing."""

_LINE_BYTES = 2**22
"""A longer line is none of the harness': it names the tests in portions."""
_FOREIGN_LINES = 10_000
"""After this many lines that are not the harness' own the rest of a report is not read."""

_FINISHED = (0, 1, 5)
"""Exit statuses after which a runner has seen every test: all passed, some failed, there were none."""


class TestResult(NamedTuple):
    """One test in one run."""

    key: str
    """Normalised id, unique in a report."""
    id: str
    """As the runner spells it; undecodable bytes as backslash escapes."""
    status: str
    """passed, failed, error, skipped, xfailed, xpassed, or absent: announced, but never ended."""
    message: str
    line: int
    """1-based line in the test's own file where it failed; 0: unknown."""


class Parsed(NamedTuple):
    """What a report says."""

    ready: bool
    """Whether the harness reached the border before any code under test ran."""
    complete: bool
    """Whether the runner finished, nothing is missing in between, and every announced test has ended."""
    status: int | None
    """The runner's own exit status."""
    running: str | None
    """Id of the test that had begun and not ended when the report stopped."""
    results: tuple[TestResult, ...]


def read_report(path: Path) -> bytes:
    """Content of a report file; empty when it is gone or was replaced by a link or a device."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read(REPORT_BYTES) if stat.S_ISREG(os.fstat(handle).st_mode) else b""


def parse_report(content: bytes, nonce: str) -> Parsed:
    """Read the records that carry the nonce, in order, up to the finish record.

    Lines that are garbage, foreign or out of order are skipped and make the report incomplete.
    """
    reading = _Reading()
    for record in _records(content, nonce):
        if record is None:
            reading.intact = False
            continue
        reading.intact = reading.intact and record.get("q") == reading.expected
        reading.expected = _number(record.get("q"), -1) + 1
        reading.take(record)
        if reading.status is not None:
            break
    return reading.parsed()


class _Reading:
    """What the records up to a point say."""

    def __init__(self) -> None:
        self.intact, self.ready, self.expected = True, False, 0
        self.status: int | None = None
        self.running: str | None = None
        self.announced: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.results: dict[str, TestResult] = {}

    def take(self, record: dict[str, JSON]) -> None:
        """One record that carries the nonce."""
        kind, name = record.get("t"), record.get("id")
        if kind == "ready":
            self.ready = True
        elif kind == "collected":
            self.announced.update(_text(one) for one in _strings(record.get("ids")))
        elif kind == "begin":
            self.running = _text(name) if isinstance(name, str) else None
        elif kind == "finish":
            self.status = _number(record.get("status"), -1)
        elif kind == "test" and (result := _result(record)) is not None:
            self.running = None
            self.ended[result.id] += 1
            _keep_worst(self.results, result)

    def parsed(self) -> Parsed:
        """The whole."""
        missing = self.announced - self.ended
        for name in missing:
            _keep_worst(self.results, TestResult(normalised_key(name), name, "absent", "", 0))
        complete = self.intact and self.ready and self.status in _FINISHED and not missing
        # A test that a finished runner left open, or that ended once already, did not end the process.
        running = None if self.status is not None or self.running not in missing else self.running
        return Parsed(self.ready, complete, self.status, running, tuple(self.results.values()))


def _records(content: bytes, nonce: str) -> Iterator[dict[str, JSON] | None]:
    """Each line's record; None for a line that is not one of ours."""
    foreign = 0
    for line in io.BytesIO(content):
        record = None
        # What does not hold the nonce is not even parsed: a report can be flooded.
        if len(line) <= _LINE_BYTES and nonce.encode() in line:
            with suppress(ValueError, RecursionError):
                record = json.loads(line)
        if isinstance(record, dict) and record.get("n") == nonce:
            yield record
            continue
        foreign += 1
        if line.strip() or foreign > _FOREIGN_LINES:
            yield None
        if foreign > _FOREIGN_LINES:
            return


def _result(record: dict[str, JSON]) -> TestResult | None:
    name, status = record.get("id"), record.get("status")
    if not isinstance(name, str) or status not in STATUSES:
        return None
    message = record.get("message")
    name = _text(name)
    return TestResult(
        normalised_key(name), name, str(status), _text(message) if isinstance(message, str) else "",
        max(0, _number(record.get("line"), 0)),
    )  # fmt: skip


def merged(earlier: Iterable[TestResult], later: Iterable[TestResult]) -> tuple[TestResult, ...]:
    """Results of a run and of the one that went on where it stopped; what the first left absent is the second's."""
    results: dict[str, TestResult] = {}
    for result in [*(one for one in earlier if one.status != "absent"), *later]:
        _keep_worst(results, result)
    return tuple(results.values())


def _keep_worst(results: dict[str, TestResult], result: TestResult) -> None:
    known = results.get(result.key)
    if known is None or STATUSES.index(result.status) > STATUSES.index(known.status):
        results[result.key] = result


def _text(value: str) -> str:
    """A string that any encoder takes: lone surrogates become escapes."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _strings(value: JSON) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _number(value: JSON, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
