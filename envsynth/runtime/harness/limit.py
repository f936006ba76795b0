"""The time of one test, kept by the kernel: Python cannot interrupt a loop in C or a lock that is never freed."""

from __future__ import annotations

import signal


class Limit:
    """Ends the process by SIGALRM's default action. Timers are not inherited by forks, so children are untouched."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._armed = False
        # Bound now: a test may patch them.
        self._handler, self._timer = signal.getsignal, signal.setitimer

    def start(self) -> None:
        """Start the clock; a project that handles SIGALRM itself keeps it, and has the run's limit only."""
        if self._handler(signal.SIGALRM) is signal.SIG_DFL:
            self._timer(signal.ITIMER_REAL, self._seconds)
            self._armed = True

    def stop(self) -> None:
        """Stop the clock."""
        if self._armed:
            self._timer(signal.ITIMER_REAL, 0)
            self._armed = False
