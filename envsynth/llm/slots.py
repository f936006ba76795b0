"""How many calls of one endpoint are under way at once, over threads and processes."""

from __future__ import annotations

import fcntl
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["Slots"]

_POLL = 0.05


class Slots:
    """Numbered places in a folder, each a lock that the kernel frees when its holder dies.

    Args:
        folder: shared by all that are to be counted together; must be there.
        count: how many may hold a place at once.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._paths = [folder / str(number) for number in range(count)]
        self._here = threading.BoundedSemaphore(count)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for a place, and keep it."""
        with self._here:
            place = self._free()
            while place is None:  # other processes hold all of them; one that waits for a lock waits for that one only
                time.sleep(_POLL)
                place = self._free()
            with place:
                yield

    def _free(self) -> IO[str] | None:
        """A place that was free, locked until it is closed."""
        for path in random.sample(self._paths, len(self._paths)):
            place = path.open("a")
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                place.close()
            else:
                return place
        return None
