"""Runs a project's tests in a fresh sandbox and says what each of them did.

Which failures are whose. The harness announces itself on standard output and in its report before any file of the
workspace is read or importable. A run without that announcement says nothing about the code under test and is a
`trouble` of the environment. Everything after it, a crash of the runner included, is the result of the code under
test: configuration and tests come from the pristine tree, so only the code can have caused it. The announcement on
standard output cannot be taken back by the code under test, so destroying the report gains it nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import SandboxError, boundary, disk_full
from .contract import JSON, Backend, ExecResult, Limits, Mount, Sandbox, SandboxSpec
from .plugincode import MAX_BYTES, keep_plugin_code
from .recipe import ENVIRONMENT, environment_covers, environment_mounts, environment_variables, look_closely
from .testkeys import normalised_key
from .testreport import REPORT_BYTES, Parsed, TestResult, merged, parse_report, read_report

__all__ = ["TestReport", "TestResult", "run_tests"]

HARNESS = "/envsynth/harness"
REPORT = "/envsynth-report.jsonl"
TAIL_BYTES = 4000
ROOM_BYTES = 64 * 2**20
"""Free space without which a failing test says nothing about the code."""
RESTARTS = 5
"""So many tests of a run may end the test process; the run goes on after each without it."""
TEST_S = 60.0
PROCESSES = 512
COMPILED = "compiled"
COMPILER_BYTES = 2**31
OUTPUT_BYTES = 2**20


class TestReport(NamedTuple):
    """One run of the tests."""

    complete: bool
    """Whether the runner finished and every announced test ended; else unreported tests are absent, never passed."""
    exit_code: int | None
    """The runner's own exit status where it was reported, else the process's."""
    results: tuple[TestResult, ...]
    trouble: str
    """Why the run says nothing about the code under test; empty when it does."""
    timed_out: bool
    output_tail: str
    wall_s: float
    """Seconds, of the sandboxed command."""
    cpu_s: float
    """Seconds of the whole process tree."""


def run_tests(  # noqa: PLR0913  # the three places of content (layers, files, removed) are one thought
    backend: Backend,
    command: JSON,
    *,
    environment: Path,
    layers: Sequence[Path],
    files: Mapping[str, tuple[bytes, str]] | None = None,
    removed: Sequence[str] = (),
    scratch: Path | None = None,
    collect_only: bool = False,
    select: Sequence[str] = (),
) -> TestReport:
    """Run the tests once, in a sandbox of their own.

    A test that ends the process, or hangs, has failed; a new process in a fresh sandbox goes on with the tests that
    had not run, so that one crash says nothing about the others.

    Args:
        backend: what opens the sandbox.
        command: document of a `TestCommand`.
        environment: host folder of the interpreter environment.
        layers: host folders that make the workspace, the lowest first.
        files: content and mode (`file`, `executable`, `symlink`) of paths laid over the layers before anything runs.
        removed: paths taken away before anything runs; one that is also in `files` stays.
        scratch: host folder for temporary files.
        collect_only: list the tests without running them; every one of them is then absent.
        select: ids, without parameters, of the only tests to run; no other files are collected. Empty: all.

    Raises:
        SandboxError: the sandbox could not be opened or used.
    """
    place = _Place(backend, environment, tuple(layers), files or {}, tuple(removed), scratch)
    which = _Which(collect_only, tuple(select))
    if command["runner"] == "pytest":
        keep_plugin_code(environment, lambda: _compiled(place))
    report, running = _run_once(place, command, which)
    for _ in range(RESTARTS):
        left = float(command["timeout_s"]) - report.wall_s
        if running is None or report.timed_out or report.trouble or left <= 0:
            break
        report = report._replace(results=merged(report.results, [_ended_the_process(running, report)]))
        settled = [result.id for result in report.results if result.status != "absent"]
        following, running = _run_once(place, {**command, "timeout_s": left}, which._replace(settled=tuple(settled)))
        report = _together(report, following)
    return report._replace(trouble=report.trouble + look_closely(environment)) if report.trouble else report


class _Place(NamedTuple):
    """What a run's sandboxes are made of."""

    backend: Backend
    environment: Path
    layers: tuple[Path, ...]
    files: Mapping[str, tuple[bytes, str]]
    removed: tuple[str, ...]
    scratch: Path | None

    def spec(self, layers: tuple[Path, ...], report: Path) -> SandboxSpec:
        """A sandbox with the environment, the harness and an empty report file."""
        return SandboxSpec(
            layers=layers,
            mounts=(
                *environment_mounts(self.environment),
                Mount(Path(__file__).parent / "harness", HARNESS),
                Mount(report, REPORT, writable=True, max_bytes=REPORT_BYTES),
            ),
            covered=environment_covers(self.environment),
            scratch=self.scratch,
        )


class _Which(NamedTuple):
    """Which tests a process runs."""

    collect_only: bool
    select: tuple[str, ...]
    settled: tuple[str, ...] = ()
    """Ids that an earlier process of the run has settled."""


def _run_once(place: _Place, command: JSON, which: _Which) -> tuple[TestReport, str | None]:
    """One process over the tests that are not settled; also the test that ended it, where one did."""
    nonce = secrets.token_hex(16)
    with boundary(SandboxError, "the tests could not be started", where=str(place.environment)):
        base = place.scratch or Path(tempfile.gettempdir())
        _require_room(base)
        result, content = _in_a_sandbox(place, command, nonce, which)
        # What this run wrote is gone by now: a disk that only the code under test had filled is its own failure.
        _require_room(base)
    parsed = parse_report(content, nonce)
    return _report(result, parsed, nonce), parsed.running


