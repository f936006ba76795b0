"""`strictness`: other ways to write the reference must pass; a test that rejects one asks for a spelling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from envsynth.hunks import merged
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
    VariantFile,
    Verdict,
    VerdictStatus,
)  # fmt: skip
from envsynth.panel import trajectory_to
from envsynth.protocols import Context
from envsynth.timing import Stopwatch
from envsynth.variants import graded_keys, not_passing, reference_texts, variant_tree

__all__ = ["Strictness"]

MAX_REWRITES = 6
"""Tried on one candidate; each kind once before any twice."""
MAX_GROUPS = 3
"""Runs of the whole suite where nothing is rejected; a rewrite that would need one more is left out."""
Group = tuple[list[Variant], tuple[VariantFile, ...]]
"""Rewrites that run together, and the files that hold all of their changes."""
REJECTIONS = 2
"""Equal runs that must reject a rewrite by the same test; less is a flicker."""


class Strictness:
    """Rewrites that touch different lines run together; each runs alone only where they are rejected together."""

    name = "strictness"
    version = "1"
    order = 48

    def validate(self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict]) -> Verdict:
        """FAIL where a rewrite is rejected twice; SKIP where the reference cannot be written otherwise."""
        watch = Stopwatch()
        lists = measured_tests(earlier)
        if lists is None:
            return nothing_measured(self, watch)
        texts = reference_texts(candidate, context.blobs)
        language = context.language(candidate.workspace.recipe.language)
        proposed = list(language.rewrites(texts.before, texts.after))
        groups = together(each_kind_first(proposed), texts.after)
        chosen = [variant for group, _ in groups for variant in group]
        if not chosen:
            finding = Finding(rule="no_rewrites", message="no change of the reference is sure to preserve behaviour")
            strength = Strength(rewrites=0, rewrites_rejected=0)
            return verdict_of(self, VerdictStatus.SKIP, [finding], watch, strength=strength)
        runner = _Runner(candidate, lists, source, context)
        tried = context.each(runner.together, groups, source)
        rejected = {name: keys for one in tried for name, keys in one.rejected.items()}
        strict = [variant for variant in chosen if rejected.get(variant.name)]
        findings = [] if not strict else [
            Finding(rule="over_strict", message=f"{len(strict)} of {len(chosen)} right rewrites are rejected")
        ]  # fmt: skip
        findings += [_rejected(variant, rejected[variant.name]) for variant in strict]
        accepted = [variant for variant in chosen if variant not in strict]
        evidence: dict[str, JsonValue] = {
            "proposed": len(proposed),
            "runs": sum(one.runs for one in tried),
            "flickered": sum(one.flickered for one in tried),
            "rewrites": {one.name: "rejected" if one in strict else "accepted" for one in chosen},
        }
        verdict = verdict_of(
            self, VerdictStatus.FAIL if strict else VerdictStatus.PASS, findings, watch, evidence=evidence,
            strength=Strength(rewrites=len(chosen), rewrites_rejected=len(strict)),
        )  # fmt: skip
        if strict:
            return verdict
        tree = variant_tree(candidate, accepted[0].files, context.blobs)
        alternative = trajectory_to(f"alternative:{accepted[0].name}", candidate, tree, context.blobs, 1.0)
        return verdict.model_copy(update={"panel": (alternative,), "cost": watch.cost()})


@dataclass
class Tried:
    """What became of a group of rewrites."""

    rejected: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The tests that reject each of them that ran alone."""
    runs: int = 0
    flickered: int = 0
    """Runs that rejected what an equal run did not."""


class _Runner:
    """Runs rewrites of one candidate, whole."""

    def __init__(self, candidate: Candidate, lists: TestLists, source: Source, context: Context) -> None:
        self._candidate, self._keys, self._source, self._context = candidate, graded_keys(lists), source, context

    def together(self, several: Group) -> Tried:
        """Run a group, and each of it alone where it is rejected."""
        group, files = several
        tried = Tried()
        if len(group) > 1 and not self._rejections(files, f"rewrites {group[0].name}", tried):
            return tried
        for variant in group:
            tried.rejected[variant.name] = self._rejections(variant.files, f"rewrite:{variant.name}", tried)
        return tried

    def _rejections(self, files: Sequence[VariantFile], state: str, tried: Tried) -> tuple[str, ...]:
        """The tests that reject a rewrite in every one of some equal runs."""
        tree = variant_tree(self._candidate, files, self._context.blobs)
        failing: tuple[str, ...] = self._keys
        for repeat in range(REJECTIONS):
            run = self._run(tree, state, repeat)
            tried.runs += 1
            failing = not_passing(run, failing)
            if not failing:
                tried.flickered += repeat
                return ()
        return failing

    def _run(self, tree: Tree, state: str, repeat: int) -> TestRun:
        run, workspace = self._context.run_tests, self._candidate.workspace
        return settled_run(lambda: run(workspace, tree, state, repeat, self._source), self._candidate.id)


def each_kind_first(variants: Sequence[Variant]) -> list[Variant]:
    """The first variant of each kind, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    ranked = []
    for position, variant in enumerate(variants):
        ranked.append((seen[variant.kind], position, variant))
        seen[variant.kind] += 1
    return [variant for _, _, variant in sorted(ranked, key=lambda one: one[:2])]


def together(variants: Sequence[Variant], after: dict[str, str]) -> list[Group]:
    """Groups of variants that touch different lines, each with the files that hold all of its changes.

    At most `MAX_REWRITES` variants in `MAX_GROUPS` groups; the earlier ones have the choice.

    Args:
        variants: rewrites of the reference.
        after: text of the reference's source files.
    """
    groups: list[Group] = []
    for variant in variants:
        if sum(len(group) for group, _ in groups) == MAX_REWRITES:
            break
        for number, (group, _) in enumerate(groups):
            files = _merged([*group, variant], after)
            if files is not None:
                groups[number] = ([*group, variant], files)
                break
        else:
            if len(groups) < MAX_GROUPS:
                groups.append(([variant], variant.files))
    return groups


def _merged(group: Sequence[Variant], after: dict[str, str]) -> tuple[VariantFile, ...] | None:
    texts: dict[str, list[str]] = {}
    for file in (file for variant in group for file in variant.files):
        if file.text is None or file.path not in after:
            return None
        texts.setdefault(file.path, []).append(file.text)
    files = []
    for path, several in texts.items():
        text = merged(after[path], several)
        if text is None:
            return None
        files.append(VariantFile(path=path, text=text))
    return tuple(files)


def _rejected(variant: Variant, tests: Sequence[str]) -> Finding:
    message = f"{variant.description}; rejected by {tests[0]}"
    more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
    return Finding(rule="rewrite_rejected", message=message + more, where=f"{variant.path}:{variant.line}")
