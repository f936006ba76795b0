"""Outcome and rows: what is stored in columns, and how an outcome is put together again, exactly."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from envsynth.models import (
    Candidate,
    Cost,
    Dropped,
    Lead,
    Model,
    Outcome,
    Task,
    TestRecord,
    TestRun,
    Verdict,
    canonical_json,
    digest_of,
)

Row = dict[str, Any]
"""Named parameters of one INSERT."""


def outcome_row(outcome: Outcome, build: int, now: datetime) -> Row:
    """Parameters of `insert_outcome`."""
    lead, task = outcome.lead, outcome.task
    if task is not None and task.candidate != outcome.candidate:
        raise ValueError(f"the task {task.id} is not made of its outcome's candidate")
    candidate = outcome.candidate
    admitted = task and canonical_json(task.model_dump(mode="json", by_alias=True, exclude={"candidate"}))
    return {
        "lead": lead.key, "ladder": outcome.ladder, "build": build, "now": now, "status": outcome.status.value,
        "reason": outcome.reason, "task": None if task is None else task.id, "source": lead.source, "name": lead.name,
        "generator": lead.generator, "generator_version": lead.generator_version, "strategy": lead.strategy,
        "revision": lead.revision, "ref": lead.ref, "title": lead.title, "trouble": outcome.trouble,
        "lead_document": lead.to_json(), "candidate": None if candidate is None else candidate.to_json(),
        "dropped": None if outcome.dropped is None else outcome.dropped.to_json(), "admitted": admitted,
        **_cost_row(outcome.cost),
    }  # fmt: skip


def verdict_rows(outcome: Outcome) -> Iterable[Row]:
    """Parameters of `insert_verdict`."""
    for position, verdict in enumerate(outcome.verdicts):
        yield {
            "lead": outcome.lead.key, "position": position, "validator": verdict.validator,
            "version": verdict.version, "status": verdict.status.value, "reason": verdict.reason,
            "findings": canonical_json([finding.document() for finding in verdict.findings]),
            "evidence": canonical_json(verdict.evidence),
            "tests": None if verdict.tests is None else verdict.tests.to_json(),
            "controls": _texts(verdict.controls), "panel": _texts(verdict.panel),
            "strength": None if verdict.strength is None else verdict.strength.to_json(),
            **_cost_row(verdict.cost),
        }  # fmt: skip


def run_rows(outcome: Outcome) -> Iterable[tuple[Row, list[str]]]:
    """Parameters of `insert_run`, each with the keys of its roster."""
    for verdict_position, verdict in enumerate(outcome.verdicts):
        for position, run in enumerate(verdict.runs):
            keys = [record.key for record in run.records]
            details = [
                {"position": index, "id": record.id, "message": record.message, "line": record.line}
                for index, record in enumerate(run.records)
                if record.id != record.key or record.message or record.line
            ]
            yield {
                "lead": outcome.lead.key, "verdict": verdict_position, "position": position, "state": run.state,
                "repeat": run.repeat, "complete": run.complete, "exit_code": run.exit_code, "trouble": run.trouble,
                "timed_out": run.timed_out, "output_tail": run.output_tail, "roster": digest_of(keys),
                "statuses": [record.status.value for record in run.records], "details": json.dumps(details),
                **_cost_row(run.cost),
            }, keys  # fmt: skip


def to_task(admitted: str, candidate: str) -> Task:
    """The task of an outcome's two documents."""
    return Task.model_validate({**json.loads(admitted), "candidate": json.loads(candidate)})


def to_outcome(row: Mapping[str, Any], verdicts: Sequence[Verdict]) -> Outcome:
    """The outcome of a row of `outcomes`."""
    candidate = None if row["candidate"] is None else Candidate.from_json(row["candidate"])
    return Outcome(
        lead=Lead.from_json(row["lead_document"]), ladder=row["ladder"], candidate=candidate,
        dropped=None if row["dropped"] is None else Dropped.from_json(row["dropped"]), verdicts=tuple(verdicts),
        task=None if row["admitted"] is None else to_task(row["admitted"], row["candidate"]), trouble=row["trouble"],
        cost=_cost(row),
    )  # fmt: skip


def to_verdict(row: Mapping[str, Any], runs: Sequence[TestRun]) -> Verdict:
    """The verdict of a row of `verdicts`."""
    return Verdict.model_validate(
        {
            "validator": row["validator"], "version": row["version"], "status": row["status"],
            "findings": json.loads(row["findings"]), "evidence": json.loads(row["evidence"]),
            "tests": None if row["tests"] is None else json.loads(row["tests"]), "runs": tuple(runs),
            "controls": json.loads(row["controls"] or "[]"), "panel": json.loads(row["panel"] or "[]"),
            "strength": None if row["strength"] is None else json.loads(row["strength"]),
            "cost": _cost(row),
        }
    )  # fmt: skip


def to_run(row: Mapping[str, Any]) -> TestRun:
    """The run of a row of `runs`."""
    told = {detail["position"]: detail for detail in row["details"]}
    records = []
    for position, (key, status) in enumerate(zip(row["keys"], row["statuses"], strict=True)):
        detail = told.get(position, {"id": key, "message": "", "line": 0})
        records.append(
            TestRecord(key=key, id=detail["id"], status=status, message=detail["message"], line=detail["line"])
        )
    return TestRun(
        state=row["state"], repeat=row["repeat"], complete=row["complete"], exit_code=row["exit_code"],
        records=tuple(records), trouble=row["trouble"], timed_out=row["timed_out"], output_tail=row["output_tail"],
        cost=_cost(row),
    )  # fmt: skip


def _texts(nouns: Sequence[Model]) -> str | None:
    return canonical_json([noun.document() for noun in nouns]) if nouns else None


def _cost_row(cost: Cost) -> Row:
    return {"wall_s": cost.wall_s, "cpu_s": cost.cpu_s, "disk_bytes": cost.disk_bytes, "cached": cost.cached}


def _cost(row: Mapping[str, Any]) -> Cost:
    return Cost(wall_s=row["wall_s"], cpu_s=row["cpu_s"], disk_bytes=row["disk_bytes"], cached=row["cached"])
