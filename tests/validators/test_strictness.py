from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import variants_bench as bench

from envsynth.cache import Cache
from envsynth.errors import SandboxError
from envsynth.models import Candidate, Cost, Source, Variant, VariantFile, Verdict, VerdictStatus
from envsynth.validators.strictness import MAX_GROUPS, MAX_REWRITES, REJECTIONS, Strictness, each_kind_first, together

BEFORE = "def mean(xs):\n    return sum(xs) / len(xs)\n"
AFTER = """def mean(xs):
    count = len(xs)
    if count == 0:
        return 0
    return sum(xs) / count
"""


def right(names: dict[str, Any], _: str) -> None:
    assert names["mean"]([]) == 0
    assert names["mean"]([1, 2]) == 1.5


def spelled(names: dict[str, Any], text: str) -> None:
    assert "if count == 0" in text
    right(names, text)


Judge = Callable[..., tuple[Verdict, bench.Bench]]


@pytest.fixture
def judge(candidate: Candidate, tree: Callable[..., str], cache: Cache, source: Source) -> Judge:
    def run(*tests: bench.Test, after: str = AFTER, troubles: int = 0, threads: int = 1) -> tuple[Verdict, bench.Bench]:
        named = {test.__name__: test for test in tests}
        context = bench.Bench(cache, named)
        context.troubles, context.threads = troubles, threads
        proposed = bench.with_texts(candidate, tree, BEFORE, after)
        return Strictness().validate(proposed, source, context, (bench.measured(tuple(named)),)), context

    return run


def test_rewrites_pass_together_and_one_is_shipped(judge: Judge) -> None:
    more = "\n\ndef sign(x):\n    if x < 0:\n        return -1\n    return 1 if x else 0\n"
    verdict, context = judge(right, after=AFTER + more)
    assert verdict.status is VerdictStatus.PASS
    assert verdict.strength is not None
    assert verdict.strength.rewrites is not None
    assert verdict.strength.rewrites > len(context.states), "some ran together"
    assert verdict.strength.false_reject_rate == 0
    (alternative,) = verdict.panel
    assert alternative.label.startswith("alternative:")
    assert alternative.outcome == 1
    assert [call.tool for call in alternative.calls][-1] == "submit"


def test_a_test_of_the_spelling_rejects_just_the_rewrites_that_change_it(judge: Judge) -> None:
    verdict, context = judge(spelled)
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "over_strict")
    assert verdict.strength is not None
    assert 0 < verdict.strength.rewrites_rejected < verdict.strength.rewrites  # type: ignore[operator]
    said = verdict.evidence["rewrites"]
    assert isinstance(said, dict)
    assert said["rename_locals:calc.py:1"] == "rejected"
    assert "accepted" in said.values()
    assert all("rejected by spelled" in finding.message for finding in verdict.findings[1:])
    assert len(verdict.findings) == 1 + verdict.strength.rewrites_rejected  # type: ignore[operator]
    alone = [state for state, _ in context.states if state == "rewrite:rename_locals:calc.py:1"]
    assert len(alone) == REJECTIONS
    assert verdict.panel == ()


def test_a_flicker_is_not_over_strictness(judge: Judge) -> None:
    calls = 0

    def flickers(names: dict[str, Any], text: str) -> None:
        nonlocal calls
        calls += 1
        assert calls != 1
        right(names, text)

    verdict, _ = judge(flickers)
    assert verdict.status is VerdictStatus.PASS
    assert verdict.evidence["flickered"] == 1


def test_nothing_to_rewrite_is_no_measurement(judge: Judge) -> None:
    verdict, _ = judge(right, after="mean = None\n")
    assert (verdict.status, verdict.reason) == (VerdictStatus.SKIP, "no_rewrites")


def test_an_environment_that_fails_rejects_nothing(judge: Judge) -> None:
    verdict, _ = judge(right, troubles=2)
    assert verdict.status is VerdictStatus.PASS
    with pytest.raises(SandboxError, match="the tests could not be run"):
        judge(right, troubles=3)


def variant(kind: str, text: str, path: str = "a") -> Variant:
    return Variant(
        name=f"{kind}:{len(text)}",
        kind=kind,
        path=path,
        line=1,
        description="",
        files=(VariantFile(path=path, text=text),),
    )


def test_variants_that_touch_the_same_lines_run_apart() -> None:
    base = {"a": "1\n2\n3\n4\n", "b": "1\n"}
    one, same, far, other = (
        variant("x", "one\n2\n3\n4\n"), variant("x", "uno\n2\n3\n4\n"), variant("x", "1\n2\n3\nfour\n"),
        variant("x", "one\n", "b"),
    )  # fmt: skip
    groups = together([one, same, far, other], base)
    assert [group for group, _ in groups] == [[one, far, other], [same]]
    assert {file.path: file.text for file in groups[0][1]} == {"a": "one\n2\n3\nfour\n", "b": "one\n"}


def test_every_kind_comes_before_a_second_of_any() -> None:
    several = [variant("x", "1"), variant("x", "22"), variant("y", "3"), variant("z", "4")]
    assert [one.files[0].text for one in each_kind_first(several)] == ["1", "3", "4", "22"]


def test_a_rewrite_that_needs_a_run_too_many_is_left_out() -> None:
    lines = [f"{number}\n" for number in range(30)]
    base = {"a": "".join(lines)}
    clashing = [variant(f"k{number}", f"new {number}\n" + "".join(lines[1:])) for number in range(5)]
    apart = [variant("z", "".join([*lines[:at], "new\n", *lines[at + 1 :]])) for at in range(3, 27, 3)]
    groups = together([*clashing, *apart], base)
    assert len(groups) == MAX_GROUPS
    assert sum(len(group) for group, _ in groups) == MAX_REWRITES
    assert [group[0] for group, _ in groups] == clashing[:MAX_GROUPS]


def test_how_many_groups_run_at_once_changes_nothing(judge: Judge) -> None:
    verdicts = [judge(spelled, threads=threads)[0].model_copy(update={"cost": Cost()}) for threads in (1, 3)]
    assert verdicts[0] == verdicts[1]
    assert verdicts[0].status is VerdictStatus.FAIL
