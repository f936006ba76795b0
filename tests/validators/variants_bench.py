"""A module with tests that run in this process: what the validators of variants are tried on without a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from envsynth.cache import Cache
from envsynth.languages.python import Python
from envsynth.models import (
    Candidate,
    Cost,
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

Test = Callable[[dict[str, Any], str], None]


class Bench:
    """A context whose runs call Python functions; only what the validators of variants use."""

    def __init__(self, cache: Cache, tests: dict[str, Test]) -> None:
        self.blobs = cache
        self.cache_dir = Path(cache.root)
        self.tests = tests
        self.states: list[tuple[str, tuple[str, ...]]] = []
        self.troubles = 0
        self.threads = 1

    def each(self, work: Callable[[Any], Any], items: Iterable[Any], source: Source) -> list[Any]:
        return in_order(work, items, self.threads)

    def language(self, name: str) -> Python:
        return Python()

    def run_tests(
        self, workspace: Workspace, tree: Tree, state: str, repeat: int, source: Source, select: Sequence[str] = ()
    ) -> TestRun:
        self.states.append((state, tuple(select)))
        if self.troubles:
            self.troubles -= 1
            return TestRun(state=state, repeat=repeat, complete=False, trouble="the registry is away")
        text = self.blobs.get(tree.by_path["calc.py"].blob).decode()
        records = [self._record(key, test, text) for key, test in self.tests.items() if not select or key in select]
        return TestRun(
            state=state, repeat=repeat, complete=True, records=tuple(records), cost=Cost(wall_s=0.1, cpu_s=0.1)
        )

    @staticmethod
    def _record(key: str, test: Test, text: str) -> TestRecord:
        names: dict[str, Any] = {}
        status = TestStatus.PASSED
        try:
            exec(compile(text, "calc.py", "exec", dont_inherit=True), names)
            test(names, text)
        except Exception:
            status = TestStatus.FAILED
        return TestRecord(key=key, id=key, status=status)


def measured(fail_to_pass: Sequence[str], pass_to_pass: Sequence[str] = ()) -> Verdict:
    lists = TestLists(fail_to_pass=tuple(fail_to_pass), pass_to_pass=tuple(pass_to_pass))
    return Verdict(validator="execution", version="1", status=VerdictStatus.PASS, tests=lists)


def with_texts(candidate: Candidate, tree: Callable[..., str], before: str, after: str) -> Candidate:
    workspace = candidate.environment.model_copy(
        update={"tree": tree({"calc.py": before.encode()}), "roles": Python().roles()}
    )
    reference = candidate.reference.model_copy(update={"changes": tree({"calc.py": after.encode()})})
    return candidate.model_copy(update={"environment": workspace, "reference": reference})
