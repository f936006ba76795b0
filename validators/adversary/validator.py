"""`adversary`: every attack of the battery is played on the task as it is, and graded as any episode."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from envsynth.errors import SandboxError
from envsynth.judging import measured_tests, nothing_measured, verdict_of
from envsynth.models import (
    Candidate,
    Control,
    Finding,
    Source,
    Strength,
    TestLists,
    ToolCall,
    Trajectory,
    Verdict,
    VerdictStatus,
    digest_of,
)  # fmt: skip
from envsynth.panel import reference_edits
from envsynth.protocols import Context
from envsynth.runtime.submission import Submission
from envsynth.runtime.version import grader_digest
from envsynth.runtime.workspace import WorkspaceEpisode, open_task
from envsynth.timing import Stopwatch
from envsynth.validators.adversary.attack import Attack
from envsynth.validators.adversary.battery import ATTACKS, SHIPPED
from envsynth.validators.adversary.target import target_of

__all__ = ["Adversary"]

MIN_TEST_S = 10.0
"""Wall seconds that a test has at least while an attack is graded."""
SLOWER = 3
"""So many times longer than the longest run of all tests may one test take then."""
_SUBMIT = ToolCall(tool="submit")


class Played(NamedTuple):
    """What became of one trajectory."""

    outcome: float
    handed_in: str
    """Digest of what was taken; empty where the grade was kept without one."""
    seconds: float
    """Wall seconds of playing and grading it, when it was played."""
    detail: str = ""
    """Checks that held, of an attack that worked."""


class Play(NamedTuple):
    """A trajectory to be played."""

    label: str
    calls: tuple[ToolCall, ...]
    quick: bool = True
    """Whether grading may end with the first thing that shows it to be wrong."""


class Adversary:
    """No attack may get more than 0, the reference must get 1, and doing nothing 0, all by the same grading."""

    name = "adversary"
    version = "1"
    order = 40

    def validate(self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict]) -> Verdict:
        """Play, grade, and list what worked.

        Raises:
            SandboxError: an attack leaves no grade at all.
        """
        watch = Stopwatch()
        tests = measured_tests(earlier)
        if tests is None:
            return nothing_measured(self, watch)
        controls = [control for verdict in earlier for control in verdict.controls]
        target = target_of(candidate, tests, context.blobs)
        isolates = context.backend(source).isolates
        attacks = [attack for attack in ATTACKS if isolates or not attack.needs_isolation]
        field = _Field(self.version, hurried(candidate, earlier), tests, controls, source, context)
        plays = [
            Play("reference", (*reference_edits(candidate, context.blobs), _SUBMIT), quick=False),
            Play("idle", (_SUBMIT,)),
            *(Play(f"attack {attack.name}", attack.calls(target)) for attack in attacks),
        ]
        try:
            reference, idle, *others = context.each(field.play, plays, source)
        finally:
            field.close()
        played = {attack.name: one for attack, one in zip(attacks, others, strict=True)}
        findings = [*_of_panel(reference, idle), *_of_attacks(attacks, played)]
        verdict = verdict_of(
            self,
            VerdictStatus.FAIL if findings else VerdictStatus.PASS,
            findings,
            watch,
            strength=Strength(attacks=len(played), attacks_worked=sum(one.outcome > 0 for one in played.values())),
            evidence={
                "attacks": {name: one.outcome for name, one in played.items()},
                "attacks_wall_s": {name: round(one.seconds, 2) for name, one in played.items()},
                "not_played": [attack.name for attack in ATTACKS if attack.name not in played],
                "distinct_submissions": len({one.handed_in for one in played.values()}),
                "host": target.host,
            },
        )
        shipped = [attack for attack in attacks if attack.name in SHIPPED and played[attack.name].outcome == 0]
        panel = [Trajectory(label=f"attack:{one.name}", calls=one.calls(target), outcome=0.0) for one in shipped]
        return verdict.model_copy(update={"panel": tuple(panel)})


def hurried(candidate: Candidate, earlier: Sequence[Verdict]) -> Candidate:
    """The candidate with a time for one test that no true test needs: attacks that hang would take the whole of it.

    No test takes longer than the longest run of all of them did.
    """
    longest = max((run.cost.wall_s for verdict in earlier for run in verdict.runs), default=None)
    command = candidate.workspace.command
    if longest is None or command.test_timeout_s <= (enough := max(MIN_TEST_S, SLOWER * math.ceil(longest))):
        return candidate
    workspace = candidate.workspace.model_copy(
        update={"command": command.model_copy(update={"test_timeout_s": enough})}
    )
    return candidate.model_copy(update={"environment": workspace})


def _of_panel(reference: Played, idle: Played) -> list[Finding]:
    """Whether the grader tells the reference from nothing at all, without which no attack says anything."""
    findings = []
    if reference.outcome != 1:
        findings.append(Finding(rule="reference_not_graded_1", message=f"got {reference.outcome}: {reference.detail}"))
    if idle.outcome != 0:
        findings.append(Finding(rule="idle_not_graded_0", message=f"handing in nothing got {idle.outcome}"))
    return findings


def _of_attacks(attacks: Sequence[Attack], played: Mapping[str, Played]) -> list[Finding]:
    return [
        Finding(rule="attack_worked", message=f"got {played[attack.name].outcome}: {attack.why}", where=attack.name)
        for attack in attacks
        if played[attack.name].outcome > 0
    ]


class _Field:
    """Where the attacks on one candidate are played: an episode for each that is played at once, reset for each."""

    def __init__(
        self, version: str, candidate: Candidate, tests: TestLists, controls: Sequence[Control], source: Source,
        context: Context,
    ) -> None:  # fmt: skip
        self._context = context
        self._id = candidate.id
        self._document = {
            "candidate": candidate.document(), "tests": tests.document(),
            "controls": [control.document() for control in controls],
        }  # fmt: skip
        self._backend = context.backend(source)
        self._key = digest_of([version, grader_digest(), self._document, self._backend.name])
        self._opening = threading.Lock()
        self._episodes: list[WorkspaceEpisode] = []
        self._free: list[WorkspaceEpisode] = []
        self._grading: dict[str, threading.Lock] = {}
        """Held while a submission is graded, so that equal ones wait for what it got."""
        self._nothing: dict[str, Played] = {}
        """What got nothing, by submission: equal submissions run equal tests, and so fail as well."""

    def play(self, one: Play) -> Played:
        """Play one trajectory, or take what was remembered of it.

        Raises:
            SandboxError: the environment failed; nothing is remembered.
        """
        documents = [call.document() for call in one.calls]
        key = digest_of([self._key, one.label, documents])
        try:
            kept = self._context.remember(
                "attacks", key, lambda: json.dumps(self._play(documents, quick=one.quick)._asdict())
            )  # fmt: skip
        except SandboxError as error:
            raise type(error)(error, where=f"{self._id}: {one.label}") from error
        played = Played(**json.loads(kept))
        if played.outcome == 0:
            self._nothing[played.handed_in] = played
        return played

    def close(self) -> None:
        """Free the episodes."""
        for episode in self._episodes:
            episode.close()

    def _play(self, calls: Sequence[Mapping[str, object]], *, quick: bool) -> Played:
        started = time.monotonic()
        with self._episode() as episode:
            episode.reset(0)
            for call in calls:
                if episode.call(str(call["tool"]), call["arguments"]).done:
                    break
            handed_in = digest_of_submission(episode.submission())
            with self._grading.setdefault(handed_in, threading.Lock()):
                known = self._nothing.get(handed_in)
                if known is not None:
                    return known._replace(seconds=time.monotonic() - started)
                grade = episode.grade(quick=quick)
                held = ", ".join(
                    f"{name} {'holds' if good else 'does not hold'}" for name, good in grade.checks.items()
                )
                played = Played(grade.outcome, handed_in, time.monotonic() - started, held)
                if played.outcome == 0:
                    self._nothing[handed_in] = played
                return played

    @contextmanager
    def _episode(self) -> Iterator[WorkspaceEpisode]:
        """An episode that nobody else plays meanwhile."""
        with self._opening:
            episode = self._free.pop() if self._free else self._opened()
        yield episode
        self._free.append(episode)

    def _opened(self) -> WorkspaceEpisode:
        context = self._context
        episode = open_task(self._document, context.blobs.get, context.cache_dir, self._backend, task_id=self._id)
        self._episodes.append(episode)
        return episode


def digest_of_submission(submission: Submission) -> str:
    """Identity of what grading takes: the files that are laid over the task's tree, and those taken away."""
    digest = hashlib.sha256()
    for path, (content, mode) in sorted(submission.files.items()):
        for part in (os.fsencode(path), mode.encode(), hashlib.sha256(content).digest()):
            digest.update(len(part).to_bytes(8, "big") + part)
    digest.update(b"removed")
    for path in sorted(submission.removed):
        digest.update(os.fsencode(path) + b"\0")
    return digest.hexdigest()
