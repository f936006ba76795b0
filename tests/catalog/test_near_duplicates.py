"""Tasks of nearly the same change are found by SQL, and left out of an export by a condition."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsynth.catalog import Catalog
from envsynth.catalog._sql import statements
from envsynth.leaks import Change
from envsynth.models import Outcome, OutcomeStatus, Reference, Verdict, VerdictStatus, digest_of
from envsynth.sketches import Fingerprint, sketch
from envsynth.validators.leakage.fingerprint import fingerprint

BEFORE = "def f(x):\n    return x\n\n\ndef g(x):\n    return -x\n"
BODY = "".join(f"    step_{n} = combine(x, weight_{n}, scale={n})\n" for n in range(12))
FIX = BEFORE.replace("def f(x):\n", f"def f(x):\n{BODY}")
NEARLY = FIX.replace("scale=11", "scale=12")
UNLIKE = BEFORE.replace("return -x", "raise NotImplementedError(x)")
WHERE = "id NOT IN (SELECT other FROM near_duplicate)"


def with_change(outcome: Outcome, before: str, after: str, path: str = "src/m.py") -> Outcome:
    reference = Reference(changes="0" * 64, patch="0" * 64)
    made = fingerprint([Change(path, before, after)], reference, {})
    evidence = {"fingerprint": made.document()}
    verdict = Verdict(validator="leakage", version="1", status=VerdictStatus.PASS, evidence=evidence)
    return outcome.model_copy(update={"verdicts": (*outcome.verdicts, verdict)})


@pytest.fixture
def catalog(maker, tmp_path: Path):
    moved = "import new\n\n\n" + BEFORE
    outcomes = [
        with_change(maker.outcome(1), BEFORE, FIX),
        with_change(maker.outcome(2), moved, moved.replace("def f(x):\n", f"def f(x):\n{BODY}"), "lib/m.py"),
        with_change(maker.outcome(3), BEFORE, NEARLY),
        with_change(maker.outcome(4), BEFORE, UNLIKE),
        with_change(maker.outcome(5, OutcomeStatus.REJECTED), BEFORE, FIX),
        maker.outcome(6),
    ]
    with Catalog.open(tmp_path / "c.duckdb") as opened:
        opened.record(opened.begin_build({}), outcomes, maker.blobs)
        yield opened


def test_pairs(catalog: Catalog) -> None:
    ids = catalog.task_ids()
    assert len(ids) == 5
    rows = {(one, two): (alike, why) for one, two, alike, why in catalog.query("FROM near_duplicate").rows}
    tasks = {task.id: task.candidate.provenance.lead.index for task in catalog.tasks()}
    by_index = {tuple(sorted(tasks[name] for name in pair)): found for pair, found in rows.items()}
    assert set(by_index) == {(1, 2), (1, 3), (2, 3)}
    assert by_index[1, 2] == (1.0, "same patch")
    assert by_index[1, 3][1] == "same symbols, like lines"
    assert 0.8 <= by_index[1, 3][0] < 1
    assert all(one < two for one, two in rows)


def test_one_of_each_is_exported(catalog: Catalog) -> None:
    kept = [task.candidate.provenance.lead.index for task in catalog.tasks(WHERE)]
    assert len(kept) == 3
    assert {4, 6} < set(kept)
    assert catalog.stats().near_duplicates == 2


def test_the_condition_is_shown_to_users() -> None:
    assert any(WHERE in name for name in statements("examples"))


def with_surface(outcome: Outcome, tools: str, *rows: str) -> Outcome:
    made = Fingerprint(digest_of([tools, rows]), (tools,), sketch(rows))
    evidence = {"fingerprint": made.document()}
    verdict = Verdict(validator="world_execution", version="1", status=VerdictStatus.PASS, evidence=evidence)
    return outcome.model_copy(update={"verdicts": (*outcome.verdicts, verdict)})


def test_world_tasks_are_twins_by_tools_and_changed_rows(maker, tmp_path: Path) -> None:
    rows = [f"row {number}" for number in range(20)]
    outcomes = [
        with_surface(maker.outcome(1), "shop", *rows),
        with_surface(maker.outcome(2), "shop", *rows),
        with_surface(maker.outcome(3), "shop", *rows, "one more"),
        with_surface(maker.outcome(4), "bank", *rows),
        with_surface(maker.outcome(5), "shop", *rows[:8]),
        with_change(maker.outcome(6), BEFORE, FIX),
    ]
    with Catalog.open(tmp_path / "c.duckdb") as catalog:
        catalog.record(catalog.begin_build({}), outcomes, maker.blobs)
        tasks = {task.id: task.candidate.provenance.lead.index for task in catalog.tasks()}
        found = catalog.query("SELECT task, other, why FROM near_duplicate").rows
    pairs = {tuple(sorted((tasks[one], tasks[two]))): why for one, two, why in found}
    like = "same tools, like changes"
    assert pairs == {(1, 2): "same tools, same changes", (1, 3): like, (2, 3): like}
