"""Attempts in the catalog: exact, once, and gone with what they are attempts at."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsynth.catalog import Catalog
from envsynth.errors import ConfigError
from envsynth.models import (
    Attempt,
    AttemptGrade,
    AttemptStatus,
    ChatCall,
    ChatMessage,
    ChatTool,
    Cost,
    Ending,
    FailureKind,
    Outcome,
    Policy,
    Task,
    Tokens,
    TraceStep,
    played_digest,
)


def attempt_at(task: Task, k: int = 0, *, solved: bool = True, **changes: object) -> Attempt:
    outcome = float(solved)
    fields: dict[str, object] = {
        "task": task.id, "lead": task.candidate.provenance.lead.key,
        "played": played_digest(task.candidate, task.tests, task.controls),
        "policy": Policy.MODEL, "model": "big", "settings": "5" * 64, "k": k, "status": AttemptStatus.FINISHED,
        "trace": (TraceStep(tool="bash", arguments={"command": "a\0é\u2028"}, ok=False, result=[1.5], error="x: y"),),
        "tools": (ChatTool(name="bash", description="d", parameters={"type": "object"}),),
        "conversation": (
            ChatMessage(role="system", content="s"),
            ChatMessage(role="assistant", tool_calls=(ChatCall(id="1", name="bash", arguments="{"),), reasoning="hm"),
            ChatMessage(role="tool", content="r", tool_call_id="1"),
        ),
        "ending": Ending.SUBMITTED, "failure": None if solved else FailureKind.MISREAD_STATE,
        "grade": AttemptGrade(reward=outcome, outcome=outcome, process=0.5, gate=1.0, checks={"c": solved},
                              criteria={"r": None}, penalties={}, detail={"deep": [{"a": None}]}),
        "turns": 3, "tokens": Tokens(prompt=9, cached=2, completion=4), "cost_usd": 0.25, "wall_s": 1.5, "model_s": 1.0,
    }  # fmt: skip
    return Attempt.model_validate(fields | changes)


def broken(task: Task, k: int) -> Attempt:
    return attempt_at(task, k, status=AttemptStatus.ENVIRONMENT_ERROR, trouble="the disk", grade=None, ending=None)


def made(path: Path, outcomes: list[Outcome], blobs: object, attempts: list[Attempt]) -> Path:
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record(build, outcomes, blobs)
        catalog.end_build(build, "done", Cost())
        catalog.record_attempts(attempts)
    return path


def test_an_attempt_comes_back_exactly_and_is_kept_once(maker, tmp_path):
    outcome = maker.outcome(1)
    solved, lost, owed = attempt_at(outcome.task), attempt_at(outcome.task, 1, solved=False), broken(outcome.task, 2)
    path = made(tmp_path / "c.duckdb", [outcome], maker.blobs, [solved, lost, owed])
    with Catalog.open(path) as catalog:
        assert list(catalog.attempts()) == [solved, lost, owed]
        assert list(catalog.attempts("success")) == [solved]
        catalog.record_attempts([attempt_at(outcome.task, 0, solved=False)])
        assert list(catalog.attempts("k = 0")) == [solved]
        catalog.record_attempts([attempt_at(outcome.task, 2)])
        assert [one.finished for one in catalog.attempts()] == [True, True, True]
        assert catalog.attempted([owed.key, "0" * 64]) == {owed.key: AttemptStatus.FINISHED}
        with pytest.raises(ConfigError, match="SQL cannot be answered"):
            list(catalog.attempts("no_such_column"))


def test_the_views_count_what_finished(maker, tmp_path):
    outcome = maker.outcome(1)
    plain = [attempt_at(outcome.task, k, solved=k < 1) for k in range(4)]
    hinted = [attempt_at(outcome.task, k, solved=k < 3, hinted=True, settings="6" * 64) for k in range(4)]
    path = made(tmp_path / "c.duckdb", [outcome], maker.blobs, [*plain, *hinted, broken(outcome.task, 9)])
    with Catalog.open(path, read_only=True) as catalog:
        rows = catalog.query(
            "SELECT hinted, n, c, pass_at_1, mean_outcome, environment_errors, completion_tokens FROM solve_rate "
            "ORDER BY hinted"
        ).rows
        assert rows == [(False, 4, 1, 0.25, 0.25, 1, 20), (True, 4, 3, 0.75, 0.75, 0, 16)]
        assert catalog.query("SELECT with_hint, without_hint, regret FROM regret").rows == [(0.75, 0.25, 0.5)]
        assert catalog.query("SELECT kind, count(*) FROM failure GROUP BY kind").rows == [("misread_state", 4)]
        checks = (
            "SELECT count(*) FROM attempt WHERE (grade ->> '$.checks.c') = 'true' AND (trace ->> '$[0].tool') = 'bash'"
        )
        assert catalog.query(checks).rows == [(4,)]


def test_attempts_go_with_their_task_and_with_what_is_played(maker, tmp_path):
    outcome, other = maker.outcome(1), maker.outcome(2)
    kept = attempt_at(other.task)
    path = made(tmp_path / "c.duckdb", [outcome, other], maker.blobs, [attempt_at(outcome.task), kept])
    reworded = outcome.task.candidate.model_copy(update={"instruction": "Otherwise."})
    anew = outcome.model_copy(
        update={
            "candidate": reworded,
            "ladder": "2" * 64,
            "task": outcome.task.model_copy(update={"candidate": reworded}),
        }
    )
    with Catalog.open(path) as catalog:
        catalog.record(1, [outcome], maker.blobs, judged_again=True)
        assert len(list(catalog.attempts())) == 2
        catalog.record(1, [anew], maker.blobs)
        assert list(catalog.attempts()) == [kept]
        catalog.remove([other.task.id])
        assert list(catalog.attempts()) == []


def test_merging_brings_attempts_of_what_is_played_here(maker, tmp_path):
    outcome, stranger = maker.outcome(1), maker.outcome(2)
    ours = made(tmp_path / "a.duckdb", [outcome], maker.blobs, [broken(outcome.task, 0), attempt_at(outcome.task, 1)])
    theirs = made(
        tmp_path / "b.duckdb", [outcome, stranger], maker.blobs,
        [attempt_at(outcome.task, 0), attempt_at(outcome.task, 1, solved=False), attempt_at(stranger.task),
         attempt_at(outcome.task, 5, played="9" * 64)],
    )  # fmt: skip
    with Catalog.open(ours) as catalog:
        for _ in range(2):
            catalog.merge(theirs)
            found = sorted((one.task, one.k, one.failure) for one in catalog.attempts())
            assert found == sorted(
                [(outcome.task.id, 0, None), (outcome.task.id, 1, None), (stranger.task.id, 0, None)]
            )
