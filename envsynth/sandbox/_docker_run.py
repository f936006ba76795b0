"""One command in one fresh container: the kernel ends whatever the command started when the container ends."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SandboxError, boundary
from ..runtime.contract import ExecResult, Limits
from ._bwrap import Ran
from ._cgroup import Cgroup, group_of
from ._docker_client import API, discard
from ._meter import Charge, DiskMeter, Excess, GroupMeter, TreeMeter, descendants
from ._process import LIMIT_EXIT, EndedBy, Meter

_LOOK_S = 0.05
_WALK_S = 2.0
_KILL_S = 30.0
_HEADER = 8
_CHUNK = 2**18


class StartFailed(SandboxError):
    """The container could not be made or started."""


class Streams:
    """The attached stream of a container: takes frames apart, keeps the first bytes and counts the rest."""

    def __init__(self, connection: socket.socket, stdin: bytes, limit: int) -> None:
        self.total = 0
        self.ended = False
        self._kept = {1: bytearray(), 2: bytearray()}
        self._room = limit
        self._socket = connection
        self._feed = memoryview(stdin)
        self._head = b""
        self._left = 0
        self._stream = 1
        self._feeding = True
        connection.setblocking(False)

    @property
    def stdout(self) -> bytes:
        """What was kept of it."""
        return bytes(self._kept[1])

    @property
    def stderr(self) -> bytes:
        """What was kept of it."""
        return bytes(self._kept[2])

    def pump(self, pause: float) -> None:
        """Wait at most so many seconds for something to move, and move it."""
        wanted = select.POLLIN | (select.POLLOUT if self._feeding else 0)
        poll = select.poll()
        poll.register(self._socket, wanted)
        for _, event in poll.poll(max(0, int(pause * 1000))):
            if event & select.POLLOUT and self._feeding:
                self._write()
            if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self._read()

    def _write(self) -> None:
        try:
            if self._feed:
                self._feed = self._feed[self._socket.send(self._feed[:_CHUNK]) :]
            if not self._feed:
                self._feeding = False
                self._socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:  # the command ended without reading
            self._feeding = False

    def _read(self) -> None:
        try:
            chunk = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self.ended = self.ended or not chunk
        view = memoryview(chunk)
        while view:
            if self._left == 0:
                view = self._frame(view)
                continue
            part = view[: self._left]
            self._left -= len(part)
            self.total += len(part)
            keep = min(len(part), self._room)
            self._kept[self._stream] += part[:keep]
            self._room -= keep
            view = view[len(part) :]

    def _frame(self, view: memoryview) -> memoryview:
        """Take the header of the next frame: stream, three zeros, length."""
        missing = _HEADER - len(self._head)
        self._head += bytes(view[:missing])
        if len(self._head) == _HEADER:
            self._stream = 2 if self._head[0] == 2 else 1
            self._left = int.from_bytes(self._head[4:], "big")
            self._head = b""
        return view[missing:]


class Started(NamedTuple):
    """A container that runs."""

    api: API
    container: str
    process: int
    """Host id of its first process; 0 where it has already ended."""
    streams: Streams


def run(api: API, body: dict[str, Any], limits: Limits, charge: Charge, stdin: bytes) -> Ran:
    """Run a container to its end, and remove it.

    Args:
        api: the daemon.
        body: the request that creates the container.
        limits: what the command may take.
        charge: host folders whose growth is limited.
        stdin: given on standard input.

    Raises:
        StartFailed: the container could not be made or started.
        SandboxError: the daemon fails, or the container could not be ended.
    """
    container = ""
    connection: Any = None
    try:
        with boundary(StartFailed, "a container could not be started", next_step="run `envsynth doctor`"):
            container = api.create_container_from_config(body)["Id"]
            asked = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            connection = api.attach_socket(container, params=asked)
            began = time.monotonic()
            api.start(container)
        process = int(api.inspect_container(container)["State"]["Pid"])
        streams = Streams(connection._sock, stdin, limits.output_bytes)
        return _Watch(Started(api, container, process, streams), limits, charge).to_the_end(began)
    finally:
        if connection is not None:
            _close(connection)
        if container:
            discard(api, container)


def _close(connection: Any) -> None:
    """Close an attached stream: the SDK hands out the raw reader of a response, over a socket of its own."""
    own = connection._sock
    for part in (getattr(connection, "_response", None), connection, own):
        if part is not None:
            # A reader that is already closed says so by ValueError.
            with suppress(OSError, ValueError):
                part.close()


class _Watch:
    """Looks at a running container until it has ended."""

    def __init__(self, started: Started, limits: Limits, charge: Charge) -> None:
        self._started = started
        self._limits = limits
        self._group: Cgroup | None = group_of(started.process) if started.process else None
        self._meter = self._find_meter()
        process = started.process
        memory = f"/proc/{process}/root/dev/shm" if process else ""
        self._disk = DiskMeter(
            charge, processes=lambda: descendants(process) if process else iter(()), shared_memory=memory
        )
        self._cpu_s = 0.0
        self._next_walk = 0.0

    def _find_meter(self) -> Meter | None:
        if self._group is not None:
            return GroupMeter(self._group)
        seen = self._started.process and Path(f"/proc/{self._started.process}").exists()
        return TreeMeter(self._started.process, count_root=False) if seen else None

    def to_the_end(self, began: float) -> Ran:
        """Wait, and end the container where a limit is hit.

        Args:
            began: `time.monotonic()` when it was started.
        """
        ended_by = self._watch(began)
        self._count_cpu()
        if ended_by != "exit":
            self._end()
        wall = time.monotonic() - began
        state = self._state_at_the_end()
        if ended_by == "exit":
            ended_by = self._last_look(state)
        streams = self._started.streams
        code = LIMIT_EXIT if ended_by != "exit" else int(state["ExitCode"])
        result = ExecResult(code, streams.stdout, streams.stderr, ended_by, streams.total, wall, self._cpu_s)
        return Ran(result, self._disk.total)

    def _watch(self, began: float) -> EndedBy:
        deadline = began + self._limits.wall_s
        next_look = time.monotonic()
        self._next_walk = next_look + _WALK_S
        while not self._started.streams.ended:
            self._started.streams.pump(min(deadline, next_look) - time.monotonic())
            now = time.monotonic()
            if self._started.streams.ended:
                break
            if now >= deadline:
                return "wall"
            if now >= next_look:
                found = self._look(now)
                if found is not None:
                    return found
                after = time.monotonic()
                next_look = after + max(_LOOK_S, 5 * (after - now))
        return "exit"

    def _look(self, now: float) -> Excess | None:
        self._count_cpu()
        found = self._meter.excess(self._limits) if self._meter is not None else None
        if found is None and (self._disk.due(self._limits) or now >= self._next_walk):
            found = self._disk.measure(self._limits)
            after = time.monotonic()
            self._next_walk = after + max(_WALK_S, 10 * (after - now))
        return found

    def _count_cpu(self) -> None:
        # The group is gone soon after the last process.
        if self._group is not None:
            self._cpu_s = max(self._cpu_s, self._group.cpu_s())

    def _last_look(self, state: dict[str, Any]) -> EndedBy:
        if state.get("OOMKilled"):
            return "memory"
        found = self._meter.excess(self._limits) if self._meter is not None else None
        # What was written a moment ago may not be missing from the free space yet, which `due` goes by.
        return found or self._disk.measure(self._limits) or "exit"

    def _end(self) -> None:
        _kill(self._started)
        deadline = time.monotonic() + _KILL_S
        while not self._started.streams.ended and time.monotonic() < deadline:
            self._started.streams.pump(0.5)

    def _state_at_the_end(self) -> dict[str, Any]:
        """What the daemon says of the ended container.

        Raises:
            SandboxError: it does not end.
        """
        api, container = self._started.api, self._started.container
        deadline = time.monotonic() + _KILL_S
        while time.monotonic() < deadline:
            state: dict[str, Any] = api.inspect_container(container)["State"]
            if not state["Running"] and state["Status"] != "created":
                return state
            # Its streams ended, so its first process has; the daemon learns of that a little later.
            with suppress(SandboxError), boundary(SandboxError, "a container cannot be waited for"):
                api.wait(container, timeout=1)
            _kill(self._started)
        raise SandboxError("a container could not be ended", where=container[:12], cause="the daemon goes on with it")


def _kill(started: Started) -> None:
    """Kill the first process; one that has ended is fine."""
    with suppress(SandboxError), boundary(SandboxError, "a container cannot be killed"):
        started.api.kill(started.container)
