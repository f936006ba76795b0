"""The view `instrument`: what `consistency` measured, of admitted and rejected candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envsynth.catalog import Catalog
from envsynth.catalog._sql import statements
from envsynth.models import Outcome, OutcomeStatus, Verdict, VerdictStatus

RULES = {
    "instrument": "trace_rules", "tp": 3, "fp": 1, "tn": 9, "fn": 1, "silent_right": 0, "silent_wrong": 0,
    "agreement": 0.75, "used": True, "unused": "",
}  # fmt: skip
JUDGE = {
    **RULES, "instrument": "judge", "used": False, "unused": "it agrees with the labels to 0.50", "model": "small",
    "agreement": None, "repeated": 0.75, "overrides": 5, "overrides_obeyed": 2, "silent_wrong": 4,
}  # fmt: skip


def with_instruments(outcome: Outcome, *instruments: dict[str, Any]) -> Outcome:
    said = Verdict(
        validator="consistency", version="1", status=VerdictStatus.PASS, evidence={"instruments": list(instruments)}
    )
    return outcome.model_copy(update={"verdicts": (*outcome.verdicts, said)})


def test_one_row_an_instrument(maker: Any, tmp_path: Path) -> None:
    outcomes = [
        with_instruments(maker.outcome(1), RULES, JUDGE),
        with_instruments(maker.outcome(2, OutcomeStatus.REJECTED), RULES),
        maker.outcome(3),
    ]
    with Catalog.open(tmp_path / "c.duckdb") as catalog:
        catalog.record(catalog.begin_build({}), outcomes, maker.blobs)
        task, key = outcomes[0].task.id, outcomes[0].lead.key
        rows = catalog.query(
            "SELECT task, instrument, tp, fp, tn, fn, used, agreement, silent, unused FROM instrument"
            " WHERE task NOT NULL ORDER BY instrument"
        ).rows
        assert rows == [
            (task, "judge", 3, 1, 9, 1, False, None, 4, "it agrees with the labels to 0.50"),
            (task, "trace_rules", 3, 1, 9, 1, True, 0.75, 0, ""),
        ]
        judged = "SELECT model, repeated, overrides, overrides_obeyed, key FROM instrument WHERE model NOT NULL"
        assert catalog.query(judged).rows == [("small", 0.75, 5, 2, key)]
        assert catalog.query("SELECT count(*) FROM instrument WHERE task IS NULL").rows == [(1,)]
        name = next(name for name in statements("examples") if name.startswith("How well trace rules"))
        assert catalog.query(statements("examples")[name]).rows == [
            ("judge", 1, 0, 3, 1, 9, 1, None), ("trace_rules", 1, 1, 3, 1, 9, 1, 0.75),
        ]  # fmt: skip
        assert [one.id for one in catalog.tasks("id IN (SELECT task FROM instrument WHERE used AND fn > 0)")] == [task]
