"""Only final verdicts of every required validator make a task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.admission import REQUIRED, admit
from envsynth.models import Candidate, TestLists, Tier, Trajectory, Verdict, VerdictStatus

PANEL = (Trajectory(label="reference", outcome=1), Trajectory(label="idle", outcome=0))
LISTS = TestLists(fail_to_pass=("t",), pass_to_pass=())
CANDIDATE = Candidate.model_construct(instruction="x")


def verdicts(**statuses: VerdictStatus) -> list[Verdict]:
    every = {name: VerdictStatus.PASS for name in REQUIRED} | statuses
    return [
        Verdict(validator=name, version="1", status=status, tests=LISTS if name == "execution" else None)
        for name, status in every.items()
    ]


def test_all_required_passes_make_a_verified_task() -> None:
    task = admit(CANDIDATE, verdicts(), PANEL)
    assert task is not None
    assert (task.tier, task.tests) == (Tier.VERIFIED, LISTS)
    assert [summary.status for summary in task.verdicts] == ["PASS"] * 3


def test_solvability_lifts_the_tier_and_may_be_skipped() -> None:
    calibrated = admit(CANDIDATE, verdicts(solvability=VerdictStatus.PASS), PANEL)
    skipped = admit(CANDIDATE, verdicts(solvability=VerdictStatus.SKIP), PANEL)
    assert calibrated is not None
    assert skipped is not None
    assert (calibrated.tier, skipped.tier) == (Tier.CALIBRATED, Tier.VERIFIED)


@given(st.sampled_from([*REQUIRED, "adversary"]), st.sampled_from(["FAIL", "ERROR", "TIMEOUT"]))
def test_any_other_verdict_keeps_a_candidate_out(name: str, status: str) -> None:
    assert admit(CANDIDATE, verdicts(**{name: VerdictStatus(status)}), PANEL) is None


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_validator_may_be_neither_missing_nor_skipped(name: str) -> None:
    assert admit(CANDIDATE, [one for one in verdicts() if one.validator != name], PANEL) is None
    assert admit(CANDIDATE, verdicts(**{name: VerdictStatus.SKIP}), PANEL) is None


@pytest.mark.parametrize("panel", [(), PANEL[:1], PANEL[1:]])
def test_a_panel_without_reference_and_idle_keeps_a_candidate_out(panel: tuple[Trajectory, ...]) -> None:
    assert admit(CANDIDATE, verdicts(), panel) is None
