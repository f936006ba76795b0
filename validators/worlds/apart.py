"""The second process that plays trajectories: one a worker, with another hash seed, gone when the worker is."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from envsynth.errors import SandboxError, SandboxTimeout
from envsynth.runtime.contract import JSON
from envsynth.validators.worlds import replayer
from envsynth.validators.worlds.replayer import Call, Seen

TIMEOUT_S = 120.0
_running: dict[int, Apart] = {}
"""By the process that owns it: a fork does not talk to its parent's."""
_lock = Lock()


class PlayedApart(NamedTuple):
    """What the second process saw."""

    plays: list[Seen]
    cpu_s: float
    """What it took there; no clock of this process counts it."""


def replay_apart(
    world: str, task: JSON, panel: Sequence[Sequence[Call]], *, task_id: str, exact: bool = False
) -> PlayedApart:
    """Play trajectories in the second process.

    Args:
        world: JSON text of the world's document.
        task: what an episode reads of the task.
        panel: the calls of each trajectory.
        task_id: for messages.
        exact: as for `replayer.replay`.

    Raises:
        SandboxError: the process could not play them.
        SandboxTimeout: it took too long.
    """
    line = json.dumps({"world": world, "task": task, "id": task_id, "panel": panel, "exact": exact})
    with _lock:
        apart = _running.get(os.getpid())
        if apart is None or not apart.alive:
            # The kernel ends it with the thread that started it, which need not be the one that asks now.
            apart = _running[os.getpid()] = Apart()
            atexit.register(apart.close)
        reply = json.loads(apart.ask(line, task_id))
    if "error" in reply:
        raise SandboxError("a second process could not play the panel", where=task_id, cause=reply["error"])
    return PlayedApart([Seen(*one) for one in reply["played"]], float(reply["cpu_s"]))


class Apart:
    """A process that answers one line at a time."""

    def __init__(self) -> None:
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        self._process = subprocess.Popen(
            [sys.executable, "-m", replayer.__name__, str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, line: str, where: str) -> str:
        """One request, one reply; after a failure the process is ended.

        Raises:
            SandboxError, SandboxTimeout: there is no reply.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
            return self._reply(where)
        except BrokenPipeError as exc:
            raise self._ended(where) from exc
        except BaseException:
            self.close()
            raise

    def _reply(self, where: str) -> str:
        assert self._process.stdout is not None
        output, parts, deadline = self._process.stdout.fileno(), bytearray(), time.monotonic() + TIMEOUT_S
        while not parts.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([output], [], [], left)[0]:
                raise SandboxTimeout("playing the panel in a second process took too long", where=where)
            part = os.read(output, 2**20)
            if not part:
                raise self._ended(where)
            parts += part
        return parts.decode()

    def _ended(self, where: str) -> SandboxError:
        self.close()
        return SandboxError(
            "the second process that plays panels has ended", where=where,
            cause=f"its exit status is {self._process.returncode}",
        )  # fmt: skip

    def close(self) -> None:
        """End the process; safe to call twice."""
        process = self._process
        # Killed before its pipes are closed, it says no last words about them.
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
