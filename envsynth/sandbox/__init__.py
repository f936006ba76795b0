"""Process isolation around a workspace. Standard library only; copied into packs."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import ConfigError, SandboxUnavailable
from ..runtime.contract import Backend
from .bubblewrap import BubblewrapBackend
from .docker import DockerBackend
from .local import LocalBackend

__all__ = ["BACKENDS", "BackendReport", "Choice", "choose", "choose_and_tell", "explain"]

BACKENDS: dict[str, type[BubblewrapBackend] | type[DockerBackend] | type[LocalBackend]] = {
    BubblewrapBackend.name: BubblewrapBackend,
    DockerBackend.name: DockerBackend,
    LocalBackend.name: LocalBackend,
}
"""Backends by name, the preferred first."""


class BackendReport(NamedTuple):
    """What a backend says of this machine."""

    name: str
    works: bool
    isolates: bool
    explanation: str
    """How it works here, or why it does not and what to do."""


class Choice(NamedTuple):
    """A backend that works, and what a user should know of the choice."""

    backend: Backend
    note: str
    """Which was taken and why the better ones were not; empty where it is the best or was asked for."""


def choose(name: str, *, trusted: bool, where: str) -> Backend:
    """The backend to run a source's code with: `choose_and_tell` without the note."""
    return choose_and_tell(name, trusted=trusted, where=where).backend


def choose_and_tell(name: str, *, trusted: bool, where: str) -> Choice:
    """The backend to run a source's code with.

    Args:
        name: `auto`, or a backend's name; `docker:RUNTIME` names an OCI runtime, such as gVisor's `docker:runsc`.
        trusted: whether the code may run without isolation where nothing isolates.
        where: the source, for messages.

    Returns:
        A backend that works. One that does not isolate has a `warning` that the caller must show.

    Raises:
        ConfigError: there is no such backend.
        SandboxUnavailable: it does not work here, or nothing does and the source is not trusted.
    """
    if name == "auto":
        return _automatic(trusted, where)
    backend = _named(name, where)
    reason = backend.unavailable()
    if reason is not None:
        raise SandboxUnavailable(f"the sandbox {name} does not work here", where=where, cause=reason)
    return Choice(backend, "")


def _named(name: str, where: str) -> Backend:
    kind, colon, runtime = name.partition(":")
    if kind == DockerBackend.name and bool(colon) == bool(runtime):
        return DockerBackend(runtime)
    if name not in BACKENDS:
        known = f"auto, {', '.join(BACKENDS)}, docker:RUNTIME"
        raise ConfigError(f"no sandbox is called {name!r}", where=where, next_step=f"choose one of {known}")
    return BACKENDS[name]()


def _automatic(trusted: bool, where: str) -> Choice:
    reasons: list[str] = []
    for kind in BACKENDS.values():
        backend = kind()
        if not (backend.isolates or trusted):
            continue
        reason = backend.unavailable()
        if reason is None:
            taken = f"sandbox {backend.name} is used, since others do not work here: {'; '.join(reasons)}"
            return Choice(backend, taken if reasons else "")
        reasons.append(f"{backend.name}: {reason}")
    raise SandboxUnavailable(
        "no sandbox works here, and this source is not marked trusted",
        where=where,
        cause="; ".join(reasons),
        next_step="add `trusted=yes` to the source's line or pass `--sandbox local` if you trust its code",
    )


def explain() -> list[BackendReport]:
    """What each backend says of this machine, the preferred first."""
    reports = []
    for name, kind in BACKENDS.items():
        backend = kind()
        reports.append(BackendReport(name, backend.unavailable() is None, backend.isolates, backend.explain()))
    return reports
