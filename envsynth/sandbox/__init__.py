"""Process isolation around a workspace. Standard library only; copied into packs."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import ConfigError, SandboxUnavailable
from ..runtime.contract import Backend
from .bubblewrap import BubblewrapBackend
from .local import LocalBackend

__all__ = ["BACKENDS", "BackendReport", "choose", "explain"]

BACKENDS: dict[str, type[BubblewrapBackend] | type[LocalBackend]] = {
    BubblewrapBackend.name: BubblewrapBackend,
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


def choose(name: str, *, trusted: bool, where: str) -> Backend:
    """The backend to run a source's code with.

    Args:
        name: `auto`, or a backend's name.
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
    if name not in BACKENDS:
        raise ConfigError(
            f"no sandbox is called {name!r}", where=where, next_step=f"choose one of auto, {', '.join(BACKENDS)}"
        )
    backend = BACKENDS[name]()
    reason = backend.unavailable()
    if reason is not None:
        raise SandboxUnavailable(f"the sandbox {name} does not work here", where=where, cause=reason)
    return backend


def _automatic(trusted: bool, where: str) -> Backend:
    reasons = []
    for kind in BACKENDS.values():
        backend = kind()
        if not (backend.isolates or trusted):
            continue
        reason = backend.unavailable()
        if reason is None:
            return backend
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
