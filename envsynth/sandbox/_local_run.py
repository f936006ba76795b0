"""Runs a command through `_reaper.py`, which sees to it that nothing of it stays alive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import SandboxError
from ..runtime.contract import ExecResult, Limits
from ._bwrap import Ran
from ._cgroup import Cgroup
from ._meter import Charge, DiskMeter, GroupMeter, TreeMeter, descendants, user_tasks
from ._process import Meter, Supervision, close_streams, resource_limits

_MARGIN = 256
"""Processes that the user may start elsewhere meanwhile."""
_REAPER = Path(__file__).with_name("_reaper.py")


class Local(NamedTuple):
    """What to start."""

    command: list[str]
    cwd: str
    environment: Mapping[str, str]
    stdin: bytes = b""


def run(what: Local, limits: Limits, group: Cgroup | None, charge: Charge) -> Ran:
    """Run a command to the end of its whole process tree.

    Raises:
        SandboxError: it could not be started, or its tree could not be ended.
    """
    started = time.monotonic()
    control_inside, control = os.pipe()
    status, status_inside = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_REAPER), str(control_inside), str(status_inside)],
            stdin=subprocess.PIPE if what.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(control_inside, status_inside),
            env=dict(what.environment),
            start_new_session=True,
            bufsize=0,
        )
        os.close(control_inside)
        os.close(status_inside)
        control_inside = status_inside = -1
        try:
            meter = _limit(process.pid, group)
            others = None if group is not None or os.geteuid() == 0 else user_tasks() + _MARGIN
            rlimits = resource_limits(limits, address_space=group is None, others=others)
            wanted = {"command": what.command, "cwd": what.cwd, "rlimits": list(rlimits.items())}
            with suppress(BrokenPipeError):  # the report says why
                _write_all(control, json.dumps(wanted).encode() + b"\n")
            disk = DiskMeter(charge, processes=lambda: descendants(process.pid))
            ending = Supervision(process, lambda: _ask(control), limits, meter, disk).run(what.stdin, started)
            report = _report(status, ending.stderr)
        finally:
            close_streams(process)
            if process.returncode is None:
                process.kill()
                process.wait()
    finally:
        for handle in (control_inside, status_inside, control, status):
            if handle >= 0:
                os.close(handle)
    result = ExecResult(*ending)._replace(cpu_s=report.cpu_s)
    if result.ended_by == "exit":
        result = result._replace(exit_code=report.exit_code)
    return Ran(result, disk.total)


class _Report(NamedTuple):
    exit_code: int
    cpu_s: float


def _report(status: int, stderr: bytes) -> _Report:
    text = b""
    while chunk := os.read(status, 4096):
        text += chunk
    try:
        report = json.loads(text)
    except ValueError:
        cause = stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it was killed from inside"]
        raise SandboxError("the process that watches a command ended early", cause=cause[0]) from None
    code = report["refused"] or os.waitstatus_to_exitcode(report["status"] or 0)
    return _Report(code if code >= 0 else 128 - code, report["cpu_s"])


def _limit(process: int, group: Cgroup | None) -> Meter:
    if group is not None:
        with suppress(OSError):
            group.add(process)
            return GroupMeter(group)
    return TreeMeter(process, count_root=False)


def _ask(control: int) -> None:
    with suppress(BrokenPipeError):
        os.write(control, b"k")


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]
