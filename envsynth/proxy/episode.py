"""A harness attempts a workspace task: it runs inside the workspace's sandbox, and only the proxy answers it."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from envsynth.errors import ConfigError, SandboxError, boundary
from envsynth.models import (
    Attempt,
    AttemptGrade,
    AttemptStatus,
    Ending,
    Model,
    Policy,
    Task,
    attempt_key,
    canonical_json,
    digest_of,
    played_digest,
)
from envsynth.proxy.asking import Refused
from envsynth.proxy.conversation import Conversation, conversation_of, noted_calls
from envsynth.proxy.record import ProxiedCall, Record
from envsynth.proxy.server import Proxy
from envsynth.proxy.upstream import Upstream
from envsynth.rollout import Measured, failure_of, threshold_of
from envsynth.rollout.attempting import trace_of
from envsynth.rollout.playable import playing
from envsynth.runtime.arguments import recordable
from envsynth.runtime.contract import JSON, Backend, ExecResult, Grade, Limits, Mount
from envsynth.runtime.recipe import ENVIRONMENT, ensure_environment
from envsynth.runtime.tools import Answer
from envsynth.runtime.trees import Blobs
from envsynth.runtime.workspace import WorkspaceEpisode, WorkspaceTask

__all__ = ["Harness", "Played", "Venue", "attempted_by", "key_of_draw"]

_VERSION = "1"
"""Raised whenever a harness would see something else."""
_INSIDE = "/envsynth/proxy"
_SOCKET, _SCRIPT, _TASK = "proxy.sock", "inside.py", "task.md"
_PROCESSES = 512
_MISTAKES = 50
_NOTED_CHARACTERS = 100_000
"""Kept in the trace of each argument of a call."""
_MEMORY_BYTES = 4 * 2**30


class Harness(Model):
    """An agent program, and what it may take."""

    command: tuple[str, ...] = Field(min_length=1)
    """Argument vector; a word `{task}` stands for the instruction."""
    mounts: tuple[tuple[str, str], ...] = ()
    """Host folder and place inside of what the program needs; read-only."""
    max_seconds: float = Field(default=1800.0, gt=0)
    """Wall seconds of the whole run."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that the model may write; looked at between calls."""

    def identity(self, upstream: Upstream) -> str:
        """Digest of what decides how it plays, as far as that can be known from outside."""
        settings = upstream.settings
        return digest_of(
            [
                _VERSION, settings.model, settings.sampling.document(), list(self.command),
                [inside for _, inside in self.mounts], self.max_seconds, self.max_tokens,
            ]
        )  # fmt: skip


class Venue(NamedTuple):
    """Where an attempt is made."""

    backend: Backend
    blobs: Blobs
    cache_dir: Path
    out: Path
    """Folder of the record."""


class Played(NamedTuple):
    """What a harness left."""

    attempt: Attempt
    calls: tuple[ProxiedCall, ...]
    ran: ExecResult | None
    """None: it did not run."""


class _Limits:
    """Says when there are to be no more calls."""

    def __init__(self, turns: int, max_tokens: int | None, record: Record) -> None:
        self._turns, self._max_tokens, self._record = turns, max_tokens, record
        self._begun = 0
        self.ending: Ending | None = None
        """Set where a call was turned away."""

    def __call__(self) -> None:
        """Let a call pass. Called by one thread at a time.

        Raises:
            Refused: it was one too many.
        """
        calls = self._record.calls
        failed = sum(call.says_nothing_of_the_agent or call.ending == "rejected" for call in calls)
        written = sum(call.usage.completion_tokens for call in calls if call.usage is not None)
        # Requests that the endpoint does not take are no turns, but there is an end to them too.
        if self._begun - failed >= self._turns or self._begun >= 2 * self._turns + _MISTAKES:
            self.ending = Ending.TURN_BUDGET
            raise Refused(403, "turn_budget", f"the budget of {self._turns} answers is spent")
        if self._max_tokens is not None and written >= self._max_tokens:
            self.ending = self.ending or Ending.TOKEN_BUDGET
            raise Refused(403, "token_budget", f"the budget of {self._max_tokens} tokens is spent")
        self._begun += 1


class _Episode(WorkspaceEpisode):
    """A workspace in which an agent's own program runs."""

    def run(self, words: Callable[[str, str], list[str]], limits: Limits, variables: Mapping[str, str]) -> ExecResult:
        """Run the program: `words` is given where the proxy's folder and the environment are found inside.

        Raises:
            SandboxError: the environment failed.
        """
        bench, sandbox = self._workbench(), self._open_sandbox()
        folder = sandbox.path(_INSIDE)
        named = {**bench.variables, **variables, "ENVSYNTH_TASK_FILE": f"{folder}/{_TASK}"}
        with boundary(SandboxError, "the agent's program could not be run", where=self.task.id):
            return sandbox.exec(words(folder, sandbox.path(ENVIRONMENT)), limits=limits, variables=named)

    def note(self, tool: str, arguments: JSON, result: str) -> None:
        """Add a call that the program made to the trace."""
        self._record(tool, recordable(arguments, limit=_NOTED_CHARACTERS), Answer({"output": result}))

    def end(self, *, overdrawn: bool) -> None:
        """The state is graded as it stands; a program that wanted more turns than it may have gets gate 0."""
        self._transcript.done = True
        self._transcript.within_budget = not overdrawn


def key_of_draw(task: Task, harness: Harness, upstream: Upstream, k: int) -> str:
    """The key of draw `k`."""
    played = played_digest(task.candidate, task.tests, task.controls)
    return attempt_key(played, Policy.HARNESS, harness.identity(upstream), hinted=False, k=k)


