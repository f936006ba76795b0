"""The episode of a workspace: a directory of files, a shell, and hidden tests that grade what was handed in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

from ..errors import SandboxError, boundary
from .arguments import check_arguments, recordable
from .contract import JSON, Backend, Grade, Mount, Sandbox, SandboxSpec, Snapshot, ToolResult
from .controls import plan
from .edits import EDITING, EditRow, differences, edits_between
from .episode_db import TraceRow
from .grading import Evidence, Measured, judge, measure
from .recipe import ensure_environment, environment_covers, environment_mounts, environment_variables
from .roles import Admission, Roles, pristine_manifest, reserved_names
from .submission import Collector, FileRow, Submission, reference_rows, state_digest
from .suspicion import Suspicion, suspicions
from .testrun import TestReport, run_tests
from .tools import Answer, Workbench, run_tool, workspace_tools
from .trees import Blobs, Manifest, load_manifest, materialise

_REFUSED_CHARACTERS = 2_000
"""Kept in the trace of each argument of a call that was refused."""


class WorkspaceTask:
    """Everything about a task that its episodes share; trees are laid out when first needed."""

    def __init__(self, document: JSON, blobs: Blobs, *, task_id: str, environment: Path, cache_dir: Path) -> None:
        candidate = document["candidate"]
        self.id = task_id
        self.instruction: str = candidate["instruction"]
        self.command: JSON = candidate["environment"]["command"]
        self.verifier: JSON = candidate["verifier"]
        self.tests: JSON = document.get("tests") or {}
        self.controls: Sequence[JSON] = document.get("controls") or ()
        self.turns: int = candidate["budget"]["turns"]
        self.command_s: float = candidate["budget"]["command_s"]
        self.environment = environment
        self.cache_dir = cache_dir
        self._candidate = candidate
        self._blobs = blobs

    @cached_property
    def roles(self) -> Roles:
        """What each path is to a solution."""
        return Roles(self._candidate["environment"]["roles"])

    @cached_property
    def start(self) -> Manifest:
        """The start tree."""
        return load_manifest(self._candidate["environment"]["tree"], self._blobs)

    @cached_property
    def hidden(self) -> Manifest:
        """The files that grading lays over the start tree."""
        return load_manifest(self._candidate["environment"]["hidden"], self._blobs)

    def hidden_file(self, path: str) -> bytes:
        """Content of a hidden file."""
        return self._blobs(self.hidden[path].blob)

    @cached_property
    def pristine(self) -> Manifest:
        """The base for grading."""
        return pristine_manifest(self.start, self.hidden, self.roles, self._candidate["environment"]["allowed"])

    @cached_property
    def start_folder(self) -> Path:
        """The start tree on the host; never changed."""
        return materialise(self.start, self._blobs, self.cache_dir)

    @cached_property
    def pristine_folder(self) -> Path:
        """The base for grading on the host; never changed, never seen by an episode."""
        return materialise(self.pristine, self._blobs, self.cache_dir)

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Import names that no new module may take."""
        with boundary(SandboxError, "the environment cannot be read", where=self.id):
            return reserved_names(self.environment)

    @cached_property
    def collector(self) -> Collector:
        """Takes what an episode hands in."""
        allowed: Sequence[str] = self._candidate["environment"]["allowed"]
        admission = Admission(self.roles, allowed, self.command["roots"], self.start, self.hidden)
        return Collector(self.roles, admission, self.start, self.pristine, self._blobs)

    def suspicions(self, submission: Submission) -> list[Suspicion]:
        """What the submitted source touches that neither the start tree's nor the reference's does."""
        changes = load_manifest(self._candidate["reference"]["changes"], self._blobs)
        own = {path: content for path, (content, _) in submission.files.items() if self.roles.role(path) == "source"}
        known = (
            self._blobs(entry.blob)
            for manifest in (self.start, changes)
            for path, entry in manifest.items()
            if self.roles.role(path) == "source"
        )
        return suspicions(own, known, added=own.keys() - self.start.keys() - changes.keys())

    @cached_property
    def reference(self) -> list[FileRow]:
        """The reference solution's changes."""
        reference = self._candidate["reference"]
        changes = load_manifest(reference["changes"], self._blobs)
        with boundary(SandboxError, "the reference solution cannot be read", where=self.id):
            return reference_rows(self.start, changes, list(reference["removed"]), self.roles, self._blobs)


@dataclass
class Transcript:
    """What happened so far."""

    turns: list[TraceRow] = field(default_factory=list)
    done: bool = False
    valid: bool = True
    """False after an action that is no tool call."""
    within_budget: bool = True
    edits: list[EditRow] = field(default_factory=list)
    differences: dict[str, str] = field(default_factory=dict)
    """How the files differ from the start tree after the latest call; replaced, never changed."""

    def copy(self) -> Transcript:
        """An independent copy."""
        return replace(self, turns=list(self.turns), edits=list(self.edits))


