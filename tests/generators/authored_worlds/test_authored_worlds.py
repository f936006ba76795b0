"""Worlds as strong and as weak models write them, handed in by a scripted model and built by the real pipeline."""

from __future__ import annotations

from pathlib import Path

import authored_scripts
import pytest
from authored_scripts import build, load

from envsynth.models import ToolKind

STRONG = sorted(path.stem for path in authored_scripts.HERE.glob("strong_*.yaml"))
WEAK = sorted(path.stem for path in authored_scripts.HERE.glob("weak_*.yaml"))
REPAIRS = {
    "strong_clinic_rota": [("tools", ("result_without_order",))],
    "strong_library_fines": [("rubric", ("rubric_too_thin",))],
    "strong_lot_recall": [("plan", ("reference_call_refused",))],
    "strong_permit_office": [],
    "strong_tide_server": [],
    "weak_guard_never_holds": [
        ("plan", ("tool_refuses_all",)), ("plan", ("tool_refuses_all",)), ("tools", ("tool_never_succeeds",)),
    ],
}  # fmt: skip
"""What goes back before a task is admitted; of weak scripts that are not here, one artefact, once."""


def test_there_are_enough_of_both_kinds() -> None:
    assert len(STRONG) >= 5
    assert len(WEAK) >= 10
    assert sum(bool(load(name).reason) for name in STRONG) == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", STRONG)
def test_a_strong_model_needs_no_more_repairs_than_it_made_slips(tmp_path: Path, name: str) -> None:
    script = load(name)
    built = build(tmp_path, script.heeding)
    assert (built.outcome.status.value, built.outcome.trouble) == ("admitted", "")
    assert built.repairs == REPAIRS[name]
    task = built.outcome.task
    assert task is not None
    assert task.candidate.provenance.author == "scripted"
    assert task.candidate.instruction == script.good["instruction"]["text"]
    assert task.candidate.hint == script.good["hint"]["text"]
    assert task.strength.killed == task.strength.mutants
    assert (task.strength.mutants or 0) >= 8
    assert task.strength.attacks_worked == 0
    assert {line.outcome for line in task.panel if line.label.startswith("mutant:")} == {0.0}


@pytest.mark.parametrize("name", STRONG)
def test_a_strong_world_is_worth_working_in(name: str) -> None:
    good = load(name).good
    tables, tools, plan = good["schema"]["tables"], good["tools"]["tools"], good["plan"]
    assert 4 <= len(tables) <= 10
    assert 8 <= len(tools) <= 15
    assert 20 <= sum(map(len, good["rows"]["rows"].values())) <= 80
    assert sum(not one.get("enforced", True) for one in good["policies"]["invariants"]) >= 2
    assert sum(one["kind"] != ToolKind.READ for one in tools) >= 3
    assert len(plan["wrong"]) >= 3
    assert plan["alternatives"]


@pytest.mark.slow
@pytest.mark.parametrize("name", WEAK)
def test_nothing_of_a_weak_model_is_admitted_unrepaired(tmp_path: Path, name: str) -> None:
    script = load(name)
    built = build(tmp_path, script.deaf)
    assert (built.outcome.status.value, built.outcome.reason) == ("dropped", script.ends)
    assert built.outcome.task is None
    assert sum(built.asked.values()) - len(built.asked) == 5


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WEAK if load(name).mends])
def test_a_weak_model_that_heeds_what_is_found_is_admitted(tmp_path: Path, name: str) -> None:
    script = load(name)
    built = build(tmp_path, script.heeding)
    assert (built.outcome.status.value, built.outcome.trouble) == ("admitted", "")
    if name in REPAIRS:
        assert built.repairs == REPAIRS[name]
    else:
        ((went_back, rules),) = built.repairs
        assert rules == (script.reason,)
        assert script.first[went_back] != script.good[went_back]


def test_the_scripts_are_worlds() -> None:
    """Names in scripts are those of the documents: what is changed for the worse is no other document."""
    for name in WEAK:
        script = load(name)
        assert script.first.keys() == script.good.keys() == authored_scripts.KINDS.keys()
        assert script.first != script.good
