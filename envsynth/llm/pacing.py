"""When to call an endpoint, and when to give it up: the server's own headers, backoff with jitter, and a limit."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from envsynth.errors import EndpointDown

__all__ = ["Clock", "Health", "Pace", "backoff", "retry_after"]

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|d|h|m|s)")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0


class Clock(NamedTuple):
    """Time and chance, to be replaced in tests."""

    now: Callable[[], float] = time.monotonic
    """Seconds of a clock that never goes back."""
    today: Callable[[], float] = time.time
    """Seconds since 1970."""
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
    """A number in [0, 1)."""


def backoff(attempt: int, chance: float) -> float:
    """Seconds to wait after attempt 0, 1, ...: doubling up to half a minute, less up to a half by chance."""
    return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(attempt, 20)) * (1.0 - chance / 2)


def retry_after(headers: Mapping[str, str], today: float) -> float | None:
    """Seconds that a server asks to wait; None: it does not say.

    Args:
        headers: with names in lower case: `retry-after-ms`, `retry-after` (seconds or a date).
        today: seconds since 1970.
    """
    wait = _number(headers.get("retry-after-ms", ""))
    if wait is not None:
        return wait / 1000
    said = headers.get("retry-after", "").strip()
    wait = _number(said)
    if wait is None and said:
        try:
            wait = max(0.0, parsedate_to_datetime(said).timestamp() - today)
        except (ValueError, OverflowError):
            wait = None
    return wait


class Pace:
    """One endpoint's rate limit, as far as its headers tell; shared by threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._not_before = -math.inf

    def wait(self, patience: float) -> None:
        """Wait until the endpoint takes calls again, at most `patience` seconds."""
        with self._lock:
            pause = self._not_before - self._clock.now()
        if pause > 0:
            self._clock.sleep(min(pause, patience))

    def pause(self, seconds: float) -> None:
        """Make no call for so long; the longest pause that was asked for counts."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock.now() + seconds)

    def heard(self, headers: Mapping[str, str]) -> None:
        """Read what an answer says of the next one: nothing left of requests or tokens is a pause until the reset."""
        for kind in ("-requests", "-tokens", ""):
            left = _number(headers.get(f"x-ratelimit-remaining{kind}", ""))
            if left is not None and left <= 0:
                reset = self._reset(headers.get(f"x-ratelimit-reset{kind}", ""))
                if reset is not None:
                    self.pause(reset)

    def _reset(self, said: str) -> float | None:
        """Seconds until a reset: `1s`, `6m0s`, `20ms`, a number of seconds, or a moment since 1970 in s or ms."""
        number = _number(said)
        if number is None:
            parts = _PART.findall(said)
            whole = "".join(amount + unit for amount, unit in parts) == said.strip()
            return sum(float(amount) * _SECONDS[unit] for amount, unit in parts) if parts and whole else None
        if number > 1e9:
            moment = number / 1000 if number > 1e11 else number
            return max(0.0, moment - self._clock.today())
        return number


class Health:
    """Counts calls in a row that failed alike, over threads; at the limit the endpoint is down, and stays so."""

    def __init__(self, endpoint: str, limit: int) -> None:
        self._endpoint = endpoint
        self._limit = limit
        self._lock = threading.Lock()
        self._alike = 0
        self._last = ""
        self._down: EndpointDown | None = None

    def check(self) -> None:
        """Let a call pass.

        Raises:
            EndpointDown: it would fare no better.
        """
        with self._lock:
            down = self._down
        if down is not None:
            raise EndpointDown(down)

    def succeeded(self) -> None:
        """The endpoint answered a call."""
        with self._lock:
            self._alike = 0

    def failed(self, what: str) -> None:
        """A call failed, tried to the end.

        Args:
            what: the failure, in the same words for the same kind.

        Raises:
            EndpointDown: it was one too many of the kind.
        """
        with self._lock:
            self._alike = self._alike + 1 if what == self._last else 1
            self._last = what
            over = self._alike >= self._limit
        if over:
            times = f"{self._limit} calls in a row" if self._limit > 1 else "a call"
            self.give_up(what, f"{times} failed alike, each after its retries")

    def give_up(self, what: str, cause: str) -> None:
        """Count the endpoint as down at once.

        Raises:
            EndpointDown: always.
        """
        down = EndpointDown(
            f"the model endpoint fails every call: {what}", where=self._endpoint, cause=cause,
            next_step="mend or start the endpoint, or correct base_url, model and key in [llm], "
            "and run the same command again: finished work and paid answers are kept",
        )  # fmt: skip
        with self._lock:
            self._down = self._down or down
        raise down


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