class EpisodeSnapshot(NamedTuple):
    """A frozen state of an episode."""

    files: Snapshot
    transcript: Transcript


class WorkspaceEpisode:
    """One run of a workspace task; implements `contract.Episode`."""

    def __init__(
        self, task: WorkspaceTask, backend: Backend, *, scratch: Path | None = None, mounts: Sequence[Mount] = ()
    ) -> None:
        self.task = task
        self._backend = backend
        self._scratch = scratch
        self._mounts = tuple(mounts)
        """What the agent sees beside the environment; grading does not."""
        self._sandbox: Sandbox | None = None
        self._transcript = Transcript()

    def reset(self, seed: int = 0) -> str:
        """Start afresh; returns the instruction. A workspace draws nothing, so every seed is the same.

        Raises:
            SandboxError: the workspace cannot be made.
        """
        self.close()
        self._transcript = Transcript()
        spec = SandboxSpec(
            layers=(self.task.start_folder,),
            mounts=(*environment_mounts(self.task.environment), *self._mounts),
            covered=environment_covers(self.task.environment),
            scratch=self._scratch,
        )
        with boundary(SandboxError, "the workspace cannot be made", where=self.task.id):
            self._sandbox = self._backend.open(spec)
        return self.task.instruction

    def tools(self) -> list[JSON]:
        """Name, description and JSON Schema parameters of each tool; a fresh copy each call."""
        return workspace_tools(self.task.command_s)

    @property
    def max_turns(self) -> int:
        """Calls that the episode may have; one more ends it with gate 0."""
        return self.task.turns

    def call(self, tool: str, arguments: JSON) -> ToolResult:
        """One tool call; a mistake in it is a result.

        Raises:
            SandboxError: the environment failed; the episode says nothing about the agent.
        """
        if self._transcript.done:
            return ToolResult(False, None, "the episode is over", True)
        if len(self._transcript.turns) >= self.task.turns:
            self._transcript.done, self._transcript.within_budget = True, False
            return self._record(tool, arguments, Answer(None, f"the budget of {self.task.turns} calls is spent"))
        schemas = {known["name"]: known["parameters"] for known in self.tools()}
        if tool not in schemas:
            names = ", ".join(schemas)
            return self._record(tool, arguments, Answer(None, f"there is no tool {str(tool)[:100]!r}; use {names}"))
        values, error = check_arguments(schemas[tool], arguments)
        if error:
            return self._record(tool, arguments, Answer(None, f"{tool}: {error}"))
        with boundary(SandboxError, f"the tool {tool} failed", where=self.task.id):
            answer = run_tool(self._workbench(), tool, values)
            if tool in EDITING:
                self._note_edits()
        self._transcript.done = tool == "submit"
        return self._record(tool, values, answer)

    def malformed(self, text: str) -> ToolResult:
        """Record an action that is no tool call at all: the episode is over, and its gate is 0."""
        if not self._transcript.done:
            self._transcript.done, self._transcript.valid = True, False
            return self._record("", {"text": text}, Answer(None, "the action is not a tool call"))
        return ToolResult(False, None, "the episode is over", True)

    def stop(self) -> ToolResult:
        """End the episode as it stands; the files are graded as they are."""
        self._transcript.done = True
        return ToolResult(True, {"stopped": True}, "", True)

    def fork(self) -> WorkspaceEpisode:
        """An independent copy, trace included."""
        twin = WorkspaceEpisode(self.task, self._backend, scratch=self._scratch, mounts=self._mounts)
        twin._sandbox = self._open_sandbox().fork()
        twin._transcript = self._transcript.copy()
        return twin

    def snapshot(self) -> EpisodeSnapshot:
        """Freeze state and trace."""
        return EpisodeSnapshot(self._open_sandbox().snapshot(), self._transcript.copy())

    def restore(self, snapshot: object) -> None:
        """Go back to a snapshot of this episode."""
        if not isinstance(snapshot, EpisodeSnapshot):
            raise TypeError("not a snapshot of a workspace episode")
        self._open_sandbox().restore(snapshot.files)
        self._transcript = snapshot.transcript.copy()

    def state_hash(self) -> str:
        """sha256 of what differs from the start tree, independent of how it came about."""
        return state_digest(self._open_sandbox(), self.task.start)

    @property
    def trace(self) -> tuple[TraceRow, ...]:
        """The calls so far."""
        return tuple(self._transcript.turns)

    @property
    def edits(self) -> tuple[EditRow, ...]:
        """The files that each call changed, in the order of the calls."""
        return tuple(self._transcript.edits)

    def submission(self) -> Submission:
        """What the present state hands in.

        Raises:
            SandboxError: the workspace cannot be read.
        """
        return self.task.collector.collect(self._open_sandbox(), self.task.reserved)

    def grade(self, *, quick: bool = False) -> Grade:
        """Grade the present state; the episode is not changed.

        The hidden tests run on the task's own tree with the submitted files laid over it, in a sandbox of their own:
        the episode can neither see nor touch them. Control runs before it show that they can fail.

        Args:
            quick: leave the whole suite out where the control runs (without any, the fail-to-pass tests alone) are not
                as they must be: the outcome is then 0 whatever the others do.

        Raises:
            SandboxError: the environment failed; there is no grade.
        """
        task, submission = self.task, self.submission()
        measured = self._measure(submission, quick)
        evidence = Evidence(
            task.start, task.roles, submission, task.reference, measured.tests, measured.controls,
            task.suspicions(submission), self.trace, self.edits,
        )  # fmt: skip
        conditions = {
            "valid_transcript": self._transcript.valid,
            "within_budget": self._transcript.within_budget,
        }
        with boundary(SandboxError, "the episode cannot be graded", where=task.id):
            return judge(evidence, task.verifier, conditions, measured.report, where=task.id)

    def _measure(self, submission: Submission, quick: bool) -> Measured:
        task = self.task

        def run(files: Mapping[str, bytes], select: Sequence[str]) -> TestReport:
            laid = submission.files | {path: (content, "file") for path, content in files.items()}
            with boundary(SandboxError, "the tests cannot be run", where=task.id):
                report = run_tests(
                    self._backend, task.command, environment=task.environment, layers=[task.pristine_folder],
                    files=laid, removed=submission.removed, scratch=self._scratch, select=select,
                )  # fmt: skip
            if report.trouble:
                raise SandboxError("the tests could not be run", where=task.id, cause=report.trouble)
            return report

        return measure(run, task.tests, plan(task.controls, task.tests, task.hidden_file, SystemRandom()), quick=quick)

    def close(self) -> None:
        """Free everything; safe to call twice."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.close()

    def _open_sandbox(self) -> Sandbox:
        if self._sandbox is None:
            raise RuntimeError("the episode is not open: call reset first")
        return self._sandbox

    def _workbench(self) -> Workbench:
        sandbox = self._open_sandbox()
        return Workbench(
            sandbox, environment_variables(sandbox, self.task.command), self.task.command_s,
            int(self.task.command["memory_bytes"]),
        )  # fmt: skip

    def _note_edits(self) -> None:
        transcript, now = self._transcript, differences(self._open_sandbox(), self.task.start)
        transcript.edits += edits_between(len(transcript.turns) + 1, transcript.differences, now, self.task.roles)
        transcript.differences = now

    def _record(self, tool: str, arguments: JSON, answer: Answer) -> ToolResult:
        ok = not answer.error
        kept = arguments if ok else recordable(arguments, limit=_REFUSED_CHARACTERS)
        row = TraceRow(
            turn=len(self._transcript.turns) + 1, tool=str(tool)[:100], arguments=_ascii_json(kept), ok=ok,
            result=_ascii_json(answer.result), error=answer.error or None, cost=1.0,
        )  # fmt: skip
        self._transcript.turns.append(row)
        return ToolResult(ok, answer.result, answer.error, self._transcript.done)


def _ascii_json(value: JSON) -> str:
    """JSON in ASCII, because an agent may send lone surrogates, which no database takes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def open_task(
    document: JSON,
    blobs: Blobs,
    cache_dir: Path,
    backend: Backend,
    *,
    task_id: str,
    note: Callable[[str], None] = lambda _: None,
) -> WorkspaceEpisode:
    """An episode of a task; call `reset` next.

    Args:
        document: the JSON of a `models.Task`; `candidate`, `tests` and `controls` are read, so a candidate that is not
            yet a task can be played too.
        blobs: contents by sha256.
        cache_dir: where trees and environments are kept; shared with `envsynth.cache`.
        backend: the sandbox to play and to grade in.
        task_id: for messages.
        note: told one line when something takes long.

    Raises:
        SandboxError: the environment cannot be made.
    """
    candidate = document["candidate"]
    with boundary(SandboxError, "the task's environment cannot be made", where=task_id):
        environment = ensure_environment(candidate["environment"]["recipe"], blobs, cache_dir, note=note)
        task = WorkspaceTask(document, blobs, task_id=task_id, environment=environment, cache_dir=cache_dir)
        return WorkspaceEpisode(task, backend)
