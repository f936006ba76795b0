"""Independent pieces of one lead's work, several at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

__all__ = ["in_order", "threads_each"]

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE_S = 5.0
"""How long an interrupt waits for what has begun; beyond it, sandboxes end with the process."""

_LOOK_S = 0.5


def in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """The result of each item, in the order of the items.

    Threads suffice, since what takes long are commands in sandboxes.

    Args:
        work: does not depend on what becomes of other items.
        items: all of them.
        threads: so many items are worked on at once.

    Raises:
        Exception: what `work` raises, of the first item in order that fails; later items may be left out.
    """
    items = list(items)
    if threads <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    return _Shared(work, items).run(min(threads, len(items)))


class _Shared(Generic[Item, Result]):
    """Items that threads take one by one, the first first."""

    def __init__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> None:
        self._work = work
        self._items = items
        self._waiting = iter(range(len(items)))
        self._taking = threading.Lock()
        self._stopped = False
        self._results: dict[int, Result] = {}
        self._errors: dict[int, BaseException] = {}

    def run(self, threads: int) -> list[Result]:
        # An interrupted program does not wait for daemons, and what they do in sandboxes ends with it.
        crew = [threading.Thread(target=self._help, name=f"envsynth-{n}", daemon=True) for n in range(threads)]
        try:
            for one in crew:
                one.start()
            for one in crew:
                while one.is_alive():
                    # Not without end: a signal that another thread was given is looked at when this one awakes.
                    one.join(_LOOK_S)
        except BaseException:
            self._stopped = True
            deadline = time.monotonic() + PATIENCE_S
            for one in [one for one in crew if one.is_alive()]:
                one.join(max(0.0, deadline - time.monotonic()))
            raise
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._results[number] for number in range(len(self._items))]

    def _help(self) -> None:
        while (number := self._next()) is not None:
            try:
                self._results[number] = self._work(self._items[number])
            except BaseException as error:  # raised again by the thread that waits
                self._errors[number] = error
                self._stopped = True

    def _next(self) -> int | None:
        with self._taking:
            return None if self._stopped else next(self._waiting, None)


def threads_each(jobs: int, units: int) -> int:
    """How many threads each of some units may use, so that all of them together keep `jobs` processors busy."""
    return max(1, jobs // max(1, units))