def attempted_by(harness: Harness, task: Task, upstream: Upstream, venue: Venue, k: int) -> Played:
    """Draw `k` of a harness at a workspace task.

    Args:
        harness: the program.
        task: of a workspace.
        upstream: the solver's endpoint.
        venue: where it is made; the record must not be there yet.
        k: number of the draw.

    Raises:
        BudgetSpent: the spend limit left no room; the attempt says nothing.
        SandboxError: the environment failed.
        ConfigError: there is a record already, or a mount is no folder.
    """
    began = time.monotonic()
    with _folder(task) as folder, Record(venue.out) as record:
        limits = _Limits(task.candidate.budget.turns, harness.max_tokens, record)
        with closing(_opened(harness, task, venue, folder)) as episode:
            episode.reset()
            with Proxy(upstream, record, folder / _SOCKET, admits=limits, patience=5.0):
                ran = _run(episode, harness, task)
            if upstream.spent is not None:
                raise upstream.spent
            calls = record.calls
            said = conversation_of(calls)
            known = _known(harness, task, upstream, said, k)
            trouble = _trouble(calls, said, ran)
            if trouble:
                known |= {"status": AttemptStatus.ENVIRONMENT_ERROR, "trouble": trouble}
                return Played(Attempt(**known, wall_s=time.monotonic() - began), calls, ran)
            ending = limits.ending or (Ending.TIME_BUDGET if ran.ended_by == "wall" else Ending.STOPPED)
            for noted in noted_calls(said.messages):
                episode.note(noted.tool, _arguments(noted.arguments), noted.result)
            episode.end(overdrawn=ending is Ending.TURN_BUDGET)
            known |= {"ending": ending, "trace": trace_of(episode), "grade": _kept(episode.grade())}
    finished = Attempt(**known, status=AttemptStatus.FINISHED, wall_s=time.monotonic() - began)
    failure = failure_of(finished, threshold_of(task.candidate.verifier))
    return Played(finished.model_copy(update={"failure": failure}), calls, ran)


@contextmanager
def _folder(task: Task) -> Iterator[Path]:
    """What is mounted for the program: the way to the proxy, and what it is told. A short path, as sockets want."""
    with tempfile.TemporaryDirectory(prefix="envsynth-proxy-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copyfile(Path(__file__).with_name("inside.py"), folder / _SCRIPT)
        (folder / _TASK).write_text(task.candidate.instruction, "utf-8")
        yield folder


def _opened(harness: Harness, task: Task, venue: Venue, folder: Path) -> _Episode:
    mounts = [Mount(folder, _INSIDE)]
    for source, target in harness.mounts:
        if not Path(source).is_dir():
            raise ConfigError("there is no such folder to mount", where=source, next_step="--mount FOLDER[:INSIDE]")
        mounts.append(Mount(Path(source), target))
    document = playing(task.candidate, Measured(task.tests, task.controls))
    with boundary(SandboxError, "the task's environment cannot be made", where=task.id):
        recipe = document["candidate"]["environment"]["recipe"]
        environment = ensure_environment(recipe, venue.blobs, venue.cache_dir, note=lambda _: None)
        workspace = WorkspaceTask(
            document, venue.blobs, task_id=task.id, environment=environment, cache_dir=venue.cache_dir
        )
        return _Episode(workspace, venue.backend, mounts=mounts)


def _run(episode: _Episode, harness: Harness, task: Task) -> ExecResult:
    command = [task.candidate.instruction if word == "{task}" else word for word in harness.command]

    def words(folder: str, environment: str) -> list[str]:
        # -I: nothing of the workspace is imported before the command begins.
        return [f"{environment}/bin/python", "-I", f"{folder}/{_SCRIPT}", f"{folder}/{_SOCKET}", *command]

    limits = Limits(wall_s=harness.max_seconds, memory_bytes=_MEMORY_BYTES, processes=_PROCESSES)
    return episode.run(words, limits, {"ENVSYNTH_TURNS": str(task.candidate.budget.turns)})


def _trouble(calls: Sequence[ProxiedCall], said: Conversation, ran: ExecResult) -> str:
    """Why a run says nothing about the model: it never answered, or what failed last was the way to it."""
    if not said.answers:
        last = calls[-1].note if calls else "it made no call"
        tail = (ran.stdout + ran.stderr)[-300:].decode("utf-8", "replace")
        return " ".join(f"the model answered nothing: {last}; exit code {ran.exit_code}: {tail}".split())
    forwarded = [call for call in calls if call.ending not in ("refused", "interrupted")]
    last_call = forwarded[-1]
    return f"the endpoint failed the last call: {last_call.note}" if last_call.says_nothing_of_the_agent else ""


def _known(harness: Harness, task: Task, upstream: Upstream, said: Conversation, k: int) -> dict[str, JSON]:
    """The attempt as far as it is known before it is graded."""
    return {
        "task": task.id, "lead": task.candidate.provenance.lead.key,
        "played": played_digest(task.candidate, task.tests, task.controls), "policy": Policy.HARNESS,
        "model": upstream.settings.model, "settings": harness.identity(upstream), "k": k, "tools": said.tools,
        "conversation": said.messages, "turns": said.answers, "tokens": said.tokens, "cost_usd": said.cost_usd,
        "model_s": said.seconds,
    }  # fmt: skip


def _arguments(written: JSON) -> JSON:
    try:
        return json.loads(written or "{}")
    except (ValueError, RecursionError):
        return {"text": written}


def _kept(grade: Grade) -> AttemptGrade:
    text = canonical_json(grade._asdict())
    return AttemptGrade.model_validate(json.loads(text.encode("utf-8", "replace")))
