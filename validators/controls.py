"""`controls`: which changed hidden tests tell a right solution from one that makes its tests pass by other means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from envsynth.judging import measured_tests, nothing_measured, tried_run
from envsynth.models import (
    Candidate,
    Control,
    Cost,
    FileMode,
    Finding,
    Source,
    Strength,
    TestLists,
    TestRun,
    TestStatus,
    Tree,
    TreeEntry,
    Verdict,
    VerdictStatus,
    digest_of,
)  # fmt: skip
from envsynth.panel import reference_tree
from envsynth.protocols import Context
from envsynth.runtime.controls import changed_file
from envsynth.runtime.testkeys import function_of, module_of
from envsynth.timing import Stopwatch

__all__ = ["Controls"]

WEAK = ("wrapped", "asserted", "flipped")
"""Kinds of changes that look odd to who knows them, or that an object which says yes to everything withstands."""
MAX_NEIGHBOURS = 12
"""Functions with pass-to-pass tests for which changes are measured too."""
SHOWN_WRONG = (TestStatus.FAILED, TestStatus.ERROR)


class Controls:
    """A change is kept where the reference passes the test as it is, run alone, and fails it as changed."""

    name = "controls"
    version = "1"
    order = 32

    def validate(self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict]) -> Verdict:
        """One run of the tests as they are, and one for each round of changes, all with the reference."""
        watch = Stopwatch()
        lists = measured_tests(earlier)
        if lists is None:
            return nothing_measured(self, watch)
        proposed = _by_function(candidate, [*lists.fail_to_pass, *_neighbours(lists)], context)
        keys = sorted({key for several in proposed.values() for key in several[0].keys})
        # The first run is the tests as they are; some pass only after others, and are of no use here.
        rounds = [
            [several[number - 1] for several in proposed.values() if 0 < number <= len(several)]
            for number in range(1 + max((len(several) for several in proposed.values()), default=-1))
        ]

        def measure(number: int) -> TestRun:
            return tried_run(
                partial(_run, candidate, rounds[number], keys, f"controls {number}", source, context)
            )  # fmt: skip

        runs = [measure(number) for number in range(len(rounds))[:1]]
        if not any(run.trouble for run in runs):
            runs += context.each(measure, range(1, len(rounds)), source)
        kept: list[Control] = []
        for number, run in enumerate(runs):
            if run.trouble:
                status = VerdictStatus.TIMEOUT if run.timed_out else VerdictStatus.ERROR
                finding = Finding(rule="environment_error", message=run.trouble)
                return Verdict(
                    validator=self.name, version=self.version, status=status, findings=(finding,),
                    runs=tuple(runs[: number + 1]), cost=watch.cost(),
                )  # fmt: skip
            if number == 0:
                alone = {record.key for record in run.records if record.status is TestStatus.PASSED}
                continue
            kept += _measured(rounds[number], run, alone)
        return self._verdict(telling(kept), lists.fail_to_pass, runs, watch.cost())

    def _verdict(
        self, kept: Sequence[Control], fail_to_pass: Sequence[str], runs: Sequence[TestRun], cost: Cost
    ) -> Verdict:
        covered = {key for control in kept for key in control.keys}.intersection(fail_to_pass)
        findings = () if covered else (
            Finding(rule="no_controls", message="no changed fail-to-pass test fails with the reference"),
        )  # fmt: skip
        strong = {key for control in kept if control.kind not in WEAK for key in control.keys}.intersection(covered)
        kinds = sorted({control.kind for control in kept})
        return Verdict(
            validator=self.name,
            version=self.version,
            status=VerdictStatus.PASS if covered else VerdictStatus.FAIL,
            findings=findings,
            evidence={
                "controls": len(kept),
                "covered": len(covered),
                "covered_weakly": len(covered - strong),
                "fail_to_pass": len(fail_to_pass),
                "kinds": {kind: sum(control.kind == kind for control in kept) for kind in kinds},
            },
            controls=tuple(kept),
            strength=Strength(controls=len(kept), controlled=len(strong) / len(fail_to_pass)),
            runs=tuple(runs),
            cost=cost,
        )


def _neighbours(lists: TestLists) -> list[str]:
    """A few pass-to-pass functions, always the same: of the files that hold fail-to-pass tests, else of one other."""
    demanded = {function_of(key) for key in lists.fail_to_pass}
    by_function: dict[str, list[str]] = {}
    for key in lists.pass_to_pass:
        if function_of(key) not in demanded:
            by_function.setdefault(function_of(key), []).append(key)
    modules = {module_of(function) for function in demanded}
    near = [name for name in by_function if module_of(name) in modules]
    if not near and by_function:
        # Each further file makes every control run longer.
        other = min({module_of(name) for name in by_function}, key=lambda name: digest_of([name, lists.fail_to_pass]))
        near = [name for name in by_function if module_of(name) == other]
    chosen = sorted(near, key=lambda name: digest_of([name, lists.fail_to_pass]))[:MAX_NEIGHBOURS]
    return sorted(key for name in chosen for key in by_function[name])


def _by_function(candidate: Candidate, keys: Sequence[str], context: Context) -> dict[str, list[Control]]:
    workspace = candidate.workspace
    texts: dict[str, str] = {}
    for entry in context.blobs.get_tree(workspace.hidden).entries:
        if entry.mode is not FileMode.SYMLINK:
            try:
                texts[entry.path] = context.blobs.get(entry.blob).decode("utf-8")
            except UnicodeDecodeError:
                continue
    found: dict[str, list[Control]] = {}
    for control in context.language(workspace.recipe.language).controls(texts, keys, workspace.command):
        found.setdefault(control.function, []).append(control)
    return found


def _run(
    candidate: Candidate, chosen: Sequence[Control], keys: Sequence[str], state: str, source: Source, context: Context
) -> TestRun:
    """The selected tests on the reference, with the changes in the hidden files."""
    workspace = candidate.workspace
    hidden = context.blobs.get_tree(workspace.hidden)
    by_path: dict[str, list[Control]] = {}
    for control in chosen:
        by_path.setdefault(control.path, []).append(control)
    changed = hidden.overlay(Tree(entries=tuple(_changed(hidden.by_path, by_path, context))))
    workspace = workspace.model_copy(update={"hidden": context.blobs.put_tree(changed)})
    return context.run_tests(workspace, reference_tree(candidate, context.blobs), state, 0, source, keys)


def _changed(
    hidden: Mapping[str, TreeEntry], by_path: Mapping[str, Sequence[Control]], context: Context
) -> list[TreeEntry]:
    entries = []
    for path, these in sorted(by_path.items()):
        content = changed_file(context.blobs.get(hidden[path].blob), [control.document() for control in these])
        entries.append(hidden[path].model_copy(update={"blob": context.blobs.put(content), "size": len(content)}))
    return entries


def telling(kept: Sequence[Control]) -> list[Control]:
    """The controls without the weak ones, where a function has others."""
    better = {control.function for control in kept if control.kind not in WEAK}
    return [control for control in kept if control.kind not in WEAK or control.function not in better]


def _measured(chosen: Sequence[Control], run: TestRun, alone: set[str]) -> list[Control]:
    """The controls of a round, each with the keys that failed under it and pass as they are."""
    failed = {record.key for record in run.records if record.status in SHOWN_WRONG} & alone
    narrowed = [(control, tuple(key for key in control.keys if key in failed)) for control in chosen]
    return [control.model_copy(update={"keys": keys}) for control, keys in narrowed if keys]
