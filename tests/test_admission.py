"""Only final verdicts of every required validator make a task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth import admission, plugins
from envsynth.admission import admit
from envsynth.errors import ConfigError
from envsynth.models import Candidate, Control, Strength, TestLists, Tier, Trajectory, Verdict, VerdictStatus, Workspace
from envsynth.work import validators

PANEL = (Trajectory(label="reference", outcome=1), Trajectory(label="idle", outcome=0))
LISTS = TestLists(fail_to_pass=("t",), pass_to_pass=())
REQUIRED, HEARD = admission.REQUIRED["workspace"], admission.HEARD["workspace"]
CANDIDATE = Candidate.model_construct(environment=Workspace.model_construct())


def verdicts(**statuses: VerdictStatus) -> list[Verdict]:
    every = dict.fromkeys((*REQUIRED, *HEARD), VerdictStatus.PASS) | statuses
    return [
        Verdict(validator=name, version="1", status=status, tests=LISTS if name == "execution" else None)
        for name, status in every.items()
    ]


def test_all_required_passes_make_a_verified_task() -> None:
    task = admit(CANDIDATE, verdicts(), PANEL)
    assert task is not None
    assert (task.tier, task.tests) == (Tier.VERIFIED, LISTS)
    assert [summary.status for summary in task.verdicts] == ["PASS"] * len(verdicts())


def test_solvability_lifts_the_tier_and_may_be_skipped() -> None:
    calibrated = admit(CANDIDATE, verdicts(solvability=VerdictStatus.PASS), PANEL)
    skipped = admit(CANDIDATE, verdicts(solvability=VerdictStatus.SKIP), PANEL)
    assert calibrated is not None
    assert skipped is not None
    assert (calibrated.tier, skipped.tier) == (Tier.CALIBRATED, Tier.VERIFIED)


@given(st.sampled_from([*REQUIRED, *HEARD, "another"]), st.sampled_from(["FAIL", "ERROR", "TIMEOUT"]))
def test_any_other_verdict_keeps_a_candidate_out(name: str, status: str) -> None:
    assert admit(CANDIDATE, verdicts(**{name: VerdictStatus(status)}), PANEL) is None


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_validator_may_be_neither_missing_nor_skipped(name: str) -> None:
    assert admit(CANDIDATE, [one for one in verdicts() if one.validator != name], PANEL) is None
    assert admit(CANDIDATE, verdicts(**{name: VerdictStatus.SKIP}), PANEL) is None


@pytest.mark.parametrize("name", HEARD)
def test_a_validator_that_must_be_heard_may_have_nothing_to_measure(name: str) -> None:
    assert admit(CANDIDATE, [one for one in verdicts() if one.validator != name], PANEL) is None
    assert admit(CANDIDATE, verdicts(**{name: VerdictStatus.SKIP}), PANEL) is not None


@pytest.mark.parametrize("panel", [(), PANEL[:1], PANEL[1:]])
def test_a_panel_without_reference_and_idle_keeps_a_candidate_out(panel: tuple[Trajectory, ...]) -> None:
    assert admit(CANDIDATE, verdicts(), panel) is None


def test_what_was_measured_of_the_grader_goes_into_the_task_in_order() -> None:
    control = Control(path="t.py", function="t", first=1, last=2, text="", kind="literal", keys=("t",))
    measured = [
        one.model_copy(update={"strength": strength, "controls": controls})
        for one, strength, controls in zip(
            [*verdicts(), *(Verdict(validator=name, version="1", status=VerdictStatus.PASS) for name in "ab")],
            [None] * len(verdicts()) + [Strength(attacks=9, killed=1), Strength(killed=2, mutants=4)],
            [()] * len(verdicts()) + [(control,), ()], strict=True,
        )
    ]  # fmt: skip
    task = admit(CANDIDATE, measured, PANEL)
    assert task is not None
    assert task.strength == Strength(attacks=9, killed=2, mutants=4)
    assert task.strength.kill_rate == 0.5
    assert task.controls == (control,)


def test_the_panel_has_every_validators_trajectories_under_labels_of_their_own() -> None:
    attacks = (Trajectory(label="attack:a", outcome=0), Trajectory(label="attack:b", outcome=0))
    both = [
        *verdicts(),
        *(Verdict(validator=name, version="1", status=VerdictStatus.PASS, panel=attacks[:n])
          for name, n in (("c", 2), ("d", 1))),
    ]  # fmt: skip
    task = admit(CANDIDATE, both, PANEL)
    assert task is not None
    assert [line.label for line in task.panel] == ["reference", "idle", "attack:a", "attack:b", "attack:a:2"]


def test_a_task_may_be_judged_again_by_fewer_validators_than_now_are_required() -> None:
    some = verdicts()[:-1]
    assert admit(CANDIDATE, some, PANEL) is None
    assert admit(CANDIDATE, some, PANEL, required=REQUIRED[:-1]) is not None
    failed = [*some[:-1], some[-1].model_copy(update={"status": VerdictStatus.FAIL})]
    assert admit(CANDIDATE, failed, PANEL, required=REQUIRED[:-1]) is None


def test_validators_that_admission_asks_for_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "names", lambda _: ["static", "execution"])
    with pytest.raises(ConfigError, match="not installed: adversary, controls, determinism"):
        validators.__wrapped__("workspace")
