"""Which trajectories the parity table plays, and what it says of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from envsynth.exporters.replay import ReplayLine, ReplayReport
from envsynth.models import Trajectory


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


run = load("parity_run", Path(__file__).with_name("run.py"))
LABELS = ("mutant:b", "attack:y", "idle", "mutant:a", "attack:x", "attack:z", "alternative:q", "reference")


def labels(count: int, given: tuple[str, ...] = LABELS) -> list[str]:
    panel = [Trajectory(label=label, calls=(), outcome=0.0) for label in given]
    return [line.label for line in run.kept("desk-1", panel, count)]


def test_reference_and_idle_come_first_and_then_each_kind_in_turn() -> None:
    found = labels(5)
    assert found[:2] == ["reference", "idle"]
    assert [label.partition(":")[0] for label in found[2:]] == ["alternative", "attack", "mutant"]


def test_more_than_there_are_is_all_of_them_once() -> None:
    assert sorted(labels(99)) == sorted(LABELS)


def test_the_choice_does_not_hang_on_the_order_of_the_panel() -> None:
    assert labels(6) == labels(6, tuple(reversed(LABELS)))


@pytest.mark.parametrize(("verdict", "good"), [("same", True), ("differs", False), ("error", False)])
def test_a_row_counts_verdicts_and_is_good_only_where_all_are_the_same(verdict: str, good: bool) -> None:
    lines = tuple(ReplayLine("desk-1", label, 1.0, 1.0, name, "") for label, name in (("a", "same"), ("b", verdict)))
    row = run.Row("trl", 1, 2.04, 0.5, [], 0.123, ReplayReport(lines, 0, ""), 3.0)
    assert row.good is good
    counts = {"same": (2, 0, 0), "differs": (1, 1, 0), "error": (1, 0, 1)}[verdict]
    assert row.cells() == f"| trl | 1 | 2 | {' | '.join(map(str, counts))} | 2.0 | 0.5 | 0.12 | 3 |"


def test_a_target_without_a_runtime_has_its_size_only() -> None:
    assert run.Row("parquet", 3, 0.31, 1.0, []).cells() == "| parquet | 3 | - | - | - | - | 0.3 | 1.0 | - | - |"


def test_what_broke_off_is_not_good() -> None:
    row = run.Row("mcp", 1, 1.0, 1.0, [], 0.1, ReplayReport((), 3, "gone"), 1.0, "gone")
    assert not row.good
    assert row.cells().endswith("| gone")
