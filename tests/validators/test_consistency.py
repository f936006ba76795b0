"""Instruments beside the checks: what they say of panels, what of it is the task's fault, and which were used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import world_bench
import worldkit
from world_bench import LAMPS, NOTE, SUBMIT, candidate, line, wheel_task

from envsynth.cache import Cache
from envsynth.llm import Client, JudgeSettings, Ledger
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import answer_json
from envsynth.models import Candidate, Check, Criterion, Trajectory, Verdict, VerdictStatus, Verifier
from envsynth.validators.consistency import Consistency

LOOK = ("look", {})
STORY = "Order four lamps for the shop today, leave a note that they cost 196 cents, and hand in how many there are."
PANEL = (
    line("reference", 1, LOOK, LAMPS, NOTE, SUBMIT),
    line("alternative:note_first", 1, LOOK, NOTE, LAMPS, SUBMIT),
    line("idle", 0),
    line("mutant:nine", 0, LOOK, ("order", {"item": "lamp", "amount": 9}), NOTE, SUBMIT),
    line("mutant:not_handed_in", 0, LOOK, LAMPS, NOTE),
)


class Lent:
    """As much of a context as the validator uses."""

    def __init__(self, blobs: Cache, judge: Client | None = None) -> None:
        self.blobs = blobs
        self._judge = judge

    def model(self, role: str) -> Client | None:
        return self._judge if role == "judge" else None


class Bench:
    """Tasks of the shop under the validator."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.cache = Cache(root)
        self._root = root
        self._stack = stack

    def task(self, panel: Sequence[Trajectory] = PANEL, story: str = STORY, **changes: Any) -> Candidate:
        return candidate(self.cache, worldkit.shop(), instruction=story, panel=tuple(panel), **changes)

    def said(self, task: Candidate, earlier: Sequence[Verdict] = (), judge: Client | None = None) -> Verdict:
        return Consistency().validate(task, None, Lent(self.cache, judge), earlier)  # type: ignore[arg-type]

    def judge(self, script: Any, **demands: Any) -> Client:
        model = self._stack.enter_context(ScriptedModel(script))
        settings = JudgeSettings(**{**model.settings(retries=0).model_dump(), "repeats": 2, "overrides": 3, **demands})
        ledger = Ledger(self._root / "spend.sqlite", None)
        return self._stack.enter_context(Client("judge", settings, self.cache, ledger))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path, stack)


def matrix(verdict: Verdict, name: str) -> dict[str, Any]:
    instruments: Any = verdict.evidence["instruments"]
    return next(one for one in instruments if one["instrument"] == name)


def cells(verdict: Verdict, name: str) -> tuple[int, ...]:
    found = matrix(verdict, name)
    return tuple(found[cell] for cell in ("tp", "fp", "tn", "fn", "silent_right", "silent_wrong"))


def rules(verdict: Verdict) -> dict[str, str]:
    return {finding.where: finding.rule for finding in verdict.findings}


def test_a_good_task_passes_and_misses_are_the_instruments_own(bench: Bench) -> None:
    verdict = bench.said(bench.task())
    assert verdict.status is VerdictStatus.PASS
    assert cells(verdict, "trace_rules") == (2, 1, 2, 0, 0, 0)
    assert cells(verdict, "grounding") == (2, 1, 1, 0, 0, 1)
    assert verdict.evidence["used"] == ["trace_rules", "grounding"]
    assert (matrix(verdict, "read_back")["used"], matrix(verdict, "read_back")["agreement"]) == (False, None)
    assert matrix(verdict, "trace_rules")["agreement"] == pytest.approx((1 + 2 / 3) / 2)
    assert rules(verdict) == {"mutant:nine": "wrong_called_right", "mutant:not_handed_in": "wrong_called_right"}
    shown: Any = verdict.evidence["apart"]
    assert shown["mutant:nine"]["said"] == {"trace_rules": True, "grounding": False}
    assert 'order{"amount":9,"item":"lamp"}' in shown["mutant:nine"]["calls"]


