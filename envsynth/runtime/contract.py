"""The words shared by the runtime and the sandboxes: standard library only, copied into packs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

JSON = Any
"""A value that `json.dumps` takes. The runtime reads documents, not models."""


@dataclass(frozen=True)
class Limits:
    """What one command may take. Each limit is enforced by the sandbox, not by the command's good will."""

    wall_s: float = 60.0
    memory_bytes: int = 2 * 2**30
    """Of the whole process tree where the host can count it, else of each process's address space."""
    processes: int = 256
    file_bytes: int = 2**30
    """Largest single file."""
    disk_bytes: int = 2 * 2**30
    """Everything the command adds to the workspace and to /tmp together."""
    output_bytes: int = 2**20
    """Kept of stdout and stderr together; what comes after is counted and thrown away."""


class ExecResult(NamedTuple):
    """What a command did. A limit that was hit is a result, not an exception."""

    exit_code: int
    """As a shell reports it: 128 + signal for a killed process; 124 where a limit of ours ended it."""
    stdout: bytes
    stderr: bytes
    ended_by: Literal["exit", "wall", "memory", "processes", "disk", "output"]
    """What ended the command; `exit` when it ended by itself."""
    output_bytes: int
    """Bytes printed altogether, kept or not."""
    wall_s: float
    cpu_s: float
    """User and system seconds of the whole process tree."""


class Change(NamedTuple):
    """A path of the workspace that differs, or may differ, from the layers below. Directories are not listed."""

    path: str
    kind: Literal["present", "removed"]


@dataclass(frozen=True)
class Mount:
    """A host folder or file, visible inside at `target`."""

    source: Path
    target: str
    writable: bool = False
    max_bytes: int | None = None
    """A file that grows beyond this ends the command as the disk's limit does; it is looked at from time to time."""


@dataclass(frozen=True)
class SandboxSpec:
    """What a sandbox is made of.

    `layers` are host folders stacked read-only under the workspace, the lowest first; they are never changed
    by anything that happens inside.
    """

    layers: tuple[Path, ...]
    mounts: tuple[Mount, ...] = ()
    covered: tuple[str, ...] = ()
    """Folders below mounts that are made to look empty inside, where the backend isolates."""
    workdir: str = "/workspace"
    scratch: Path | None = None
    """Host folder under which the sandbox keeps what it must; None: the system's temporary folder."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment of every command; nothing of the host's environment gets in."""


class Snapshot(NamedTuple):
    """A frozen copy of a sandbox's changes; valid until the sandbox that made it is closed."""

    path: Path


class Sandbox(Protocol):
    """Process isolation around one workspace. Not thread-safe; forks are independent."""

    workdir: str
    """Absolute path of the workspace as commands inside see it (a backend without isolation has its own)."""

    def exec(
        self,
        command: Sequence[str],
        *,
        limits: Limits,
        cwd: str | None = None,
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        network: bool = False,
    ) -> ExecResult:
        """Run a command; when this returns, every process it started is dead.

        Args:
            command: argument vector, never a shell string.
            limits: what it may take.
            cwd: absolute path inside, or relative to the workspace; None: the workspace.
            variables: added to the sandbox's own.
            stdin: given on standard input.
            network: whether the host's network is reachable.

        Raises:
            SandboxError: the environment failed: the command could not be started by us (not: does not exist,
                which is exit code 127).
        """

    def path(self, target: str) -> str:
        """Where a mount target or workspace path is found by commands inside."""

    def read(self, path: str, *, max_bytes: int = 2**24) -> bytes:
        """Content of a regular file, resolved inside (a link cannot lead out).

        Raises:
            FileNotFoundError, IsADirectoryError, PermissionError: as the kernel says.
            ValueError: larger than `max_bytes`, or not a regular file.
        """

    def write(self, path: str, content: bytes, *, executable: bool | None = None) -> None:
        """Write a file, resolved inside; parents are made. `executable` None keeps the mode.

        Raises:
            OSError: as the kernel says.
        """

    def remove(self, path: str) -> None:
        """Remove a file or link; nothing happens where there is none."""

    def changes(self) -> list[Change]:
        """Every path that may differ from the layers, sorted; read without following links."""

    def read_changed(
        self, path: str, *, max_bytes: int = 2**24
    ) -> tuple[bytes, Literal["file", "executable", "symlink"]]:
        """Content of a path from `changes`, read on the host without following links.

        Raises:
            FileNotFoundError: gone, or reached through a link.
            ValueError: not a regular file or link (a device, a FIFO), or larger than `max_bytes`.
        """

    def fork(self) -> Sandbox:
        """An independent copy of the present state. The original goes on."""

    def snapshot(self) -> Snapshot:
        """Freeze the present state."""

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot of this sandbox."""

    def close(self) -> None:
        """Free everything; safe to call twice."""


class Backend(Protocol):
    """Opens sandboxes of one kind."""

    name: str
    isolates: bool
    """False for `local`: code runs as the user, with the user's files and network."""
    warning: str
    """What a user must be told once before it is used; empty for a backend that isolates."""

    def unavailable(self) -> str | None:
        """Why this backend does not work here, with what to do; None when it works. Cheap after the first call."""

    def open(self, spec: SandboxSpec) -> Sandbox:
        """A fresh sandbox.

        Raises:
            SandboxUnavailable: the backend does not work here.
        """


class ToolResult(NamedTuple):
    """What the agent sees of a call. An agent's mistake is `ok=False` with an error, never an exception."""

    ok: bool
    result: JSON
    error: str
    done: bool
    """Whether the episode is over."""


class Grade(NamedTuple):
    """Every component of a grade, separately."""

    reward: float
    """gate × outcome, plus the penalties."""
    outcome: float
    """1.0 when every check holds, else 0.0."""
    process: float | None
    """Share of the applicable rubric that was met; 0 when an essential criterion failed; None without a rubric."""
    gate: float
    checks: dict[str, bool]
    criteria: dict[str, bool | None]
    """True: good (met, or a pitfall avoided); False: bad; None: not applicable."""
    penalties: dict[str, float]
    """What was added to the reward, by reason."""
    detail: dict[str, JSON]
    """For people: failing tests and the like. Never shown to an agent."""
    conditions: dict[str, bool] = {}
    """What the gate may ask for: `valid_transcript`, `within_budget`."""


class Episode(Protocol):
    """One run of an environment, of either kind."""

    def reset(self, seed: int = 0) -> str:
        """Start afresh; returns the instruction."""

    def tools(self) -> list[JSON]:
        """Name, description and JSON Schema parameters of each tool; a fresh copy each call."""

    def call(self, tool: str, arguments: JSON) -> ToolResult:
        """One tool call.

        Raises:
            SandboxError: the environment failed; the episode says nothing about the agent.
        """

    def malformed(self, text: str) -> ToolResult:
        """Record an action that is no tool call at all: the episode is over, and its gate is 0."""

    def stop(self) -> ToolResult:
        """End the episode as it stands: the agent has nothing more to do. The state is graded as it is."""

    def fork(self) -> Episode:
        """An independent copy, trace included."""

    def snapshot(self) -> object:
        """Freeze state and trace."""

    def restore(self, snapshot: object) -> None:
        """Go back to a snapshot of this episode."""

    def state_hash(self) -> str:
        """sha256 of the state alone, independent of how it came about."""

    def grade(self) -> Grade:
        """Grade the present state on a fork; the episode is not changed.

        Raises:
            SandboxError: the environment failed; there is no grade.
        """

    def close(self) -> None:
        """Free everything; safe to call twice."""
