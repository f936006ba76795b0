"""What work costs."""

from __future__ import annotations

import resource
import time

from envsynth.models import Cost

__all__ = ["Stopwatch"]


class Stopwatch:
    """Wall and CPU seconds of this process and its ended children since it was made."""

    def __init__(self) -> None:
        self._wall = time.monotonic()
        self._cpu = self._cpu_now()

    @staticmethod
    def _cpu_now() -> float:
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime

    def cost(self) -> Cost:
        """What it took so far."""
        return Cost(wall_s=time.monotonic() - self._wall, cpu_s=max(0.0, self._cpu_now() - self._cpu))
