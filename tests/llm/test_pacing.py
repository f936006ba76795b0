"""What servers say about waiting, in all the ways they say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.llm.pacing import Clock, Pace, backoff, retry_after

TODAY = 1_700_000_000.0


@pytest.mark.parametrize(("headers", "seconds"), [
    ({"retry-after": "7"}, 7.0),
    ({"retry-after": " 0.5 "}, 0.5),
    ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
    ({"retry-after": "Tue, 14 Nov 2023 22:14:20 GMT"}, 60.0),
    ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "-3"}, None),
    ({"retry-after": "nan"}, None),
    ({}, None),
])  # fmt: skip
def test_retry_after(headers, seconds):
    assert retry_after(headers, TODAY) == seconds


@pytest.mark.parametrize(("kind", "left", "reset", "seconds"), [
    ("-requests", "0", "1s", 1.0),
    ("-requests", "0", "6m0s", 360.0),
    ("-tokens", "0", "20ms", 0.02),
    ("-tokens", "0", "1h2m3.5s", 3723.5),
    ("", "0", "12.5", 12.5),
    ("", "0", f"{TODAY + 30}", 30.0),
    ("", "0", f"{int((TODAY + 30) * 1000)}", 30.0),
    ("-requests", "1", "60s", None),
    ("-requests", "0", "later", None),
    ("-requests", "0", "1s or so", None),
    ("-requests", "", "60s", None),
])  # fmt: skip
def test_a_limit_that_is_used_up_is_waited_for(kind, left, reset, seconds):
    slept: list[float] = []
    pace = Pace(Clock(now=lambda: 100.0, today=lambda: TODAY, sleep=slept.append))
    pace.heard({f"x-ratelimit-remaining{kind}": left, f"x-ratelimit-reset{kind}": reset})
    pace.wait(10_000.0)
    assert slept == ([] if seconds is None else [pytest.approx(seconds)])


def test_the_longest_pause_counts_and_patience_bounds_it():
    slept: list[float] = []
    pace = Pace(Clock(now=lambda: 0.0, sleep=slept.append))
    for seconds in (5.0, 50.0, 1.0):
        pace.pause(seconds)
    pace.wait(1000.0)
    pace.wait(20.0)
    assert slept == [50.0, 20.0]


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_is_bounded_and_spread(attempt, chance):
    longest = backoff(attempt, 0.0)
    assert longest / 2 <= backoff(attempt, chance) <= longest <= 30.0
    assert backoff(attempt + 1, 0.0) >= longest
