"""`world_readback`: a second instrument, written from read tools alone, must agree with the checks on every end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.judging import verdict_of
from envsynth.models import Candidate, Finding, Source, ToolKind, Trajectory, Verdict, VerdictStatus
from envsynth.protocols import Context
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.episode import Transcript, WorldEpisode, WorldSnapshot, WorldTask
from envsynth.timing import Stopwatch
from envsynth.validators.world_readback.script import BadScript, Failed, failures, read_tests
from envsynth.validators.worlds.opened import Opened, opened, reads_trace, task_document, task_of
from envsynth.validators.worlds.plays import panel_plays

_TURNS = 10_000


class Judged(NamedTuple):
    """One trajectory under both instruments."""

    label: str
    sql: bool
    """Whether all checks on the end state hold."""
    failed: tuple[Failed, ...]


class WorldReadback:
    """The read-back passes exactly where the checks on the end state do.

    Checks that read the trace are left out of the comparison: what was done on the way is not in the state.
    """

    name = "world_readback"
    version = "3"
    order = 34
    environment = "world"

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """Play the panel, run the script on every end, and compare; SKIP where the candidate has none."""
        watch = Stopwatch()
        script = candidate.verifier.read_back
        if not script:
            finding = Finding(rule="no_read_back", message="the candidate brings no read-back")
            return verdict_of(self, VerdictStatus.SKIP, [finding], watch)
        try:
            tests = read_tests(script)
        except BadScript as exc:
            return verdict_of(self, VerdictStatus.FAIL, [Finding(rule="read_back_invalid", message=str(exc))], watch)
        open_ = opened(candidate, context)
        judged = []
        episode, with_reads = WorldEpisode(task_of(candidate, open_.model)), _Reader(candidate, open_)
        try:
            for line, seen in zip(candidate.panel, panel_plays(candidate, open_.model), strict=True):
                failed = tuple(failures(tests, with_reads.at(_end(episode, line))))
                held = json.loads(seen.grade)["checks"]
                judged.append(Judged(line.label, _end_holds(candidate, held), failed))
        finally:
            episode.close()
            with_reads.close()
        findings = [finding for one in judged for finding in _disagreements(one)]
        passes: list[JsonValue] = [one.label for one in judged if not one.failed]
        evidence: dict[str, JsonValue] = {
            "tests": len(tests), "trajectories": len(judged), "matrix": _matrix(judged), "passes": passes,
        }  # fmt: skip
        status = VerdictStatus.FAIL if findings else VerdictStatus.PASS
        return verdict_of(self, status, findings, watch, evidence=evidence)


class _Reader:
    """Looks at states through read tools."""

    def __init__(self, candidate: Candidate, open_: Opened) -> None:
        document = task_document(candidate)
        document["candidate"]["budget"] = {"turns": _TURNS, "cost": None}
        self._episode = WorldEpisode(WorldTask(document, open_.model, task_id=candidate.id))
        self._reads = {tool.name for tool in open_.world.tools if tool.kind is ToolKind.READ}

    def at(self, image: bytes) -> _Reader:
        """The same, in another state."""
        self._episode.restore(WorldSnapshot(self._episode.task.id, image, Transcript()))
        return self

    def __call__(self, tool: str, **arguments: JSON) -> JSON:
        """The fixture of the script; a refused call is a test that fails."""
        if tool not in self._reads:
            raise AssertionError(f"{tool} is no read tool")
        answer = self._episode.call(tool, arguments)
        if not answer.ok:
            raise AssertionError(answer.error)
        return answer.result

    def close(self) -> None:
        self._episode.close()


def _end(episode: WorldEpisode, line: Trajectory) -> bytes:
    """The state after a trajectory."""
    episode.reset()
    for call in line.calls:
        episode.call(call.tool, dict(call.arguments))
    return episode.image()


def _end_holds(candidate: Candidate, checks: Mapping[str, bool]) -> bool:
    on_trace = {check.id for check in candidate.verifier.checks if reads_trace(check.sql)}
    return all(held for name, held in checks.items() if name not in on_trace)


def _disagreements(one: Judged) -> list[Finding]:
    if one.sql and one.failed:
        first = one.failed[0]
        message = f"the checks hold, and {first.test} does not: {first.message[:200]}"
        return [Finding(rule="read_back_stricter", message=message, where=one.label)]
    if not one.sql and not one.failed:
        message = "the read-back passes, and a check on the end state does not hold"
        return [Finding(rule="read_back_weaker", message=message, where=one.label)]
    return []


def _matrix(judged: Sequence[Judged]) -> dict[str, JsonValue]:
    """How often both, one or none of the instruments passed."""
    counts: Mapping[str, int] = {
        "both_pass": sum(one.sql and not one.failed for one in judged),
        "both_fail": sum(not one.sql and bool(one.failed) for one in judged),
        "only_sql_passes": sum(one.sql and bool(one.failed) for one in judged),
        "only_read_back_passes": sum(not one.sql and not one.failed for one in judged),
    }
    return dict(counts)
