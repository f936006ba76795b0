"""Starting bubblewrap: a command held back until its limits are set, and failures of the set-up told apart."""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import SandboxError
from ..runtime.contract import ExecResult, Limits
from ._bwrap_args import packed
from ._cgroup import Cgroup
from ._meter import Charge, DiskMeter, GroupMeter, TreeMeter, descendants
from ._process import Meter, Supervision, close_streams, kernel_at_least, resource_limits
from ._seccomp import program

_SETUP_S = 60.0
_FIRST = re.compile(rb'"child-pid": (\d+)[^\n]*\n')
_ENDED = b'"exit-code"'
# The shell is the namespace's first process: it reaps orphans, and when it ends the kernel kills what is left.
# It reports nothing of its own (a child's crash), and looks commands up as a program, never as a builtin.
_INIT = 'exec 3>&2 2>/dev/null; cd -- "$1" 2>&3 || exit 126; unset OLDPWD; shift; (exec "$@" 2>&3 3>&-); exit $?'


class SetupFailed(SandboxError):
    """Bubblewrap ended before the command began."""


class Ran(NamedTuple):
    """A command's result, and what is known of the disk after it."""

    result: ExecResult
    disk_bytes: int


class Invocation(NamedTuple):
    """What to start."""

    binary: Path
    args: list[str]
    """Bubblewrap's options, without the command."""
    command: Sequence[str]
    cwd: str
    """Absolute path inside."""
    stdin: bytes = b""


def run(what: Invocation, limits: Limits, group: Cgroup | None, charge: Charge) -> Ran:
    """Run a command to the end of its whole process tree.

    Args:
        what: the command and its sandbox.
        limits: what it may take.
        group: the control group to run in, if any.
        charge: host folders whose growth is limited.

    Raises:
        SetupFailed: the sandbox could not be made.
        SandboxError: the tree could not be ended.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        status, gate, process = _start(what, stack)
        first, handle = _first_process(status, process)
        stack.callback(os.close, handle)
        meter = _limit(first, limits, group)
        disk = DiskMeter(charge, processes=lambda: descendants(first), shared_memory=f"/proc/{first}/root/dev/shm")
        with suppress(BrokenPipeError):  # the set-up failed; the supervision finds out why
            os.write(gate, b"x")
        ending = Supervision(process, lambda: _kill(handle), limits, meter, disk).run(what.stdin, started)
        said = _read_rest(status)
    if _ENDED not in said and ending.ended_by == "exit":
        raise _setup_failed(ending.stderr)
    return Ran(ExecResult(*ending), disk.total)


def _start(what: Invocation, stack: ExitStack) -> tuple[int, int, subprocess.Popen[bytes]]:
    """Start bubblewrap; the command waits for a byte in the gate.

    Returns:
        Our ends of the status pipe and of the gate, and the process. The stack frees them, and kills.
    """
    command = [os.fsencode(word) for word in ("/bin/sh", "-c", _INIT, "sh", what.cwd, *what.command)]
    status, status_inside = os.pipe()
    stack.callback(os.close, status)
    gate_inside, gate = os.pipe()
    stack.callback(os.close, gate)
    inside = [status_inside, gate_inside]
    try:
        fds = ["--json-status-fd", str(status_inside), "--block-fd", str(gate_inside)]
        calls = program()
        if calls is not None:
            inside.append(_memory("calls", calls))
            fds += ["--seccomp", str(inside[-1])]
        options = _memory("options", packed([*what.args, *fds]))
        inside.append(options)
        process = subprocess.Popen(
            [what.binary, "--args", str(options), "--", *command],
            stdin=subprocess.PIPE if what.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=inside,
            env={},
            cwd="/",
            bufsize=0,
        )
    except OSError as exc:
        raise SetupFailed("a sandbox could not be started", where=str(what.binary), cause=str(exc)) from exc
    finally:
        for handle in inside:
            os.close(handle)
    stack.callback(_reap, process)
    return status, gate, process


def _memory(name: str, content: bytes) -> int:
    """A descriptor of a file in memory, to be read from its start."""
    handle = os.memfd_create(name)
    os.write(handle, content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _reap(process: subprocess.Popen[bytes]) -> None:
    close_streams(process)
    if process.returncode is None:
        process.kill()
        process.wait()


def _first_process(status: int, process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Host process id of the namespace's first process, and a process descriptor of it."""
    said = b""
    deadline = time.monotonic() + _SETUP_S
    while True:
        if found := _FIRST.search(said):
            try:
                return int(found.group(1)), os.pidfd_open(int(found.group(1)))
            except ProcessLookupError:
                break
        ready, _, _ = select.select([status], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(status, 4096) if ready else b""
        if not chunk:
            break
        said += chunk
    process.kill()
    _, stderr = process.communicate()
    raise _setup_failed(stderr)


def _read_rest(status: int) -> bytes:
    said = b""
    while chunk := os.read(status, 4096):
        said += chunk
    return said


def _limit(first: int, limits: Limits, group: Cgroup | None) -> Meter:
    if group is not None:
        try:
            group.add(first)
        except ProcessLookupError:
            pass
        except OSError:
            group = None
    # Since 5.14 the kernel counts a user's processes apart in each user namespace.
    others = 0 if os.geteuid() != 0 and kernel_at_least(5, 14) else None
    try:
        for kind, value in resource_limits(limits, address_space=group is None, others=others).items():
            resource.prlimit(first, kind, (value, value))
    except ProcessLookupError:
        pass  # the set-up failed; the supervision finds out why
    return TreeMeter(first, count_root=False) if group is None else GroupMeter(group)


def _kill(handle: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _setup_failed(stderr: bytes) -> SetupFailed:
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    cause = lines[-1].removeprefix("bwrap: ") if lines else "it ended without a word"
    return SetupFailed("a sandbox could not be made", cause=cause, next_step="run `envsynth doctor`")