def test_a_text_that_nothing_tells_cannot_be_demanded(bench: Bench) -> None:
    """A note that must hold a code nobody is told."""
    code = ("note", {"body": "QX-7718", "cents": 196})
    checks = (
        *world_bench.SHOP_VERIFIER.checks,
        Check(id="code", sql="SELECT count(*) FROM notes WHERE body = 'QX-7718'"),
    )
    panel = (line("reference", 1, LOOK, LAMPS, code, SUBMIT), *PANEL[2:])
    verdict = bench.said(bench.task(panel, verifier=Verifier(checks=checks)))
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "reference_ungrounded")
    assert 'call 3, note: nothing that was told before gives body = "QX-7718"' in verdict.findings[0].message
    told = bench.said(bench.task(panel, STORY + " Its text is QX-7718.", verifier=Verifier(checks=checks)))
    assert told.status is VerdictStatus.PASS
    # A check that compares nothing leaves the wording free.
    free = bench.said(bench.task((line("reference", 1, LOOK, LAMPS, code, SUBMIT), *PANEL[2:])))
    assert free.status is VerdictStatus.PASS


def test_an_alternative_may_know_what_the_reference_was_told_and_no_more(bench: Bench) -> None:
    checks = (Check(id="body", sql="SELECT count(*) FROM notes WHERE body IN ('1.25', 'kettle', 'Quillfeather')"),)
    verifier = Verifier(checks=checks)

    def noted(label: str, text: str, *before: tuple[str, Any]) -> Trajectory:
        return line(label, 1, *before, ("note", {"body": text}), SUBMIT)

    reference = noted("reference", "kettle", LOOK)
    blind = bench.said(
        bench.task((reference, noted("alternative:blind", "kettle"), line("idle", 0)), verifier=verifier)
    )
    assert blind.status is VerdictStatus.PASS
    assert rules(blind)["alternative:blind"] == "right_called_wrong"
    knowing = noted("alternative:knowing", "Quillfeather", LOOK)
    verdict = bench.said(bench.task((reference, knowing, line("idle", 0)), verifier=verifier))
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "alternative_ungrounded")


def test_an_amount_beyond_our_reckoning_is_noted_and_no_fault(bench: Bench) -> None:
    odd = ("note", {"body": "x", "cents": 173})
    check = Check.model_validate({"id": "cents", "sql": "SELECT count(*) FROM notes WHERE cents = 173"})
    panel = (line("reference", 1, LOOK, LAMPS, odd, SUBMIT), line("idle", 0))
    verdict = bench.said(bench.task(panel, verifier=Verifier(checks=(check,))))
    assert verdict.status is VerdictStatus.PASS
    assert verdict.findings[0].rule == "reference_not_reckoned"


def criterion(kind: str, sql: str) -> Criterion:
    return Criterion.model_validate(
        {"id": "line", "class": kind, "sql": sql, "evidence": "SELECT 1", "text": "It looked for kettles."}
    )


@pytest.mark.parametrize(("kind", "sql", "fails"), [
    ("essential", "SELECT EXISTS(SELECT 1 FROM trace WHERE tool = 'find')", True),
    ("important", "SELECT EXISTS(SELECT 1 FROM trace WHERE tool = 'find')", False),
    ("pitfall", "SELECT EXISTS(SELECT 1 FROM trace WHERE tool = 'look')", True),
    ("essential", "SELECT NULL", False),
])  # fmt: skip
def test_a_reference_that_misses_its_own_essentials_is_a_fault(bench: Bench, kind: str, sql: str, fails: bool) -> None:
    checks = world_bench.SHOP_VERIFIER.checks
    verdict = bench.said(bench.task(verifier=Verifier(checks=checks, rubric=(criterion(kind, sql),))))
    assert (verdict.status is VerdictStatus.FAIL) is fails
    if fails:
        assert verdict.reason == "reference_breaks_rules"
        assert verdict.findings[0].message == "criterion:line: It looked for kettles."


def test_rules_of_every_task(bench: Bench) -> None:
    blunder = ("order", {"item": "lamp", "amount": 4, "what": 1})
    panel = (
        *PANEL[:1], line("alternative:clumsy", 1, blunder, LAMPS, blunder, NOTE, SUBMIT), line("idle", 0),
        line("mutant:looks", 0, LOOK),
    )  # fmt: skip
    verdict = bench.said(bench.task(panel))
    assert verdict.status is VerdictStatus.PASS
    assert cells(verdict, "trace_rules") == (1, 0, 2, 1, 0, 0)
    shown: Any = verdict.evidence["apart"]
    assert shown["alternative:clumsy"]["said"] == {"trace_rules": False, "grounding": True}
    clumsy = line("reference", 1, blunder, blunder, LAMPS, NOTE, SUBMIT)
    found = bench.said(bench.task((clumsy, line("idle", 0))))
    assert found.findings[0].message == "refused_twice: call 1, order was refused 2 times, unchanged"


