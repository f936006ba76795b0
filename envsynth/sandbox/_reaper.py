"""Runs one command without isolation and leaves nothing of it alive. Executed as a script, never imported.

Usage: `_reaper.py CONTROL STATUS`, two descriptors. A JSON line on CONTROL says what to run; a further byte, or its
end, ends the command. STATUS gets one JSON line: wait status, exit code where the command could not be started,
and CPU seconds. Orphans are given to this process (PR_SET_CHILD_SUBREAPER), so that daemons are found and killed.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_KILL_S = 25.0


def main() -> None:
    """Run the command, wait, kill what is left, report."""
    control, status = int(sys.argv[1]), int(sys.argv[2])
    for handle in (control, status):
        # A command that had them could end the watching, or write over what is reported.
        os.set_inheritable(handle, False)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")
    wanted = json.loads(_line(control))
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    failure, failed = os.pipe()
    child = os.fork()
    if child == 0:
        _become(wanted, failed)
    os.close(failed)
    # Only the command may hold its streams open.
    for stream in (0, 1, 2):
        os.close(stream)
    code = _wait(child, control, wake)
    _kill_all()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    refused = int(os.read(failure, 16) or b"0")
    report = {"status": code, "refused": refused, "cpu_s": usage.ru_utime + usage.ru_stime}
    os.write(status, json.dumps(report).encode() + b"\n")


def _line(handle: int) -> bytes:
    content = b""
    while not content.endswith(b"\n"):
        chunk = os.read(handle, 65536)
        if not chunk:
            sys.exit(1)
        content += chunk
    return content


def _become(wanted: dict[str, Any], failed: int) -> None:
    """Turn the forked child into the command."""
    blamed = wanted["cwd"]
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for kind, value in wanted["rlimits"]:
            resource.setrlimit(kind, (value, value))
        os.chdir(wanted["cwd"])
        blamed = wanted["command"][0]
        command = [os.fsencode(word) for word in wanted["command"]]
        os.execvpe(command[0], command, os.environ)
    except OSError as exc:
        missing = exc.errno in (errno.ENOENT, errno.ENOTDIR) and blamed != wanted["cwd"]
        os.write(failed, b"127" if missing else b"126")
        os.write(2, f"{blamed}: {exc.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(127)


def _wait(child: int, control: int, wake: int) -> int | None:
    """Reap until the child ends (its wait status) or the end is asked for (None)."""
    while True:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if process == child:
                return status
            if process == 0:
                break
        ready, _, _ = select.select([control, wake], [], [])
        if control in ready:
            return None
        os.read(wake, 4096)


def _kill_all() -> None:
    """Kill every descendant. A whole group at once: the kernel lets no fork escape that."""
    deadline = time.monotonic() + _KILL_S
    while time.monotonic() < deadline:
        left = _descendants()
        for group in {group for _, group in left if group > 1 and group != os.getpgrp()}:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        for process, _ in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if _reap():
            return
        time.sleep(0.001)
    sys.exit(1)


def _reap() -> bool:
    """Take in the dead; True when no child is left."""
    while True:
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if process == 0:
            return False


def _descendants() -> list[tuple[int, int]]:
    """Every living descendant and its process group."""
    found: list[tuple[int, int]] = []
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 -- no import of pathlib here
                for child in map(int, _read(f"/proc/{process}/task/{task}/children").split()):
                    waiting.append(child)
                    fields = _read(f"/proc/{child}/stat").rpartition(b")")[2].split()
                    if fields[0] != b"Z":
                        found.append((child, int(fields[2])))
    return found


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


if __name__ == "__main__":
    main()
