"""Answers that are under way in this process, and a process that leaves without losing one of them.

A call is paid for from the moment it is sent. A process that is asked to leave therefore ends at once where none is
under way, and else as soon as the last one is answered, entered in the ledger and kept in the cache.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["UNDERWAY", "Leave", "Underway"]


class Leave(BaseException):
    """This process is to end; nothing but its main function catches it."""


class Underway:
    """Counts what must not be broken off."""

    def __init__(self) -> None:
        # Reentrant: the signal's handler runs in the main thread, whatever that is doing.
        self._lock = threading.RLock()
        self._count = 0
        self._leaving = False

    def on_signal(self, number: signal.Signals) -> None:
        """Have a signal ask this process to leave. To be called in its main thread."""
        self._signal = number
        signal.signal(number, self._asked)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around a call of a model, until its answer is kept.

        Raises:
            Leave: the process is to end; before the call, or after it.
        """
        self.check()
        with self.whole():
            yield

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Around what is short and must not be broken off, though the process is to end."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)
            self._end_if_idle()

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Inside a call, around a wait between two requests: nothing is lost there."""
        self._add(-1)
        try:
            self._end_if_idle()
            yield
        finally:
            self._add(1)
        self.check()

    def check(self) -> None:
        """Begin something new.

        Raises:
            Leave: the process is to end.
        """
        if self._leaving:
            raise Leave

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self._leaving = True
        self._end_if_idle()

    def _add(self, number: int) -> None:
        with self._lock:
            self._count += number

    def _end_if_idle(self) -> None:
        if not self._leaving or self._count > 0:
            return
        if threading.current_thread() is threading.main_thread():
            raise Leave
        # The main thread waits for this one, or does something else that is not needed any more.
        signal.pthread_kill(threading.main_thread().ident or 0, self._signal)


UNDERWAY = Underway()
"""Of this process."""
