"""Waiting for a command under limits: feeds it, drains it, measures it, and ends its whole tree when it must."""

from __future__ import annotations

import fcntl
import os
import resource
import selectors
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple, Protocol

from ..errors import SandboxError
from ..runtime.contract import Limits
from ._meter import DiskMeter, Excess, task_limit

EndedBy = Literal["exit", "wall", "memory", "processes", "disk", "output"]

LIMIT_EXIT = 124
_POLL_S = 0.05
"""Least time between two looks at a running tree."""
_POLL_FACTOR = 5
"""A look may take one part in this many of the time between looks."""
_WALK_S = 2.0
"""Time between two walks of the disk that nothing asked for."""
_WALK_FACTOR = 10
_PIPE_BYTES = 2**20
_KILL_S = 30.0
_F_SETPIPE_SZ = 1031
_ADDRESS_SPACE = 64 * 2**30
"""Programs reserve far more than they use; the meters look at what is used."""


class Meter(Protocol):
    """Looks at a running tree."""

    def excess(self, limits: Limits) -> Excess | None:
        """The limit that is exceeded, if any."""


class Ending(NamedTuple):
    """How a command ended."""

    exit_code: int
    """As a shell reports it, of the process that was waited for."""
    stdout: bytes
    stderr: bytes
    ended_by: EndedBy
    output_bytes: int
    wall_s: float
    cpu_s: float
    """Of the process waited for and everything it reaped."""