def _in_a_sandbox(place: _Place, command: JSON, nonce: str, which: _Which) -> tuple[ExecResult, bytes]:
    """What the process did and what its report holds; nothing of the run is left on the disk."""
    with tempfile.TemporaryDirectory(prefix="tests-", dir=place.scratch) as folder:
        file = Path(folder, "report.jsonl")
        file.touch()
        upper = _lay(place.files, Path(folder, "files"))
        sandbox = place.backend.open(place.spec((*place.layers, *upper), file))
        try:
            for path in place.removed:
                if path not in place.files:
                    sandbox.remove(path)
            result = _execute(sandbox, command, nonce, which)
        finally:
            sandbox.close()
        return result, read_report(file)


def _compiled(place: _Place) -> Iterator[tuple[str, bytes]]:
    """What pytest compiles of the environment where there is nothing to test: path in the environment, content."""
    command = {"runner": "pytest", "targets": [], "roots": ["."], "timeout_s": TEST_S, "memory_bytes": COMPILER_BYTES}
    with tempfile.TemporaryDirectory(prefix="tests-", dir=place.scratch) as folder:
        file = Path(folder, "report.jsonl")
        file.touch()
        with boundary(SandboxError, "the tests could not be started", where=str(place.environment)):
            sandbox = place.backend.open(place.spec((), file))
            try:
                _execute(sandbox, command, secrets.token_hex(16), _Which(False, ()), compiled=COMPILED)
                inside = COMPILED + sandbox.path(ENVIRONMENT) + "/"
                changed = [path for path, kind in sandbox.changes() if kind == "present" and path.startswith(inside)]
                for path in changed:
                    with suppress(ValueError, FileNotFoundError):  # no byte code has such a shape
                        yield path.removeprefix(inside), sandbox.read_changed(path, max_bytes=MAX_BYTES)[0]
            finally:
                sandbox.close()


def _require_room(folder: Path) -> None:
    """Refuse to measure on a disk that is about to be full: tests would fail for its sake.

    Raises:
        DiskFull: there is less free space than any run needs.
    """
    if shutil.disk_usage(folder).free < ROOM_BYTES:
        raise disk_full(str(folder))


def _ended_the_process(name: str, report: TestReport) -> TestResult:
    """What is recorded of a test that never ended."""
    hung = report.exit_code == 128 + signal.SIGALRM
    message = "did not end within the time of one test" if hung else "ended the test process"
    return TestResult(normalised_key(name), name, "failed", f"{message} (exit code {report.exit_code})", 0)


def _together(earlier: TestReport, later: TestReport) -> TestReport:
    """A run and the one that went on where it stopped."""
    return later._replace(
        results=merged(earlier.results, later.results),
        output_tail=(earlier.output_tail + later.output_tail)[-2 * TAIL_BYTES :],
        wall_s=earlier.wall_s + later.wall_s,
        cpu_s=earlier.cpu_s + later.cpu_s,
    )


def _lay(files: Mapping[str, tuple[bytes, str]], folder: Path) -> tuple[Path, ...]:
    """Write files into a layer of their own, which also covers whatever else stands at their paths below."""
    if not files:
        return ()
    folder.mkdir()
    for path, (content, mode) in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode == "symlink":
            target.symlink_to(os.fsdecode(content))
            continue
        target.write_bytes(content)
        target.chmod(0o755 if mode == "executable" else 0o644)
    return (folder,)


def _execute(sandbox: Sandbox, command: JSON, nonce: str, which: _Which, compiled: str = "") -> ExecResult:
    """Start the harness in the workspace; `compiled`: where in it pytest's byte code is kept, if anywhere."""
    config = {
        "nonce": nonce,
        "report": sandbox.path(REPORT),
        "runner": command["runner"],
        "targets": list(command["targets"]),
        "arguments": list(command.get("arguments", ())),
        "roots": list(command.get("roots", (".",))),
        "modules": list(command.get("modules", ())),
        "collect_only": which.collect_only,
        "select": list(which.select),
        "skip": list(which.settled),
        "test_s": float(command.get("test_timeout_s", TEST_S)),
        "compiled": sandbox.path(compiled) if compiled else "",
    }
    variables = environment_variables(sandbox, command)
    # The project's folders reach the import path only after the harness is ready; it sets this for its children.
    variables.pop("PYTHONPATH", None)
    return sandbox.exec(
        [sandbox.path("/env") + "/bin/python", "-s", "-B", sandbox.path(HARNESS) + "/main.py"],
        limits=Limits(
            wall_s=float(command["timeout_s"]), memory_bytes=int(command["memory_bytes"]), processes=PROCESSES,
            output_bytes=OUTPUT_BYTES,
        ),
        variables=variables,
        stdin=json.dumps(config).encode("ascii"),
    )  # fmt: skip


def _report(result: ExecResult, parsed: Parsed, nonce: str) -> TestReport:
    """Put what the process did and what the report says together."""
    greeting = f"envsynth-ready {nonce}\n".encode()
    announced = result.stdout.startswith(greeting)
    tail = (result.stdout.removeprefix(greeting)[-TAIL_BYTES:] + result.stderr[-TAIL_BYTES:]).decode(
        "utf-8", "backslashreplace"
    )
    ready = announced or parsed.ready
    trouble = ""
    if not ready:
        said = " ".join(tail.split())[-300:] or f"exit code {result.exit_code}, ended by {result.ended_by}"
        trouble = f"the test harness did not start: {said}"
    return TestReport(
        complete=ready and parsed.complete and result.ended_by == "exit",
        exit_code=result.exit_code if parsed.status is None else parsed.status,
        results=parsed.results if ready else (),
        trouble=trouble,
        timed_out=result.ended_by == "wall",
        output_tail=tail,
        wall_s=result.wall_s,
        cpu_s=result.cpu_s,
    )