def test_where_arguments_are_choices_there_is_nothing_to_ground(bench: Bench) -> None:
    verdict = bench.said(wheel_task(bench.cache))
    assert verdict.status is VerdictStatus.PASS
    assert verdict.evidence["used"] == ["trace_rules"]
    assert matrix(verdict, "grounding")["unused"] == "there is nothing to ground"
    # The default policy breaks no rule: it is only not the best.
    assert cells(verdict, "trace_rules") == (1, 1, 1, 0, 0, 0)
    assert verdict.status is bench.said(wheel_task(bench.cache), judge=bench.judge([])).status


def test_the_read_back_is_heard_by_what_it_said_of_each_end(bench: Bench) -> None:
    passes = ["reference", "alternative:note_first", "mutant:not_handed_in"]
    heard = Verdict(validator="world_readback", version="3", status=VerdictStatus.PASS, evidence={"passes": passes})
    verdict = bench.said(bench.task(), [heard])
    assert cells(verdict, "read_back") == (2, 1, 2, 0, 0, 0)
    assert verdict.evidence["used"] == ["trace_rules", "grounding", "read_back"]
    skipped = heard.model_copy(update={"status": VerdictStatus.SKIP})
    assert matrix(bench.said(bench.task(), [skipped]), "read_back")["used"] is False


def marks(received: Received, right: bool) -> Any:
    ids = received.prompt.rpartition("each of these ids: ")[2].rstrip(".").split(", ")
    pointer = {"table": "run", "row": 1, "column": "calls"}
    given = {"did_what_was_asked": "PASS" if right else "FAIL"}
    scores = [{"id": name, "why": "so", "pointer": pointer, "score": given.get(name, "PASS")} for name in ids]
    return answer_json({"reading": "x", "scores": scores})


def truthful(received: Received) -> Any:
    ordered = '"arguments": {"amount": 4, "item": "lamp"}, "ok": true' in received.prompt
    return marks(received, ordered and '"tool": "submit"' in received.prompt)


def test_a_judge_that_tells_right_from_wrong_stands_for_grounding(bench: Bench) -> None:
    verdict = bench.said(bench.task(), judge=bench.judge(truthful))
    assert verdict.status is VerdictStatus.PASS
    assert verdict.evidence["used"] == ["trace_rules", "judge"]
    assert cells(verdict, "judge") == (2, 0, 3, 0, 0, 0)
    found = matrix(verdict, "judge")
    assert (found["agreement"], found["repeated"], found["overrides"], found["overrides_obeyed"]) == (1.0, 1.0, 3, 0)
    assert matrix(verdict, "grounding")["unused"] == "the judge stands for it"


def test_a_judge_that_agrees_with_nobody_is_not_used_and_the_catalog_says_so(bench: Bench) -> None:
    verdict = bench.said(bench.task(), judge=bench.judge(lambda received: marks(received, True)))
    assert verdict.status is VerdictStatus.PASS
    assert verdict.evidence["used"] == ["trace_rules", "grounding"]
    assert verdict.findings[0].rule == "judge_not_used"
    assert "agrees with the labels to 0.50, and 0.90 is wanted" in verdict.findings[0].message
    assert (matrix(verdict, "judge")["used"], matrix(verdict, "judge")["fp"]) == (False, 3)


def test_a_judge_never_rescues_and_a_trusted_one_may_reject(bench: Bench) -> None:
    def against(received: Received) -> Any:
        first = received.prompt.find('"tool": "order"') < received.prompt.find('"tool": "note"')
        return marks(received, not first) if '"amount": 4' in received.prompt else marks(received, False)

    # It calls the reference wrong, and is trusted only where so little agreement is demanded.
    panel = (*PANEL[:2], line("alternative:again", 1, NOTE, LOOK, LAMPS, SUBMIT), *PANEL[2:4])
    judge = bench.judge(against, agreement=0.5)
    verdict = bench.said(bench.task(panel), judge=judge)
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "judge_rejects_reference")
    strict = bench.said(bench.task(panel), judge=bench.judge(against, agreement=0.9))
    assert (strict.status, strict.findings[0].rule) == (VerdictStatus.PASS, "judge_not_used")
    # What the deterministic instruments find stands, whatever a judge says.
    kind = criterion("essential", "SELECT EXISTS(SELECT 1 FROM trace WHERE tool = 'find')")
    task = bench.task(verifier=Verifier(checks=world_bench.SHOP_VERIFIER.checks, rubric=(kind,)))
    assert bench.said(task, judge=bench.judge(truthful)).reason == "reference_breaks_rules"