class _Output:
    """Keeps the first bytes of both streams together, and counts the rest."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._room = limit
        self._kept: dict[int, bytearray] = {}
        self._buffer = bytearray(_PIPE_BYTES)

    def drain(self, handle: int) -> int | None:
        """Read once what is there: its bytes, 0 at the end of the stream, None where nothing is there yet."""
        try:
            size = os.readv(handle, [self._buffer])
        except BlockingIOError:
            return None
        self.total += size
        keep = min(size, self._room)
        self._kept.setdefault(handle, bytearray()).extend(memoryview(self._buffer)[:keep])
        self._room -= keep
        return size

    def kept(self, handle: int) -> bytes:
        """What was kept of a stream."""
        return bytes(self._kept.get(handle, b""))


class Supervision:
    """One command that runs.

    Args:
        process: started with pipes for stdout and stderr, and for stdin if something is to be written.
        kill: ends the whole tree, so that `process` ends by itself.
        limits: what the command may take.
        meter: looks at processes and memory.
        disk: looks at the disk.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], kill: Callable[[], None], limits: Limits, meter: Meter, disk: DiskMeter
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._kill = kill
        self._limits = limits
        self._meter = meter
        self._disk = disk
        self._output = _Output(limits.output_bytes)
        self._streams = (process.stdout.fileno(), process.stderr.fileno())
        self._feed = memoryview(b"")
        self._next_walk = 0.0

    def run(self, stdin: bytes, started: float) -> Ending:
        """Wait until everything has ended.

        Args:
            stdin: what is written to the command.
            started: `time.monotonic()` when the command started.

        Raises:
            SandboxError: the tree could not be ended.
        """
        ended = os.pidfd_open(self._process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                self._register(selector, ended, stdin)
                ended_by = self._watch(selector, ended, started)
                if ended_by != "exit":
                    self._end(selector, ended)
        finally:
            os.close(ended)
        wall = time.monotonic() - started
        _, status, usage = os.wait4(self._process.pid, 0)
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self._drain_rest()
        if ended_by == "exit":
            ended_by = self._last_look()
        return Ending(
            exit_code=LIMIT_EXIT if ended_by != "exit" else code if code >= 0 else 128 - code,
            stdout=self._output.kept(self._streams[0]),
            stderr=self._output.kept(self._streams[1]),
            ended_by=ended_by,
            output_bytes=self._output.total,
            wall_s=wall,
            cpu_s=usage.ru_utime + usage.ru_stime,
        )

    def _register(self, selector: selectors.BaseSelector, ended: int, stdin: bytes) -> None:
        selector.register(ended, selectors.EVENT_READ)
        for handle in self._streams:
            os.set_blocking(handle, False)
            with suppress(OSError):  # only a matter of speed
                fcntl.fcntl(handle, _F_SETPIPE_SZ, _PIPE_BYTES)
            selector.register(handle, selectors.EVENT_READ)
        if self._process.stdin is not None:
            self._feed = memoryview(stdin)
            os.set_blocking(self._process.stdin.fileno(), False)
            selector.register(self._process.stdin.fileno(), selectors.EVENT_WRITE)

    def _watch(self, selector: selectors.BaseSelector, ended: int, started: float) -> EndedBy:
        deadline = started + self._limits.wall_s
        next_look = started + _POLL_S
        self._next_walk = started + _WALK_S
        while True:
            pause = min(deadline, next_look) - time.monotonic()
            if self._pump(selector, ended, max(0.0, pause)):
                return "exit"
            now = time.monotonic()
            if now >= deadline:
                return "wall"
            if now >= next_look:
                found = self._look(now)
                if found is not None:
                    return found
                after = time.monotonic()
                next_look = after + max(_POLL_S, _POLL_FACTOR * (after - now))

    def _look(self, now: float) -> Excess | None:
        found = self._meter.excess(self._limits)
        if found is None and (self._disk.due(self._limits) or now >= self._next_walk):
            before = time.monotonic()
            found = self._disk.measure(self._limits)
            after = time.monotonic()
            self._next_walk = after + max(_WALK_S, _WALK_FACTOR * (after - before))
        return found

    def _last_look(self) -> EndedBy:
        """A limit may be passed between two looks, or the kernel's own killing end the command."""
        found = self._meter.excess(self._limits)
        if found is None and self._disk.due(self._limits):
            found = self._disk.measure(self._limits)
        return found or "exit"

    def _end(self, selector: selectors.BaseSelector, ended: int) -> None:
        self._kill()
        deadline = time.monotonic() + _KILL_S
        while not self._pump(selector, ended, 1.0):
            if time.monotonic() > deadline:
                raise SandboxError("a command could not be ended", cause="its processes hang in the kernel")
            self._kill()

    def _pump(self, selector: selectors.BaseSelector, ended: int, pause: float) -> bool:
        """Move what can be moved; True when the process has ended."""
        ready = {key.fd for key, _ in selector.select(pause)}
        for handle in self._streams:
            if handle in ready and self._output.drain(handle) == 0:
                selector.unregister(handle)
        stdin = self._process.stdin
        if stdin is not None and not stdin.closed and stdin.fileno() in ready:
            self._write(selector)
        return ended in ready

    def _write(self, selector: selectors.BaseSelector) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            self._feed = self._feed[os.write(stdin.fileno(), self._feed[:_PIPE_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._feed = memoryview(b"")
        if not self._feed:
            selector.unregister(stdin.fileno())
            stdin.close()

    def _drain_rest(self) -> None:
        for handle in self._streams:
            while self._output.drain(handle):
                pass


def close_streams(process: subprocess.Popen[bytes]) -> None:
    """Close our ends of a process's pipes."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def resource_limits(limits: Limits, *, address_space: bool, others: int | None) -> dict[int, int]:
    """What the kernel can limit for each process, by `resource.RLIMIT_*`.

    Args:
        limits: what the command may take.
        address_space: whether memory is limited by nothing better.
        others: processes and threads of others that the kernel counts with the command's; None: no limit on them.
    """
    wanted = {
        # One byte, not zero: zero still runs a host's core dump handler.
        resource.RLIMIT_CORE: 1,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CPU: int(limits.wall_s * (os.cpu_count() or 1)) + 10,
    }
    if address_space:
        wanted[resource.RLIMIT_AS] = max(_ADDRESS_SPACE, 8 * limits.memory_bytes)
    if others is not None:
        wanted[resource.RLIMIT_NPROC] = others + task_limit(limits) + 8
    allowed = {}
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        allowed[kind] = value if hard == resource.RLIM_INFINITY else min(value, hard)
    return allowed


def kernel_at_least(major: int, minor: int) -> bool:
    """Whether the running kernel is at least this old a version."""
    release = os.uname().release.split(".")
    with suppress(ValueError, IndexError):
        return (int(release[0]), int(release[1].split("-")[0])) >= (major, minor)
    return False
