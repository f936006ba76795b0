"""`world_determinism`: two processes play the whole panel; observations, states and grades must be equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from pydantic import JsonValue

from envsynth.judging import verdict_of
from envsynth.models import Candidate, Cost, Finding, Source, Trajectory, Verdict, VerdictStatus
from envsynth.protocols import Context
from envsynth.runtime.worlds.episode import WorldEpisode, WorldTask
from envsynth.timing import Stopwatch
from envsynth.validators.worlds.apart import replay_apart
from envsynth.validators.worlds.opened import opened, task_document, task_of
from envsynth.validators.worlds.plays import panel_calls, panel_plays
from envsynth.validators.worlds.replayer import Call, Seen, advance, graded, replay_all

__all__ = ["WorldDeterminism"]


class WorldDeterminism:
    """The same calls give the same bytes in two processes with different hash seeds, and after a fork or a restore."""

    name = "world_determinism"
    version = "2"
    order = 20
    environment = "world"

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """FAIL at the first difference.

        Raises:
            SandboxError: the second process could not play.
        """
        watch = Stopwatch()
        open_ = opened(candidate, context)
        task = task_of(candidate, open_.model)
        panel = panel_calls(candidate)
        here = panel_plays(candidate, open_.model)
        apart = partial(replay_apart, open_.text, task_document(candidate), panel, task_id=candidate.id)
        there, cpu_s = apart()
        if _only_images_differ(here, there):
            # Equal states need not have equal images, and only states count.
            here = replay_all(task, panel, exact=True)
            there, more_s = apart(exact=True)
            cpu_s += more_s
        findings = [*_differences(candidate.panel, here, there), *_of_copies(task, candidate.panel)]
        evidence: dict[str, JsonValue] = {
            "trajectories": len(panel), "calls": sum(map(len, panel)),
            "ends": len({seen.end for seen in here}),
        }  # fmt: skip
        status = VerdictStatus.FAIL if findings else VerdictStatus.PASS
        verdict = verdict_of(self, status, findings, watch, evidence=evidence)
        return verdict.model_copy(update={"cost": verdict.cost + Cost(cpu_s=cpu_s)})


def _only_images_differ(here: Sequence[Seen], there: list[Seen]) -> bool:
    def stateless(plays: Sequence[Seen]) -> list[Seen]:
        return [one._replace(states=[], end="") for one in plays]

    return list(here) != there and stateless(here) == stateless(there)


def _differences(panel: Sequence[Trajectory], here: Sequence[Seen], there: Sequence[Seen]) -> Iterator[Finding]:
    """The first difference of each trajectory."""
    for line, one, other in zip(panel, here, there, strict=True):
        if finding := difference(line.label, one, other):
            yield finding


def difference(label: str, one: Seen, other: Seen) -> Finding | None:
    """What two plays of the same calls differ in first; None where they are equal."""
    for number, (left, right) in enumerate(zip(one.observations, other.observations, strict=True)):
        if left != right:
            place = "the instruction" if number == 0 else "the tools" if number == 1 else f"call {number - 1}"
            at = next((at for at, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), 0)
            seen = f"{left[max(0, at - 40) : at + 60]!r} and {right[max(0, at - 40) : at + 60]!r}"
            message = f"two processes saw {seen}"
            return Finding(rule="observations_differ", message=message, where=f"{label}, {place}")
    for number, (left, right) in enumerate(zip(one.states, other.states, strict=True), 1):
        if left != right:
            message = "the same calls left different states"
            return Finding(rule="states_differ", message=message, where=f"{label}, call {number}")
    if one.end != other.end:
        return Finding(rule="states_differ", message="the same calls left different states", where=label)
    if one.grade != other.grade:
        return Finding(rule="grades_differ", message=f"{one.grade} and {other.grade}"[:400], where=label)
    return None


def _of_copies(task: WorldTask, panel: Sequence[Trajectory]) -> Iterator[Finding]:
    """Whether the reference goes on in the same way in a fork, and after going back to a snapshot."""
    line = next((line for line in panel if line.label == "reference"), None)
    if line is None:
        return
    calls: list[Call] = [(call.tool, call.arguments) for call in line.calls]
    half = len(calls) // 2
    episode = WorldEpisode(task)
    try:
        episode.reset()
        advance(episode, calls[:half], exact=False)
        fork, snapshot = episode.fork(), episode.snapshot()
        try:
            straight = _rest(episode, calls[half:])
            forked = _rest(fork, calls[half:])
        finally:
            fork.close()
        episode.restore(snapshot)
        restored = _rest(episode, calls[half:])
    finally:
        episode.close()
    for rule, other in (("fork_differs", forked), ("restore_differs", restored)):
        if other != straight:
            yield Finding(rule=rule, message="the same calls went on differently", where=f"reference, call {half + 1}")


def _rest(episode: WorldEpisode, calls: Sequence[Call]) -> tuple[list[str], str, str]:
    answers, _ = advance(episode, calls, exact=False)
    return answers, episode.state_hash(), graded(episode)
