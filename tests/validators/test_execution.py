from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envsynth.models import TestRecord, TestRun, TestStatus
from envsynth.validators.execution import measure

P, F, E, S, X, A = (TestStatus(name) for name in ("passed", "failed", "error", "skipped", "xfailed", "absent"))


def run(state: str, **statuses: TestStatus) -> TestRun:
    records = tuple(TestRecord(key=key, id=key, status=status) for key, status in statuses.items() if status is not A)
    return TestRun(state=state, repeat=0, complete=True, records=records)


def lists(start: list[dict[str, TestStatus]], reference: list[dict[str, TestStatus]]) -> tuple[tuple[str, ...], ...]:
    found = measure([run("start", **one) for one in start], [run("reference", **one) for one in reference])
    return (*found.lists.model_dump().values(), found.broken)


def test_failing_error_and_absent_before_count_as_fail_to_pass() -> None:
    before, after = {"f": F, "e": E, "a": A, "p": P}, {"f": P, "e": P, "a": P, "p": P}
    assert lists([before] * 2, [after] * 3) == (("a", "e", "f"), ("p",), (), ())


def test_skipped_and_xfailed_are_neither_failures_nor_passes() -> None:
    before, after = {"s": S, "x": X, "t": F, "u": P}, {"s": P, "x": P, "t": S, "u": S}
    assert lists([before] * 2, [after] * 3) == ((), (), (), ("u",))


def test_absent_after_is_never_a_pass() -> None:
    assert lists([{"t": F}] * 2, [{"t": P}, {}, {"t": P}]) == ((), (), ("t",), ())
    assert lists([{"t": P}] * 2, [{}] * 3) == ((), (), (), ("t",))


def test_a_test_that_flickers_leaves_both_lists() -> None:
    start = [{"old": P, "new": F, "start_flicker": P}, {"old": P, "new": F, "start_flicker": F}]
    reference = [
        {"old": P, "new": P, "start_flicker": P},
        {"old": F, "new": P, "start_flicker": P},
        {"old": P, "new": P},
    ]
    assert lists(start, reference) == (("new",), (), ("old", "start_flicker"), ())


STATUSES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(TestStatus))


@given(
    st.lists(STATUSES, min_size=1, max_size=3), st.lists(STATUSES, min_size=1, max_size=4), st.permutations(range(4))
)
def test_lists_are_disjoint_sound_and_do_not_depend_on_order(start, reference, order) -> None:  # type: ignore[no-untyped-def]
    found = measure([run("start", **one) for one in start], [run("reference", **one) for one in reference])
    f2p, p2p, flicker = (set(keys) for keys in found.lists.model_dump().values())
    assert len(f2p | p2p | flicker) == len(f2p) + len(p2p) + len(flicker)
    for key in f2p | p2p:
        assert all(one.get(key) is P for one in reference)
    assert all(one.get(key, A) in (F, E, A) for key in f2p for one in start)
    shuffled = [reference[position] for position in order if position < len(reference)]
    assert (
        measure([run("start", **one) for one in reversed(start)], [run("reference", **one) for one in shuffled])
        == found
    )
