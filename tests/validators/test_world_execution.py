"""Every claimed outcome, and the arithmetic of utilities."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import world_bench
import worldkit
from world_bench import BEST, NOTE, ONE, REST, SHOP_PANEL, WHEEL_PANEL, line

from envsynth.cache import Cache
from envsynth.context import BuildContext
from envsynth.models import Candidate, Check, Source, Utility, Verdict, VerdictStatus, Verifier
from envsynth.models.verifier import Budget
from envsynth.validators.world_execution import REPEATS, WorldExecution

Judge = Callable[[Candidate], Verdict]
PLAYS = REPEATS + 1
"""Of the reference: in fresh episodes, and in one that the whole panel is played in."""


@pytest.fixture
def judge(cache: Cache, source: Source, tmp_path: Path) -> Judge:
    context = BuildContext(tmp_path)
    return lambda candidate: WorldExecution().validate(candidate, source, context)


def rules(verdict: Verdict) -> list[str]:
    return [finding.rule for finding in verdict.findings]


def test_the_shop_passes_with_its_outcomes(cache: Cache, judge: Judge) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop()))
    assert (verdict.status, rules(verdict)) == (VerdictStatus.PASS, [])
    assert verdict.evidence["outcomes"] == {
        "reference": 1, "alternative:note_first": 1, "idle": 0, "mutant:five": 0,
    }  # fmt: skip


def test_the_wheel_passes_with_its_utilities(cache: Cache, judge: Judge) -> None:
    verdict = judge(world_bench.wheel_task(cache))
    assert (verdict.status, rules(verdict)) == (VerdictStatus.PASS, [])
    assert verdict.evidence["utilities"] == {"reference": 26, "idle": 10, "mutant:default": 17}


PANELS: dict[str, tuple[tuple[Any, ...], list[str]]] = {
    "no reference": (SHOP_PANEL[1:], ["panel_incomplete"]),
    "no idle": ((SHOP_PANEL[0],), ["panel_incomplete"]),
    "a label twice": ((*SHOP_PANEL, SHOP_PANEL[2]), ["panel_label_twice"]),
    "a modest reference": ((line("reference", 0.5), SHOP_PANEL[2]), ["reference_claims_less"]),
    "an idle that claims": ((SHOP_PANEL[0], line("idle", 0.5)), ["idle_claims_more"]),
    "a mutant that claims": ((*SHOP_PANEL[:3], line("mutant:x", 1, NOTE)), ["wrong_claims_full"]),
    "a mutant that is right": (
        (*SHOP_PANEL, line("mutant:x", 0, *((call.tool, call.arguments) for call in SHOP_PANEL[1].calls))),
        ["outcome_not_as_claimed"],
    ),
    "an alternative that is wrong": ((*SHOP_PANEL, line("alternative:x", 1, NOTE)), ["outcome_not_as_claimed"]),
    "a reference with a call that fails": (
        (
            line("reference", 1, ("look", {"x": 1}), *((one.tool, one.arguments) for one in SHOP_PANEL[0].calls)),
            SHOP_PANEL[2],
        ),
        ["reference_call_failed"] * PLAYS,
    ),
    "a reference that does not finish": (
        (line("reference", 1, NOTE), SHOP_PANEL[2]), ["reference_not_graded_1"] * PLAYS,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("panel", "found"), PANELS.values(), ids=PANELS.keys())
def test_a_panel_that_is_not_as_it_says(cache: Cache, judge: Judge, panel: Any, found: list[str]) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop(), panel=panel))
    assert verdict.status is VerdictStatus.FAIL
    assert rules(verdict) == found


def test_a_failed_call_of_the_reference_is_told_with_its_place(cache: Cache, judge: Judge) -> None:
    panel, _ = PANELS["a reference with a call that fails"]
    verdict = judge(world_bench.candidate(cache, worldkit.shop(), panel=panel))
    assert verdict.findings[0].message == "call 1, look: unknown argument 'x'; known: none"


def test_a_reference_beyond_the_budget_is_none(cache: Cache, judge: Judge) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop(), budget=Budget(turns=3)))
    assert "reference_call_failed" in rules(verdict)
    assert "reference_not_graded_1" in rules(verdict)


def test_an_idle_that_the_checks_let_pass(cache: Cache, judge: Judge) -> None:
    verifier = Verifier(checks=(Check(id="c", sql="SELECT 1"),))
    panel = (SHOP_PANEL[0], SHOP_PANEL[2])
    verdict = judge(world_bench.candidate(cache, worldkit.shop(), verifier=verifier, panel=panel))
    assert rules(verdict) == ["idle_not_as_claimed"]


def utility(**changes: Any) -> dict[str, Any]:
    fields = {
        "sql": world_bench.WHEEL_SQL, "default": 17.0, "reference": 26.0, "hindsight": 26.0, "band": (0.1, 0.85),
        "solved": 26.0,
    } | changes  # fmt: skip
    return {"verifier": Verifier(checks=(Check(id="any", sql="SELECT 1"),), utility=Utility(**fields))}


def panel(*lines: Any) -> dict[str, Any]:
    return {"panel": (*WHEEL_PANEL, *lines)}


UTILITIES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "another reference": (utility(reference=25.0), ["reference_utility_differs"]),
    "another default": (utility(default=16.0), ["outcome_not_as_claimed", "default_utility_differs"]),
    "a low ceiling": (utility(hindsight=25.0), ["better_than_hindsight"]),
    "a default near the optimum": (utility(band=(0.1, 0.4)), ["default_outside_band"]),
    "a default near idling": (utility(band=(0.5, 0.9)), ["default_outside_band"]),
    "a solver that was wrong": (utility(solved=27.0), ["oracle_not_reproduced"]),
    "an oracle beside the reference": (
        panel(line("alternative:oracle", 8 / 9, *[ONE] * 6)),
        ["outcome_not_as_claimed", "oracle_not_reproduced"],
    ),
    "a better alternative": (panel(line("alternative:one", 8 / 9, *[ONE] * 6)), ["outcome_not_as_claimed"]),
    "nothing said of band and solver": (utility(band=None, solved=None), []),
    "an outcome to the last digit": (panel(line("attack:one", 0.888888888889, *[ONE] * 6)), []),
    "rounding of a solver": (utility(solved=26.0 + 1e-10), []),
}


@pytest.mark.parametrize(("changes", "found"), UTILITIES.values(), ids=UTILITIES.keys())
def test_utilities_that_contradict_each_other(
    cache: Cache, judge: Judge, changes: dict[str, Any], found: list[str]
) -> None:
    assert rules(judge(world_bench.wheel_task(cache, **changes))) == found


def test_a_reference_that_is_no_better_than_idling(cache: Cache, judge: Judge) -> None:
    """Six coins on a wheel that pays nothing."""
    document = world_bench.wheel(rows={"state": [[0, 10]], "tape": [[day, 0] for day in range(6)]})
    changes = utility(default=4.0, reference=10.0, hindsight=None, solved=None) | {
        "panel": (line("reference", 1, *[REST] * 6), line("idle", 1), line("mutant:default", 0, *[ONE] * 6)),
    }  # fmt: skip
    assert rules(judge(world_bench.wheel_task(cache, document, **changes))) == ["wrong_claims_full"]
    changes["panel"] = (changes["panel"][0], line("idle", 0), changes["panel"][2])
    found = rules(judge(world_bench.wheel_task(cache, document, **changes)))
    assert found == ["idle_not_as_claimed", "reference_not_above_idle"]


def test_the_best_play_is_the_best(cache: Cache, judge: Judge) -> None:
    """The bench's own claim: nobody gets more than 26 from this tape."""
    gains = [max(0, pays - 1, 2 * pays - 6) for pays in world_bench.PAYS]
    assert 10 + sum(gains) == 26
    assert len(BEST) == len(gains)
