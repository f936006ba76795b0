"""Threads that work through a list, and results as they come: models and sandboxes are waited for at once."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import Generic, NamedTuple, TypeVar

from envsynth.parallel import PATIENCE_S

__all__ = ["Crew", "Done"]

Item = TypeVar("Item")
Result = TypeVar("Result")
_LOOK_S = 0.5


class Done(NamedTuple, Generic[Result]):
    """A piece of work that has ended: a result, or what it raised; neither where nothing ended for a while."""

    result: Result | None
    error: BaseException | None


class Crew(Generic[Item, Result]):
    """Iterate over it once for the results, in the order in which they come."""

    def __init__(self, work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> None:
        """A crew.

        Args:
            work: may be called from any thread.
            items: all of them.
            threads: so many items are worked on at once.
        """
        self._work = work
        self._waiting = list(items)[::-1]
        self._threads = max(1, min(threads, len(self._waiting)))
        self._taking = threading.Lock()
        self._stopped = False
        # Whoever takes the results says when to stop; nobody runs far ahead of that.
        self._room = threading.Semaphore(2 * self._threads)
        self._done: queue.Queue[Done[Result] | None] = queue.Queue()

    def stop(self) -> None:
        """Begin nothing more; what is under way comes to its end."""
        self._stopped = True
        self._room.release(self._threads)

    def __iter__(self) -> Generator[Done[Result]]:
        # An interrupted program does not wait for daemons: what they do in sandboxes ends with it.
        crew = [threading.Thread(target=self._help, name=f"rollout-{n}", daemon=True) for n in range(self._threads)]
        for one in crew:
            one.start()
        working = len(crew)
        try:
            while working:
                try:
                    # Not without end: a signal that another thread was given is looked at when this one awakes.
                    found = self._done.get(timeout=_LOOK_S)
                except queue.Empty:
                    yield Done(None, None)
                    continue
                if found is None:
                    working -= 1
                else:
                    yield found
                    self._room.release()
        finally:
            self.stop()
            deadline = time.monotonic() + PATIENCE_S
            for one in crew:
                one.join(max(0.0, deadline - time.monotonic()))

    def _help(self) -> None:
        try:
            while (item := self._next()) is not None:
                try:
                    self._done.put(Done(self._work(item), None))
                except BaseException as error:  # raised again, or told, by the thread that waits
                    self._done.put(Done(None, error))
        finally:
            self._done.put(None)

    def _next(self) -> Item | None:
        self._room.acquire()
        with self._taking:
            return None if self._stopped or not self._waiting else self._waiting.pop()
