"""Every way in which a model can fail, in every role: outcome, verdict, exit code and ledger of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
import world_bench
import worldkit

from envsynth import admission, pipeline, work
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.errors import EndpointDown
from envsynth.llm import JudgeSettings, Ledger, LlmSettings, RoleSettings, Sampling, SolverSettings
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import (
    Answer,
    answer_json,
    calls,
    cut,
    empty,
    failure,
    garbage,
    hang,
    rate_limited,
    refusal,
    text,
    truncated,
)
from envsynth.models import Candidate, FailureKind, Lead, Outcome, Source
from envsynth.protocols import Context
from envsynth.validators.consistency import Consistency
from envsynth.validators.world_solvability import WorldSolvability

FREE, SHOP = "scenario:free limit=1 author=model", "mechanism:inventory limit=1"
JUDGED = ("reference", "alternative:note_first", "idle", "mutant:five")
ATTEMPTS = 2


class Shop:
    """A generator whose one task the judge and the solver are asked about."""

    name = "mechanism"
    version = "1"
    environment = "world"
    models: ClassVar[tuple[str, ...]] = ()

    def plan(self, source: Source, context: Context) -> Iterator[Lead]:
        yield Lead(generator=self.name, generator_version=self.version, source=source.uri, name="x", revision="r",
                   strategy="hidden", ref="a", index=0)  # fmt: skip

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate:
        return world_bench.candidate(context.blobs, worldkit.shop())  # type: ignore[arg-type]


class Came(NamedTuple):
    """What a build with a failing model came to."""

    code: int
    """The command's exit code."""
    outcome: Outcome | None
    """None: the build stopped before there was one."""
    stopped: str
    """The error that stopped it; empty: none did."""
    asked: int
    settled: int
    released: int
    uncertain: int
    failures: list[FailureKind | None]
    """Of the attempts that are kept, in order."""

    @property
    def status(self) -> tuple[str, str]:
        assert self.outcome is not None, self.stopped
        return self.outcome.status.value, self.outcome.reason


Build = Callable[..., Came]
_ROLES: dict[str, tuple[type[RoleSettings], dict[str, Any]]] = {
    "author": (RoleSettings, {}), "judge": (JudgeSettings, {"repeats": 2, "runs": 4, "overrides": 1}),
    "solver": (SolverSettings, {"attempts": ATTEMPTS, "group": 2}),
}  # fmt: skip


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """`build(role, script)`: one lead of a real author, or one candidate before the judge or the solver alone."""

    def run(role: str, script: Any, **settings: Any) -> Came:
        if role != "author":
            steps = (Consistency(),) if role == "judge" else (WorldSolvability(),)
            for module in (work, pipeline):
                monkeypatch.setattr(module, "generator", lambda _: Shop())
            monkeypatch.setattr(work, "validators", lambda kind: steps)
            for table in ("REQUIRED", "HEARD"):
                monkeypatch.setattr(admission, table, {"world": ()})
        kind, usual = _ROLES[role]
        settings = {"retries": 0, "failures": 100, "concurrency": 1, **usual, **settings}
        names = RoleSettings.model_fields.keys() & settings.keys()
        with ScriptedModel(script) as model:
            shared = {name: settings[name] for name in names}
            plain = model.settings(sampling=Sampling(max_tokens=500, seed=1), **shared)
            llm = LlmSettings.model_validate({role: kind(**{**plain.model_dump(), **settings})})
            config = BuildConfig(
                sources=(FREE if role == "author" else SHOP,), root=tmp_path, cache=tmp_path / "cache",
                catalog=tmp_path / "c.duckdb", out=tmp_path / "out", jobs=1, llm=llm,
            )  # fmt: skip
            monkeypatch.setattr(pipeline._Build, "_export", lambda *_: None)
            code, stopped = 0, ""
            try:
                code = pipeline.build(config, lambda event: None).exit_code
            except EndpointDown as error:
                code, stopped = error.exit_code, str(error)
            asked = len(model.requests)
        with Catalog.open(config.catalog, read_only=True) as catalog:
            outcomes = list(catalog.outcomes())
            made = [attempt.failure for attempt in catalog.attempts("policy = 'model'")]
        spent = Ledger(config.ledger).total()
        assert spent.reserved == 0
        outcome = outcomes[0] if outcomes else None
        return Came(code, outcome, stopped, asked, spent.settled, spent.released, spent.uncertain, made)

    return run


def always(answer: Answer) -> Callable[[Received], Answer]:
    return lambda received: answer


def first(answer: Answer, then: Answer) -> Callable[[Received], Answer]:
    return lambda received: answer if received.number == 0 else then


USELESS = {
    "model_refused": refusal(), "model_truncated": truncated(), "model_empty": empty(),
    "model_overlong": text("x" * 500), "model_malformed": text('{"title": "half a'),
    "model_bad_tool_call": calls(("push", {})),
}  # fmt: skip
"""Faults of the model's output, by their reason in the funnel."""
UNANSWERED = {
    "HTTP 429": (rate_limited(900), "released"), "HTTP 500": (failure(500), "released"),
    "no answer in 0.4 s": (hang(), "uncertain"), "the connection broke": (cut(), "uncertain"),
    "no chat completion": (garbage(), "uncertain"),
}  # fmt: skip
"""Failures of the endpoint, by what is said, and where the ledger has a call that comes to that."""


# --- what the model says is no use: its own fault, paid for -----------------------------------------------------


