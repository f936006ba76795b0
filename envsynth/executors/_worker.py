"""A worker process, and the channel to it.

Not `concurrent.futures`: its pool shares queues between the workers, and waits forever where a worker that is killed
has left half a message in one, or where it has overlooked a worker that was started in the moment another one died.
Here each worker has a channel of its own, whose end is the worker's end.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

from envsynth.errors import EnvsynthError
from envsynth.lifeline import end_with
from envsynth.underway import UNDERWAY, Leave

_LEAVE_S = 10.0
"""Time a worker without a unit has to end by itself."""

Work = Callable[[str], str]


class WorkerDied(Exception):
    """The process ended before it answered."""


class Worker:
    """A process that does one unit after the other.

    Killed at any moment, in the middle of a message too, it takes nothing down but the unit it was given.
    """

    def __init__(self) -> None:
        self.unit = ""
        """What it took last."""
        self.channel, inside = multiprocessing.Pipe()
        with inside:
            # Spawned, not forked: a forked child would share the catalog's open file and its threads' locks.
            self._process = multiprocessing.get_context("spawn").Process(target=_serve, args=(inside, os.getpid()))
            self._process.start()

    def give(self, work: Work, unit: str) -> None:
        """Have a unit done.

        Raises:
            WorkerDied: it has not taken the unit.
        """
        try:
            self.channel.send((work, unit))
        except OSError:
            raise WorkerDied from None
        self.unit = unit

    def answer(self) -> str | EnvsynthError:
        """What became of the unit; waits for it.

        Raises:
            WorkerDied: nobody will ever know.
            Exception: what `work` raised beyond EnvsynthError, unchanged.
        """
        try:
            content = self.channel.recv_bytes()
        except (EOFError, OSError):
            raise WorkerDied from None
        result: str | BaseException = pickle.loads(content)
        if isinstance(result, BaseException) and not isinstance(result, EnvsynthError):
            raise result
        return result

    def leave(self) -> None:
        """Have it end at once; where a model is answering, once it has."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once; its sandboxes die with it."""
        self._process.kill()

    def dismiss(self) -> None:
        """Let it end once it has nothing to do."""
        self.channel.close()

    def join(self) -> None:
        """Wait for the end of a worker that was dismissed."""
        self._process.join(_LEAVE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _serve(channel: Connection[bytes, bytes], parent: int) -> None:
    """The worker's side: answer requests until nobody makes any."""
    # Ctrl-C is the parent's to handle; a killed parent must not leave workers behind.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    UNDERWAY.on_signal(signal.SIGTERM)
    end_with(parent)
    with suppress(EOFError, OSError, Leave):
        while True:
            answer = _answer(channel.recv_bytes())
            with UNDERWAY.whole():
                channel.send_bytes(answer)


def _answer(request: bytes) -> bytes:
    try:
        work, unit = pickle.loads(request)
        return pickle.dumps(work(unit))
    except EnvsynthError as error:
        return pickle.dumps(error)
    except Leave:
        raise
    except BaseException as exc:  # a defect, which is to be raised where the units are handed out
        exc.add_note(f"In a worker process:\n{''.join(traceback.format_exception(exc))}")
        return pickle.dumps(exc)
