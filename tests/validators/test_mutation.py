from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import variants_bench as bench

from envsynth.cache import Cache
from envsynth.errors import SandboxError
from envsynth.models import Candidate, Cost, Source, Variant, VariantFile, Verdict, VerdictStatus
from envsynth.validators.mutation import MIN_TEST_S, PARTS, Mutation, limited, spread

BEFORE = "def clamp(x, low, high):\n    result = x\n    result = min(result, high)\n    return result\n"
AFTER = '''def clamp(x, low, high):
    """Between both."""
    result = x
    if low > high:
        raise ValueError("low is above high")
    result = min(result, high)
    return max(low, result)
'''


def low(names: dict[str, Any], _: str) -> None:
    assert names["clamp"](-3, 0, 9) == 0


def high(names: dict[str, Any], _: str) -> None:
    assert names["clamp"](12, 0, 9) == 9


def order(names: dict[str, Any], _: str) -> None:
    assert names["clamp"](1, 1, 1) == 1
    try:
        names["clamp"](1, 9, 0)
    except ValueError:
        return
    raise AssertionError


def exists(names: dict[str, Any], _: str) -> None:
    assert callable(names["clamp"])


Judge = Callable[..., tuple[Verdict, bench.Bench]]


@pytest.fixture
def judge(candidate: Candidate, tree: Callable[..., str], cache: Cache, source: Source) -> Judge:
    def run(
        fail: dict[str, bench.Test], keep: dict[str, bench.Test], after: str = AFTER, threads: int = 1
    ) -> tuple[Verdict, bench.Bench]:
        context = bench.Bench(cache, {**fail, **keep})
        context.threads = threads
        proposed = bench.with_texts(candidate, tree, BEFORE, after)
        return Mutation().validate(proposed, source, context, (bench.measured(tuple(fail), tuple(keep)),)), context

    return run


def test_tests_that_look_at_everything_kill_every_mutant(judge: Judge) -> None:
    verdict, context = judge({"low": low}, {"high": high, "order": order})
    assert verdict.status is VerdictStatus.PASS
    assert verdict.findings == ()
    strength = verdict.strength
    assert strength is not None
    assert strength.kill_rate == 1
    assert strength.mutants is not None
    assert strength.mutants >= 5
    assert strength.equivalents == 1  # the docstring left out
    assert verdict.evidence["killed_by"]["pass_to_pass"] >= 1  # type: ignore[index,call-overload,operator]
    whole = [state for state, select in context.states if not select]
    assert 0 < len(whole) < strength.mutants, "only what the fail-to-pass tests let through runs whole"


def test_killed_mutants_of_different_kinds_are_shipped_as_edits(judge: Judge) -> None:
    verdict, _ = judge({"low": low, "order": order}, {"high": high})
    assert [one.outcome for one in verdict.panel] == [0, 0]
    assert len({one.label.split(":")[1] for one in verdict.panel}) == 2
    for one in verdict.panel:
        assert one.label.startswith("mutant:")
        assert one.calls[-1].tool == "submit"
        assert "edit_file" in {call.tool for call in one.calls}


def test_what_the_tests_do_not_notice_is_listed_parts_first(judge: Judge) -> None:
    verdict, _ = judge({"low": low}, {"high": high})
    assert verdict.strength is not None
    assert 0 < verdict.strength.killed < verdict.strength.mutants  # type: ignore[operator]
    survived = [finding for finding in verdict.findings if finding.rule != "weak_tests"]
    assert survived[0].rule == "part_survived"
    assert survived[0].where == "calc.py:4"
    assert {finding.rule for finding in survived[1:]} == {"mutant_survived"}
    assert any("low > high" in finding.message for finding in survived)


def test_tests_that_notice_next_to_nothing_fail_the_candidate(judge: Judge) -> None:
    verdict, _ = judge({"exists": exists}, {})
    assert verdict.status is VerdictStatus.FAIL
    assert verdict.reason == "weak_tests"
    assert verdict.panel == ()


