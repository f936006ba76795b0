"""Each rule of `static` fails for its own reason, and a sound candidate passes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from envsynth.cache import Cache
from envsynth.models import Candidate, Check, Criterion, FileMode, Source, Verdict, VerdictStatus, Verifier
from envsynth.validators.static import Static

START = {"calc.py": b"def mean(xs): ...\n", "LICENSE": b"MIT"}


@pytest.fixture
def judge(cache: Cache, source: Source) -> Callable[[Candidate], Verdict]:
    context = SimpleNamespace(blobs=cache)
    return lambda candidate: Static().validate(candidate, source, context)  # type: ignore[arg-type]


def changed(candidate: Candidate, part: str, **update: object) -> Candidate:
    return candidate.model_copy(update={part: getattr(candidate, part).model_copy(update=update)})


def test_a_sound_candidate_passes_without_a_finding(candidate: Candidate, judge: Callable[..., Verdict]) -> None:
    verdict = judge(candidate)
    assert (verdict.status, verdict.findings) == (VerdictStatus.PASS, ())
    assert verdict.evidence["files"] == 3


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Fix mean.", "instruction_too_short"),
        ("The function mean divides by zero for an empty list. Ask jo@host.example about it.", "instruction_has_email"),
        ("The function mean divides by zero for an empty list since 1a2b3c4d5e6f.", "instruction_has_hash"),
    ],
)
def test_instructions(candidate: Candidate, judge: Callable[..., Verdict], text: str, rule: str) -> None:
    verdict = judge(candidate.model_copy(update={"instruction": text}))
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, rule)


def test_values_that_the_hidden_tests_demand_are_no_leak(
    candidate: Candidate, judge: Callable[..., Verdict], tree: Callable[..., str]
) -> None:
    told = changed(
        candidate, "environment", hidden=tree({"tests/test_new.py": b"assert f('1a2b3c4d5e6f', 'a@b.example')"})
    )
    text = candidate.instruction + " So it is for 1a2b3c4d5e6f and a@b.example too."
    assert judge(told.model_copy(update={"instruction": text})).status is VerdictStatus.PASS


@pytest.mark.parametrize("sql", ["SELEC 1", "DELETE FROM tests", "SELECT * FROM nowhere", "SELECT 1, 2", "PRAGMA x"])
def test_checks_that_could_not_be_evaluated(candidate: Candidate, judge: Callable[..., Verdict], sql: str) -> None:
    verdict = judge(candidate.model_copy(update={"verifier": Verifier(checks=(Check(id="c", sql=sql),))}))
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "check_sql_invalid")


def test_criteria_that_could_not_be_evaluated(candidate: Candidate, judge: Callable[..., Verdict]) -> None:
    criterion = Criterion(
        id="r", class_="optional", sql="SELECT 1", evidence="SELECT turn, nothing FROM trace", text="x"
    )
    verdict = judge(changed(candidate, "verifier", rubric=(criterion,)))
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "criterion_sql_invalid")


def test_references(candidate: Candidate, judge: Callable[..., Verdict], tree: Callable[..., str]) -> None:
    for files, rule in (
        ({}, "reference_empty"),
        ({"tests/test_old.py": b"x"}, "reference_changes_tests"),
        ({"calc.py": b"def mean(xs): ...\n"}, "reference_unchanged_file"),
    ):
        verdict = judge(changed(candidate, "reference", changes=tree(files)))
        assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, rule)
    allowed = changed(candidate, "environment", allowed=("tests/test_old.py",))
    assert judge(changed(allowed, "reference", changes=tree({"tests/test_old.py": b"x"}))).status is VerdictStatus.PASS


@pytest.mark.parametrize(
    ("target", "passes"),
    [(b"calc.py", True), (b"../calc.py", True), (b"../../calc.py", False), (b"/etc", False), (b"x/../../../y", False)],
)
def test_links(candidate: Candidate, judge: Callable[..., Verdict], tree: Callable[..., str], target: bytes,
               passes: bool) -> None:  # fmt: skip
    verdict = judge(changed(candidate, "environment", tree=tree({"pkg/link": target}, FileMode.SYMLINK)))
    assert (verdict.status is VerdictStatus.PASS) is passes
    assert passes or verdict.reason == "link_leads_out"


def test_secrets_keep_a_task_out_unless_they_are_fixtures(
    candidate: Candidate, judge: Callable[..., Verdict], tree: Callable[..., str]
) -> None:
    key = b"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7Zq0vW3bT9yXk2LmN8pRs5UcFhJ4dGe6\n"
    noted = changed(candidate, "environment", tree=tree({**START, "tests/key.pem": key}))
    verdict = judge(noted)
    assert (verdict.status, [finding.rule for finding in verdict.findings]) == (VerdictStatus.PASS, ["possible_secret"])
    for part, field in (("environment", "tree"), ("reference", "changes")):
        verdict = judge(changed(candidate, part, **{field: tree({"deploy/key.pem": key})}))
        assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "secret_in_tree")


def test_a_missing_licence_is_noted(candidate: Candidate, judge: Callable[..., Verdict]) -> None:
    verdict = judge(changed(candidate, "provenance", licence_files=()))
    assert (verdict.status, verdict.reason) == (VerdictStatus.PASS, "no_licence_file")
