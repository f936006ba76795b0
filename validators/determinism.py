"""`determinism`: two fresh processes play the reference; observations, state and what is handed in must be equal."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from envsynth.cache import Cache
from envsynth.errors import SandboxError, SandboxTimeout, boundary
from envsynth.lifeline import end_with
from envsynth.models import Candidate, FileMode, Finding, Role, Source, ToolCall, Tree, Verdict, VerdictStatus, role_of
from envsynth.panel import reference_edits, reference_tree
from envsynth.protocols import Context
from envsynth.timing import Stopwatch

__all__ = ["Determinism"]

TIMEOUT_S = 300.0
PROBES = (
    "find . | LC_ALL=C sort",
    "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum",
)
"""Commands whose output must be equal in every episode: whatever differs here would differ in what an agent sees."""
SURROUNDINGS = "env | LC_ALL=C sort; pwd; id -u; umask; ls -a ~ /tmp"
"""The same for what stands around the workspace; without isolation that is the host's, and no two folders are equal."""


class Played(NamedTuple):
    """What one process saw."""

    observations: list[str]
    state: str
    submitted: dict[str, str]
    """Path → `mode:sha256` of what would be graded; `removed` for a removal."""


class Determinism:
    """The same calls give the same observations, state hash and submission in two fresh processes.

    The grade follows from the submission, and `execution` measures it three times on that same tree.
    """

    name = "determinism"
    version = "1"
    order = 20

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """FAIL where two processes differ, or where the reference is not what its own edits hand in."""
        watch = Stopwatch()
        backend = context.backend(source)
        commands = (*PROBES, SURROUNDINGS) if backend.isolates else PROBES
        probes = [ToolCall(tool="bash", arguments={"command": command}) for command in commands]
        calls = [*probes, *reference_edits(candidate, context.blobs), *probes]
        request = json.dumps({
            "candidate": candidate.document(), "calls": [call.document() for call in calls], "task": candidate.id,
            "cache": str(context.cache_dir), "sandbox": backend.name,
            "trusted": source.options.trusted,
        })  # fmt: skip
        first, second = (_play_apart(request, candidate.id, seed) for seed in ("1", "2"))
        findings = [*differences(first, second), *_wrong_submission(candidate, first, context)]
        return Verdict(
            validator=self.name,
            version=self.version,
            status=VerdictStatus.FAIL if findings else VerdictStatus.PASS,
            findings=tuple(findings),
            evidence={"calls": len(calls), "state": first.state, "submitted": len(first.submitted)},
            cost=watch.cost(),
        )


def differences(first: Played, second: Played) -> list[Finding]:
    """What two processes that made the same calls may not differ in."""
    pairs = enumerate(zip(first.observations, second.observations, strict=True), 1)
    unequal = next(((turn, one, two) for turn, (one, two) in pairs if one != two), None)
    if unequal is not None:
        turn, one, two = unequal
        at = next((place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)
        seen = f"{one[max(0, at - 40) : at + 60]!r} and {two[max(0, at - 40) : at + 60]!r}"
        what = "the instruction" if turn == 1 else "the tools" if turn == 2 else f"call {turn - 2}"
        return [Finding(rule="observations_differ", message=f"two processes saw {seen}", where=what)]
    if first.state != second.state:
        return [Finding(rule="states_differ", message="the same calls left different files")]
    if first.submitted != second.submitted:
        return [Finding(rule="submissions_differ", message="the same calls hand in different files")]
    return []


def _wrong_submission(candidate: Candidate, played: Played, context: Context) -> list[Finding]:
    start = context.blobs.get_tree(candidate.workspace.tree)
    wanted = expected_submission(candidate, start, reference_tree(candidate, context.blobs))
    if played.submitted == wanted:
        return []
    paths = sorted(
        path for path in wanted.keys() | played.submitted.keys() if wanted.get(path) != played.submitted.get(path)
    )
    message = f"the reference's edits hand in something else at {', '.join(paths[:5])}"
    return [Finding(rule="reference_not_handed_in", message=message)]


def expected_submission(candidate: Candidate, start: Tree, reference: Tree) -> dict[str, str]:
    """What the reference must hand in: every path that differs and that a solution may change."""
    expected: dict[str, str] = {}
    for path in sorted(start.by_path.keys() | reference.by_path.keys()):
        before, after = start.by_path.get(path), reference.by_path.get(path)
        guarded = role_of(path, candidate.workspace.roles) in (Role.TEST, Role.CONFIG)
        if before == after or (guarded and path not in candidate.workspace.allowed):
            continue
        expected[path] = f"{after.mode.value}:{after.blob}" if after is not None else "removed"
    return expected


def _play_apart(request: str, task: str, seed: str) -> Played:
    """Play in a process of its own, with its own hash seed."""
    with boundary(SandboxError, "the episode could not be played", where=task):
        try:
            done = subprocess.run(
                [sys.executable, "-m", __name__, str(os.getpid())], input=request, capture_output=True, text=True,
                timeout=TIMEOUT_S, env=_environment(seed), check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as exc:
            raise SandboxTimeout("playing the reference took too long", where=task) from exc
        if done.returncode:
            cause = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise SandboxError("the episode could not be played", where=task, cause=cause[:500])
        return Played(**json.loads(done.stdout))


def _environment(seed: str) -> dict[str, str]:
    return {**os.environ, "PYTHONHASHSEED": seed}


def _main() -> None:
    """Play one request from standard input, on behalf of the process that is named; prints a Played."""
    end_with(int(sys.argv[1]))
    from envsynth.runtime.workspace import open_task
    from envsynth.sandbox import choose

    request = json.load(sys.stdin)
    cache = Cache(Path(request["cache"]))
    backend = choose(request["sandbox"], trusted=request["trusted"], where=request["task"])
    document = {"candidate": request["candidate"], "tests": None}
    episode = open_task(document, cache.get, cache.root, backend, task_id=request["task"])
    try:
        seen = [episode.reset(0), json.dumps(episode.tools(), sort_keys=True)]
        seen += [json.dumps(episode.call(call["tool"], call["arguments"])) for call in request["calls"]]
        submission = episode.submission()
        submitted = {
            path: f"{FileMode(mode).value}:{hashlib.sha256(content).hexdigest()}"
            for path, (content, mode) in submission.files.items()
        } | dict.fromkeys(submission.removed, "removed")
        print(json.dumps(Played(seen, episode.state_hash(), submitted)._asdict()))
    finally:
        episode.close()


if __name__ == "__main__":
    _main()