def test_a_test_that_fails_alone_with_the_reference_kills_nothing(judge: Judge) -> None:
    def never(names: dict[str, Any], text: str) -> None:
        raise AssertionError

    verdict, context = judge({"never": never, "exists": exists}, {})
    alone = {select for _, select in context.states[1:] if select}
    assert alone == {("exists",)}
    assert verdict.evidence["killed_by"].get("fail_to_pass", 0) == verdict.strength.killed  # type: ignore[union-attr]


def test_nothing_to_change_is_no_measurement(judge: Judge) -> None:
    verdict, _ = judge({"low": low}, {}, "# only a comment\n" + BEFORE)
    assert (verdict.status, verdict.reason) == (VerdictStatus.SKIP, "no_mutants")
    assert verdict.strength is not None
    assert verdict.strength.kill_rate is None


def test_an_environment_that_fails_is_no_kill(
    candidate: Candidate, tree: Callable[..., str], cache: Cache, source: Source
) -> None:
    context = bench.Bench(cache, {"low": low, "order": order, "high": high})
    proposed = bench.with_texts(candidate, tree, BEFORE, AFTER)
    earlier = (bench.measured(("low", "order"), ("high",)),)
    context.troubles = 2
    verdict = Mutation().validate(proposed, source, context, earlier)
    assert verdict.strength is not None
    assert verdict.strength.kill_rate == 1
    context.troubles = 3
    with pytest.raises(SandboxError, match="the tests could not be run"):
        Mutation().validate(proposed, source, context, earlier)


def test_time_limits_follow_the_reference_and_never_exceed_the_task(candidate: Candidate) -> None:
    command = candidate.environment.command
    quick, slow = (limited(candidate.environment, wall).command for wall in (0.1, 1_000.0))
    assert MIN_TEST_S <= quick.test_timeout_s < command.test_timeout_s
    assert quick.timeout_s < command.timeout_s
    assert (slow.test_timeout_s, slow.timeout_s) == (command.test_timeout_s, command.timeout_s)
    assert limited(candidate.environment, 1.1) == limited(candidate.environment, 1.9)


def variants(**counts: int) -> list[Variant]:
    return [
        Variant(name=f"{kind}:{number}", kind=kind, path="a.py", line=number + 1, description="",
                files=(VariantFile(path="a.py", text=f"{kind}{number}"),))
        for kind, count in counts.items() for number in range(count)
    ]  # fmt: skip


def test_few_are_spread_over_kinds_and_places() -> None:
    chosen = spread(variants(hunk_drop=40, function_revert=10, swap_boolean=30, change_constant=1, skip_branch=3), 20)
    assert len(chosen) == len(set(chosen)) == 20
    parts = [one for one in chosen if one.kind in PARTS]
    assert len(parts) == 10
    assert {one.kind for one in parts} == {"hunk_drop", "function_revert"}
    counts = {
        kind: sum(one.kind == kind for one in chosen) for kind in ("swap_boolean", "change_constant", "skip_branch")
    }
    assert counts == {"swap_boolean": 6, "change_constant": 1, "skip_branch": 3}
    assert len({one.line for one in chosen if one.kind == "swap_boolean"}) == 6


def test_room_that_one_sort_leaves_goes_to_the_other() -> None:
    assert len(spread(variants(hunk_drop=40, swap_boolean=2), 20)) == 20
    assert len(spread(variants(hunk_drop=2, swap_boolean=40), 20)) == 20
    assert len(spread(variants(hunk_drop=2, swap_boolean=3), 20)) == 5
    assert spread([], 20) == []


def test_how_many_mutants_run_at_once_changes_nothing(judge: Judge) -> None:
    verdicts = [
        judge({"low": low}, {"exists": exists}, threads=threads)[0].model_copy(update={"cost": Cost()})
        for threads in (1, 4)
    ]
    assert verdicts[0] == verdicts[1]
    assert any(finding.rule == "mutant_survived" for finding in verdicts[0].findings)
