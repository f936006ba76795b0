"""Reading reports: nothing malformed is a pass, whatever it is."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.runtime import testreport
from envsynth.runtime.testkeys import normalised_key
from envsynth.runtime.testreport import parse_report

NONCE = "0123456789abcdef"


def lines(*records: dict[str, object], nonce: str = NONCE) -> bytes:
    return b"".join(
        json.dumps({"n": nonce, "q": place, **record}).encode() + b"\n" for place, record in enumerate(records)
    )


START, READY = {"t": "start"}, {"t": "ready"}
COLLECTED = {"t": "collected", "ids": ["a", "b"]}
A = {"t": "test", "id": "a", "status": "passed", "message": "", "line": 0}
B = {"t": "test", "id": "b", "status": "failed", "message": "no", "line": 3}
FINISH = {"t": "finish", "status": 1}
WHOLE = lines(START, READY, COLLECTED, A, B, FINISH)


def test_a_whole_report() -> None:
    parsed = parse_report(WHOLE, NONCE)
    assert parsed.complete
    assert parsed.status == 1
    assert {one.id: (one.status, one.line) for one in parsed.results} == {"a": ("passed", 0), "b": ("failed", 3)}


@given(cut=st.integers(0, len(WHOLE) - 2))
def test_a_truncated_report_is_incomplete_and_never_better(cut: int) -> None:
    parsed = parse_report(WHOLE[:cut], NONCE)
    assert not parsed.complete
    assert {one.status for one in parsed.results if one.id == "b"} <= {"absent", "failed"}


@given(noise=st.binary(min_size=1).filter(lambda noise: noise.strip(b"\n \t\r\x0b\x0c")))
def test_garbage_makes_a_report_incomplete(noise: bytes) -> None:
    assert not parse_report(noise + b"\n" + WHOLE, NONCE).complete
    assert not parse_report(noise, NONCE).ready


def test_the_worst_of_an_id_that_ends_twice() -> None:
    again = A | {"status": "error"}
    collected = {"t": "collected", "ids": ["a", "a", "b"]}
    parsed = parse_report(lines(START, READY, collected, again, A, B, FINISH), NONCE)
    assert {one.id: one.status for one in parsed.results}["a"] == "error"
    once = parse_report(lines(START, READY, collected, A, B, FINISH), NONCE)
    assert {one.id: one.status for one in once.results}["a"] == "absent"
    assert not once.complete


def test_a_foreign_report_says_nothing() -> None:
    parsed = parse_report(lines(START, READY, COLLECTED, A, FINISH, nonce="other"), NONCE)
    assert (parsed.ready, parsed.complete, parsed.results) == (False, False, ())


def test_a_missing_record_in_between_is_noticed() -> None:
    records = WHOLE.splitlines(keepends=True)
    assert not parse_report(b"".join(records[:3] + records[4:]), NONCE).complete


def test_what_follows_the_finish_is_not_read() -> None:
    extra = json.dumps({"n": NONCE, "q": 6, "t": "test", "id": "b", "status": "passed"}).encode()
    assert {one.id: one.status for one in parse_report(WHOLE + extra, NONCE).results}["b"] == "failed"


@pytest.mark.parametrize("flood", [b"\n", b"{}\n", b"[" * 50 + b"\n"])
def test_a_flood_of_foreign_lines_is_not_read_to_its_end(flood: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    records = WHOLE.splitlines(keepends=True)
    few = parse_report(b"".join(records[:3]) + flood * 100 + b"".join(records[3:]), NONCE)
    assert len(few.results) == 2
    parsed_lines: list[bytes] = []
    loads = json.loads
    monkeypatch.setattr(testreport.json, "loads", lambda line: parsed_lines.append(line) or loads(line))
    parsed = parse_report(b"".join(records[:4]) + flood * 2**20 + b"".join(records[4:]), NONCE)
    assert {one.id: one.status for one in parsed.results} == {"a": "passed", "b": "absent"}
    assert (parsed.complete, len(parsed_lines)) == (False, 4)


def test_a_line_that_is_longer_than_any_of_the_harness_is_not_parsed() -> None:
    long = lines({"t": "test", "id": "c", "status": "passed", "message": "x" * 2**22})
    parsed = parse_report(lines(START, READY, COLLECTED) + long, NONCE)
    assert {one.id for one in parsed.results} == {"a", "b"}


@pytest.mark.parametrize("status", [2, 3, 4, -1, True, None, "0"])
def test_only_a_finished_session_is_complete(status: object) -> None:
    assert not parse_report(lines(START, READY, {"t": "finish", "status": status}), NONCE).complete


@pytest.mark.parametrize(
    "record",
    [
        {"t": "test"},
        {"t": "test", "id": 3, "status": "passed"},
        {"t": "test", "id": "a", "status": "fine"},
        {"t": "test", "id": "a", "status": ["passed"]},
        {"t": "collected", "ids": "abc"},
        {"t": ["odd"]},
    ],
)
def test_malformed_fields_give_no_result(record: dict[str, object]) -> None:
    assert parse_report(lines(START, READY, record, FINISH), NONCE).results == ()


def test_lone_surrogates_become_escapes() -> None:
    record = {"t": "test", "id": "test_\udcff.py", "status": "passed", "message": "\udc80"}
    (result,) = parse_report(lines(START, READY, record, FINISH), NONCE).results
    assert result.id == "test_\\udcff.py"


NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("t[<object at 0x7f3b2c1d>]", "t[<object at <address>>]"),
        ("t[123e4567-e89b-42d3-a456-426614174000]", "t[<uuid>]"),
        ("t[2026-11-29 11:59:58.123456+00:00]", "t[<time>]"),
        ("t[2026-11-29T11:59:58Z]", "t[<time>]"),
        ("t[1795953600.25]", "t[<time>]"),
        ("t[0.84442185152504812]", "t[<float>]"),
        ("t (0.0034 s)", "t (<duration>)"),
        ("t[/tmp/pytest-of-me/pytest-12/x0]", "t[<tmp>/x0]"),
        ("t[/tmp/tmpab12_cd9/f]", "t[<tmp>/f]"),
        ("t[9f86d081884c7d659a2feaa0c55ad015]", "t[<hex>]"),
        # Constants that tell tests apart stay.
        ("t[2020-01-31 10:00:00]", "t[2020-01-31 10:00:00]"),
        ("t[0.1-0.25]", "t[0.1-0.25]"),
        ("t[0xff]", "t[0xff]"),
        ("t[1500000000]", "t[1500000000]"),
        ("t[deadbeef]", "t[deadbeef]"),
        ("t[/tmp/file]", "t[/tmp/file]"),
        ("t[2026-99-99]", "t[2026-99-99]"),
        ("t[5s]", "t[5s]"),
    ],
)
def test_normalised_keys(name: str, key: str) -> None:
    assert normalised_key(name, NOW) == key


@given(name=st.text())
def test_normalising_twice_changes_nothing(name: str) -> None:
    once = normalised_key(name, NOW)
    assert normalised_key(once, NOW) == once