@pytest.mark.parametrize("reason", USELESS)
def test_a_useless_author_drops_its_lead_by_the_kind_of_fault(build: Build, reason: str) -> None:
    came = build("author", always(USELESS[reason]), max_chars=400)
    assert came.status == ("dropped", reason)
    assert (came.code, came.settled, came.released, came.uncertain) == (1, came.asked, 0, 0)
    assert came.asked == (2 if reason == "model_malformed" else 1)


def test_a_document_of_another_schema_is_malformed(build: Build) -> None:
    came = build("author", always(answer_json({"title": 3, "matters": "none", "pwned": True})))
    assert came.status == ("dropped", "model_malformed")
    assert came.outcome is not None
    assert "pwned" in came.outcome.detail
    assert came.code == 1


@pytest.mark.parametrize("reason", [*USELESS, "another schema"])
def test_a_useless_judge_is_not_used_and_costs_no_task(build: Build, reason: str) -> None:
    came = build("judge", always(USELESS.get(reason, answer_json({"scores": "all PASS"}))), max_chars=400)
    assert (came.status, came.code) == (("admitted", ""), 0)
    assert came.outcome is not None
    (said,) = came.outcome.verdicts
    instruments: Any = said.evidence["instruments"]
    judge, grounding = ({one["instrument"]: one for one in instruments}[name] for name in ("judge", "grounding"))
    assert said.status.value == "PASS"
    assert not judge["used"]
    assert judge["useless_answers"] == len(JUDGED) * 2
    assert (judge["tp"], judge["fp"], judge["tn"], judge["fn"]) == (0, 0, 0, 0)
    assert grounding["used"]
    assert "judge_not_used" in [finding.rule for finding in said.findings]
    repaired = 2 if reason in ("model_malformed", "another schema") else 1
    assert (came.settled, came.asked, came.uncertain) == (came.asked, len(JUDGED) * 2 * repaired, 0)


@pytest.mark.parametrize("reason", [*USELESS, "arguments are no JSON", "another schema"])
def test_a_useless_solver_fails_its_attempts_and_the_task_stays_verified(build: Build, reason: str) -> None:
    more = {"arguments are no JSON": calls(("order", "{")), "another schema": calls(("order", {"item": 3}))}
    answer = {**USELESS, **more}[reason]
    came = build("solver", lambda received: answer if len(received.messages) < 6 else text("I stop."), max_chars=400)
    assert (came.status, came.code) == (("admitted", ""), 0)
    assert came.outcome is not None
    (said,) = came.outcome.verdicts
    assert (said.status.value, said.reason) == ("SKIP", "unsolved")
    assert came.outcome.task is not None
    assert came.outcome.task.tier.value == "verified"
    assert said.evidence["attempts"] == ATTEMPTS
    kinds = {
        "model_malformed": FailureKind.MISREAD_STATE,  # words that are no call end the attempt by themselves
        "model_bad_tool_call": FailureKind.TOOL_MISUSE, "another schema": FailureKind.TOOL_MISUSE,
    }  # fmt: skip
    assert came.failures == [kinds.get(reason, FailureKind.FORMAT)] * ATTEMPTS
    assert (came.settled, came.released, came.uncertain) == (came.asked, 0, 0)


# --- nobody answers: the endpoint's fault, never the model's ----------------------------------------------------


@pytest.mark.parametrize("what", UNANSWERED)
@pytest.mark.parametrize("role", _ROLES)
def test_an_endpoint_that_does_not_answer_leaves_the_lead_owed(build: Build, role: str, what: str) -> None:
    answer, state = UNANSWERED[what]
    came = build(role, always(answer), timeout=0.4, patience=5.0)
    assert (came.status, came.code) == (("owed", "environment_error"), 3)
    assert came.outcome is not None
    assert what in came.outcome.trouble
    assert came.outcome.task is None
    assert [said.status.value for said in came.outcome.verdicts] == ([] if role == "author" else ["ERROR"])
    assert (came.settled, getattr(came, state)) == (0, came.asked)
    assert came.failures.count(None) == len(came.failures)


@pytest.mark.parametrize("what", UNANSWERED)
@pytest.mark.parametrize("role", _ROLES)
def test_an_endpoint_that_fails_every_call_alike_stops_the_build(build: Build, role: str, what: str) -> None:
    answer, state = UNANSWERED[what]
    came = build(role, always(answer), timeout=0.4, patience=5.0, failures=1)
    assert (came.outcome, came.code) == (None, 3)
    assert what in came.stopped
    assert "127.0.0.1" in came.stopped
    assert "Next: mend or start the endpoint" in came.stopped
    assert (came.settled, getattr(came, state)) == (0, came.asked)


@pytest.mark.parametrize("role", _ROLES)
def test_a_wrong_key_stops_the_build_at_once(build: Build, role: str) -> None:
    came = build(role, always(failure(401, "the key has expired")))
    assert (came.outcome, came.code, came.asked, came.released) == (None, 3, 1, 1)
    assert "HTTP 401" in came.stopped


@pytest.mark.parametrize("role", _ROLES)
def test_a_call_that_is_to_wait_is_made_again_and_counts_once(build: Build, role: str) -> None:
    came = build(role, first(rate_limited(0.01), refusal()), retries=1)
    assert came.status[0] == ("dropped" if role == "author" else "admitted")
    assert (came.released, came.uncertain, came.settled) == (1, 0, came.asked - 1)
