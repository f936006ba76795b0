"""Ctrl-C while workers are busy: the first one is noted, the second one raises."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def first_noted() -> Iterator[Callable[[], bool]]:
    """Note the first interrupt in place of raising it; yields whether there was one.

    Handlers that somebody else set stay, and so do those of other threads than the main one.
    """
    noted = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    replaced = []
    if threading.current_thread() is threading.main_thread():
        numbers = (signal.SIGINT, signal.SIGTERM)
        replaced = [number for number in numbers if signal.getsignal(number) is signal.default_int_handler]
        for number in replaced:
            signal.signal(number, handle)
    try:
        yield noted.is_set
    finally:
        for number in replaced:
            signal.signal(number, signal.default_int_handler)
