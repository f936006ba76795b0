"""Independent pieces of one lead's work, several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order", "threads_each"]

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    pool = ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix="envsynth")
    try:
        return [future.result() for future in [pool.submit(work, item) for item in items]]
    finally:
        # A sandbox ends with the thread that started it, so what has begun is waited for.
        pool.shutdown(wait=True, cancel_futures=True)


def threads_each(jobs: int, units: int) -> int:
    """How many threads each of some units may use, so that all of them together keep `jobs` processors busy."""
    return max(1, jobs // max(1, units))
