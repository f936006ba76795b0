"""`mutation`: wrong variants of the reference must not pass; what survives is what the tests do not notice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.judging import measured_tests, nothing_measured, settled_run, verdict_of
from envsynth.models import (
    Candidate,
    Finding,
    Source,
    Strength,
    TestLists,
    TestRun,
    Tree,
    Variant,
    Verdict,
    VerdictStatus,
    Workspace,
)  # fmt: skip
from envsynth.panel import reference_tree, trajectory_to
from envsynth.protocols import Context
from envsynth.timing import Stopwatch
from envsynth.variants import not_passing, reference_texts, variant_tree

__all__ = ["Mutation"]

MAX_MUTANTS = 20
"""Run of one candidate; spread over kinds and places."""
MIN_KILL_RATE = 0.5
"""Share of the mutants that must be noticed."""
PANEL_MUTANTS = 2
"""Killed mutants shipped with the task as trajectories."""
SLOWER = 10
"""A mutant that takes this many times as long as the reference hangs."""
MIN_TEST_S, MIN_RUN_S = 10.0, 30.0
"""Wall seconds that a mutant's test and whole run have at least, where the task's own limits are not lower."""
PARTS = ("hunk_drop", "function_revert", "file_drop")
"""Mutants that leave a part of the reference out."""


class Killed(NamedTuple):
    """How a mutant was noticed."""

    by: str
    """`fail_to_pass`, `pass_to_pass` or `time`; empty: not at all."""
    test: str = ""
    """The first test that noticed."""


class Mutation:
    """Fail-to-pass tests first, alone; the whole suite for the mutants that these let through."""

    name = "mutation"
    version = "1"
    order = 44

    def validate(self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict]) -> Verdict:
        """PASS where enough is noticed; SKIP where nothing can be changed, which is no sign of strength or weakness."""
        watch = Stopwatch()
        lists = measured_tests(earlier)
        if lists is None:
            return nothing_measured(self, watch)
        texts = reference_texts(candidate, context.blobs)
        language = context.language(candidate.workspace.recipe.language)
        variants = list(language.mutants(texts.before, texts.after))
        different = [variant for variant in variants if not variant.equivalent]
        equivalents = [variant for variant in variants if variant.equivalent]
        chosen = spread(different, MAX_MUTANTS)
        if not chosen:
            finding = Finding(rule="no_mutants", message="nothing that the reference adds can be changed one step")
            strength = Strength(mutants=0, killed=0, equivalents=len(equivalents))
            return verdict_of(self, VerdictStatus.SKIP, [finding], watch, strength=strength)
        runner = _Runner(candidate, lists, source, context)
        fates = list(zip(chosen, context.each(runner.fate, chosen, source), strict=True))
        verdict = self._judge(fates, len(different), equivalents, watch)
        if verdict.status is not VerdictStatus.PASS:
            return verdict
        panel = [
            trajectory_to(f"mutant:{variant.name}", candidate, runner.tree(variant), context.blobs, 0.0)
            for variant in for_panel(fates)
        ]
        return verdict.model_copy(update={"panel": tuple(panel), "cost": watch.cost()})

    def _judge(
        self, fates: Sequence[tuple[Variant, Killed]], proposed: int, equivalents: Sequence[Variant], watch: Stopwatch
    ) -> Verdict:
        survivors = [variant for variant, fate in fates if not fate.by]
        killed = len(fates) - len(survivors)
        rate = killed / len(fates)
        weak = not killed or rate < MIN_KILL_RATE
        noticed = f"{killed} of {len(fates)} wrong variants of the reference are noticed"
        findings = [Finding(rule="weak_tests", message=noticed)] if weak else []
        findings += [_survived(variant) for variant in sorted(survivors, key=lambda one: one.kind not in PARTS)]
        kinds: dict[str, JsonValue] = {}
        for kind in dict.fromkeys(variant.kind for variant, _ in fates):
            ends = Counter(bool(fate.by) for variant, fate in fates if variant.kind == kind)
            kinds[kind] = {"killed": ends[True], "survived": ends[False]}
        return verdict_of(
            self,
            VerdictStatus.FAIL if weak else VerdictStatus.PASS,
            findings,
            watch,
            strength=Strength(mutants=len(fates), killed=killed, equivalents=len(equivalents)),
            evidence={
                "proposed": proposed,
                "kill_rate": rate,
                "kinds": kinds,
                "killed_by": dict(Counter(fate.by for _, fate in fates if fate.by)),
                "mutants": {variant.name: " ".join(fate).strip() or "survived" for variant, fate in fates},
                "equivalent": {variant.name: variant.equivalent for variant in equivalents},
            },
        )


class _Runner:
    """Runs mutants of one candidate; what the reference does under the same limits is measured first."""

    def __init__(self, candidate: Candidate, lists: TestLists, source: Source, context: Context) -> None:
        self._candidate, self._lists, self._source, self._context = candidate, lists, source, context
        # Some tests pass only after others: one that fails alone with the reference notices nothing.
        reference = reference_tree(candidate, context.blobs)
        alone = self._run(candidate.workspace, reference, "reference alone", lists.fail_to_pass)
        failing = set(not_passing(alone, lists.fail_to_pass))
        self._alone = tuple(key for key in lists.fail_to_pass if key not in failing)
        self._workspace = limited(candidate.workspace, alone.cost.wall_s)

    def tree(self, variant: Variant) -> Tree:
        """The whole solution that a mutant is."""
        return variant_tree(self._candidate, variant.files, self._context.blobs)

    def fate(self, variant: Variant) -> Killed:
        """How the tests notice a mutant."""
        tree, state = self.tree(variant), f"mutant:{variant.name}"
        if self._alone:
            run = self._run(self._workspace, tree, state, self._alone)
            if noticed := not_passing(run, self._alone):
                return Killed("time" if run.timed_out else "fail_to_pass", noticed[0])
        # The task's own limits: the whole suite may take far longer than the tests above, and none of them hung.
        run = self._run(self._candidate.workspace, tree, state, ())
        for by, keys in (("fail_to_pass", self._lists.fail_to_pass), ("pass_to_pass", self._lists.pass_to_pass)):
            if noticed := not_passing(run, keys):
                return Killed("time" if run.timed_out else by, noticed[0])
        return Killed("")

    def _run(self, workspace: Workspace, tree: Tree, state: str, select: Sequence[str]) -> TestRun:
        run = self._context.run_tests
        return settled_run(lambda: run(workspace, tree, state, 0, self._source, select), self._candidate.id)


def limited(workspace: Workspace, wall_s: float) -> Workspace:
    """The workspace with time limits that fit a reference run of `wall_s` seconds, in steps, so that caches hit."""
    enough = SLOWER * 2.0 ** math.ceil(math.log2(max(wall_s, 0.5)))
    command = workspace.command
    limits = {
        "test_timeout_s": min(command.test_timeout_s, max(MIN_TEST_S, enough)),
        "timeout_s": min(command.timeout_s, max(MIN_RUN_S, 2 * enough)),
    }
    return workspace.model_copy(update={"command": command.model_copy(update=limits)})


def spread(variants: Sequence[Variant], limit: int) -> list[Variant]:
    """At most `limit` variants: half of them parts of the reference, then each operator in turn, new places first."""
    parts = [variant for variant in variants if variant.kind in PARTS]
    others = [variant for variant in variants if variant.kind not in PARTS]
    room = max(limit // 2, limit - len(others))
    step = max(1.0, len(parts) / room) if room else 1.0
    chosen = [parts[int(number * step)] for number in range(min(room, len(parts)))]
    queues: dict[str, list[Variant]] = {}
    for variant in others:
        queues.setdefault(variant.kind, []).append(variant)
    places: Counter[tuple[str, int]] = Counter()
    while len(chosen) < limit and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < limit:
                best = min(queue, key=lambda one: places[one.path, one.line])
                queue.remove(best)
                places[best.path, best.line] += 1
                chosen.append(best)
    return chosen


def for_panel(fates: Sequence[tuple[Variant, Killed]]) -> list[Variant]:
    """Killed mutants to ship: noticed by a fail-to-pass test and not by the clock, of different kinds."""
    kinds: dict[str, Variant] = {}
    for variant, fate in fates:
        if fate.by == "fail_to_pass":
            kinds.setdefault("part" if variant.kind in PARTS else variant.kind, variant)
    return list(kinds.values())[:PANEL_MUTANTS]


def _survived(variant: Variant) -> Finding:
    where = f"{variant.path}:{variant.line}" if variant.line else variant.path
    rule = "part_survived" if variant.kind in PARTS else "mutant_survived"
    return Finding(rule=rule, message=variant.description, where=where)
