"""Which changed tests are kept. Tests are executed in this process on the hidden text that the validator made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest

from envsynth.cache import Cache
from envsynth.judging import TRIES
from envsynth.languages.python.language import Python
from envsynth.models import (
    Candidate,
    Source,
    TestLists,
    TestRecord,
    TestRun,
    TestStatus,
    Tree,
    Verdict,
    VerdictStatus,
    Workspace,
)
from envsynth.parallel import in_order
from envsynth.runtime.controls import changed_file
from envsynth.validators.controls import MAX_NEIGHBOURS, Controls

PATH = "tests/test_new.py"
TESTS = """\
import calc

class Always:
    def __eq__(self, other): return True

def test_mean():
    assert calc.mean([]) == 0

def test_any():
    assert Always() == 3

def test_flag():
    assert not calc.mean([])
    assert calc.mean([1]) == 0

def test_truth():
    assert not calc.mean([])

def test_after_others():
    assert calc.ready == 1
"""
OLD = "".join(f"\ndef test_old_{n}():\n    assert calc.mean([]) == 0\n" for n in range(MAX_NEIGHBOURS + 5))


class Calc:
    ready = 0

    @staticmethod
    def mean(xs: Sequence[float]) -> float:
        return 0


class Lent:
    """A context that runs tests by calling them; the whole file never runs, so `ready` is never set."""

    def __init__(self, cache: Cache, trouble: str = "") -> None:
        self.blobs = cache
        self.ran: list[Sequence[str]] = []
        self._trouble = trouble

    @staticmethod
    def each(work: Callable[[int], TestRun], items: Iterable[int], source: Source) -> list[TestRun]:
        return in_order(work, items, 3)

    def language(self, name: str) -> Python:
        return Python()

    def run_tests(
        self, workspace: Workspace, tree: Tree, state: str, repeat: int, source: Source, select: Sequence[str] = ()
    ) -> TestRun:
        self.ran.append(select)
        hidden = self.blobs.get_tree(workspace.hidden)
        text = self.blobs.get(hidden.by_path[PATH].blob).decode().replace("import calc\n", "")
        space: dict[str, object] = {"calc": Calc}
        exec(compile(text, PATH, "exec"), space)
        records = []
        for key in select:
            status = TestStatus.PASSED
            try:
                space[key.partition("::")[2]]()  # type: ignore[operator]
            except AssertionError:
                status = TestStatus.FAILED
            records.append(TestRecord(key=key, id=key, status=status))
        return TestRun(state=state, repeat=repeat, complete=True, records=tuple(records), trouble=self._trouble)


@pytest.fixture
def validated(
    cache: Cache, tree: Callable[..., str], candidate: Candidate, source: Source
) -> Callable[..., tuple[Verdict, Lent]]:
    def run(
        text: str, fail_to_pass: Sequence[str], pass_to_pass: Sequence[str] = (), trouble: str = ""
    ) -> tuple[Verdict, Lent]:
        hidden = tree({PATH: text.encode()})
        changed = candidate.model_copy(
            update={"environment": candidate.environment.model_copy(update={"hidden": hidden})}
        )
        lists = TestLists(
            fail_to_pass=tuple(f"{PATH}::{name}" for name in fail_to_pass),
            pass_to_pass=tuple(f"{PATH}::{name}" for name in pass_to_pass),
        )
        measured = Verdict(validator="execution", version="1", status=VerdictStatus.PASS, tests=lists)
        lent = Lent(cache, trouble)
        return Controls().validate(changed, source, lent, (measured,)), lent  # type: ignore[arg-type]

    return run


def test_a_change_is_kept_where_the_reference_fails_it_and_passes_the_test_alone(
    validated: Callable[..., tuple[Verdict, Lent]],
) -> None:
    names = ["test_mean", "test_any", "test_flag", "test_truth", "test_after_others"]
    verdict, _ = validated(TESTS, names)
    assert verdict.status is VerdictStatus.PASS
    kinds: dict[str, set[str]] = {}
    for control in verdict.controls:
        kinds.setdefault(control.function.partition("::")[2], set()).add(control.kind)
    # No change makes a comparison with an object that is equal to everything fail.
    assert kinds.keys() == {"test_mean", "test_flag", "test_truth"}
    # A question turned round tells forged results alone: it is kept where there is nothing better.
    assert "flipped" not in kinds["test_flag"]
    assert kinds["test_truth"] == {"flipped"}
    assert verdict.strength is not None
    assert verdict.strength.controls == len(verdict.controls)
    assert verdict.strength.controlled == pytest.approx(2 / 5)
    assert verdict.evidence["covered_weakly"] == 1
    for control in verdict.controls:
        assert changed_file(TESTS.encode(), [control.document()]) != TESTS.encode()


def test_without_a_change_of_a_demanded_test_a_candidate_is_rejected(
    validated: Callable[..., tuple[Verdict, Lent]],
) -> None:
    verdict, _ = validated(TESTS, ["test_after_others"], ["test_mean"])
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, "no_controls")


def test_a_few_tests_that_passed_before_are_measured_too(validated: Callable[..., tuple[Verdict, Lent]]) -> None:
    old = [f"test_old_{n}" for n in range(MAX_NEIGHBOURS + 5)]
    verdict, lent = validated(TESTS + OLD, ["test_mean"], old)
    assert len({control.function for control in verdict.controls}) == 1 + MAX_NEIGHBOURS
    assert verdict.strength is not None
    assert verdict.strength.controlled == 1.0
    assert all(set(ran) == set(lent.ran[0]) for ran in lent.ran)


def test_trouble_of_the_environment_says_nothing(validated: Callable[..., tuple[Verdict, Lent]]) -> None:
    verdict, lent = validated(TESTS, ["test_mean"], trouble="no sandbox")
    assert (verdict.status, len(lent.ran)) == (VerdictStatus.ERROR, TRIES)
