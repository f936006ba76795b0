"""What a catalog says, without when, how fast and in which build it was found."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from envsynth.catalog.blobs import roots_of
from envsynth.models import Candidate, Outcome, Verdict
from envsynth.protocols import BlobStore


def logical_content(outcomes: Iterable[Outcome], sources: list[JsonValue], blobs: BlobStore) -> dict[str, JsonValue]:
    """Canonical content of a catalog; see `Catalog.dump`."""
    leads: dict[str, JsonValue] = {}
    missing: set[str] = set()
    seen: set[str] = set()
    for outcome in outcomes:
        leads[outcome.lead.key] = _outcome(outcome)
        if outcome.candidate is not None:
            missing.update(_missing(outcome.candidate, blobs, seen))
    return {"leads": leads, "sources": sources, "missing": [*sorted(missing)]}


def _outcome(outcome: Outcome) -> dict[str, JsonValue]:
    document = outcome.model_dump(
        mode="json", by_alias=True, exclude={"cost": True, "verdicts": True, "lead": {"index"}}
    )
    return {
        **document, "status": outcome.status.value, "reason": outcome.reason,
        "verdicts": [_verdict(verdict) for verdict in outcome.verdicts],
    }  # fmt: skip


def _verdict(verdict: Verdict) -> dict[str, JsonValue]:
    evidence: dict[str, JsonValue] = {
        key: value for key, value in verdict.evidence.items() if not key.endswith(("_s", "_bytes"))
    }
    return {
        "validator": verdict.validator, "version": verdict.version, "status": verdict.status.value,
        "findings": [finding.document() for finding in verdict.findings], "evidence": evidence,
        "tests": None if verdict.tests is None else verdict.tests.document(),
        "controls": [control.document() for control in verdict.controls],
        "strength": None if verdict.strength is None else verdict.strength.document(),
        "panel": [trajectory.document() for trajectory in verdict.panel],
        "runs": [
            {
                "state": run.state, "repeat": run.repeat, "complete": run.complete, "exit_code": run.exit_code,
                "statuses": [*sorted(f"{record.status.value} {record.key}" for record in run.records)],
            }
            for run in verdict.runs
        ],
    }  # fmt: skip


def _missing(candidate: Candidate, blobs: BlobStore, seen: set[str]) -> Iterable[str]:
    trees, plain = roots_of(candidate)
    for digest in trees:
        if digest in seen:
            continue
        seen.add(digest)
        try:
            plain.extend(entry.blob for entry in blobs.get_tree(digest).entries)
        except KeyError:
            yield digest
    for digest in plain:
        if digest not in seen:
            seen.add(digest)
            try:
                blobs.get(digest)
            except KeyError:
                yield digest
