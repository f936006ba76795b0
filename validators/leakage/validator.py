"""`leakage`: nothing of the fix or of the hidden tests is within an agent's reach."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from envsynth.judging import measured_tests, verdict_of
from envsynth.models import Candidate, Finding, Source, Verdict, VerdictStatus
from envsynth.protocols import Context
from envsynth.timing import Stopwatch
from envsynth.validators.leakage.fingerprint import fingerprint
from envsynth.validators.leakage.guards import Guards
from envsynth.validators.leakage.instruction import look_at_instruction
from envsynth.validators.leakage.probe import Probe
from envsynth.validators.leakage.tree import look_at_tree

__all__ = ["Leakage"]

_MAX_FINDINGS = 20
"""Of each kind, fatal or noted, kept in the verdict."""


class Leakage:
    """Instruction, tree and environment are searched for the fix and the hidden tests; the last from inside."""

    name = "leakage"
    version = "2"
    order = 36

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """FAIL where an agent could find what it is to make; the fingerprint is for the catalog to compare.

        Raises:
            SandboxError: the environment failed.
        """
        watch = Stopwatch()
        tests = measured_tests(earlier)
        guards = Guards(candidate, context.blobs, tests.fail_to_pass if tests is not None else ())
        fatal, noted = [*look_at_instruction(guards)], list[Finding]()
        within = look_at_tree(guards)
        fatal += within.fatal
        noted += within.noted
        evidence: dict[str, JsonValue] = {
            "guarded_files": len(guards.guarded),
            "passages": sum(len(one.tied | one.own) for one in guards.guarded),
            "fingerprint": _fingerprint(guards),
        }
        if not fatal:
            # The look from inside costs an episode: not for what is already out.
            probe_watch = Stopwatch()
            probed = Probe(guards, source, context).run()
            fatal += probed.seen.fatal
            noted += probed.seen.noted
            evidence |= {"files_with_lines": probed.files, "grep_s": round(probed.grep_s, 3)}
            evidence["probe_s"] = round(probe_watch.cost().wall_s, 3)
        findings = (*_first(fatal), *_first(noted))
        return verdict_of(
            self, VerdictStatus.FAIL if fatal else VerdictStatus.PASS, findings, watch, evidence=evidence
        )  # fmt: skip


def _fingerprint(guards: Guards) -> dict[str, JsonValue]:
    text = {change.path for change in guards.changes}
    binary = {entry.path: entry.blob for entry in guards.files.changes.entries if entry.path not in text}
    return fingerprint(guards.changes, guards.candidate.solution, binary).document()


def _first(findings: Sequence[Finding]) -> list[Finding]:
    return list(dict.fromkeys(findings))[:_MAX_FINDINGS]
