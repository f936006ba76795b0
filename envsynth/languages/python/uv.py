"""Calls of uv: resolving requirements as of a date. Only wheels are looked at on the host, so no code runs there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from envsynth.errors import DiskFull, SandboxError
from envsynth.runtime.installer import run

RESOLVE_SECONDS = 300.0
NOT_RESOLVED = "the requirements were not resolved"

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)")


class Unresolvable(Exception):
    """No set of distributions satisfies the requirements as of the date."""


def uv_binary() -> str:
    """The uv program that this package depends on."""
    from uv import find_uv_bin

    return str(find_uv_bin())


def resolve(requirements: Sequence[str], python: Path, newest: str, *, alone: bool = False) -> tuple[str, ...]:
    """Pins of everything that the requirements need, sorted.

    Args:
        requirements: PEP 508 lines.
        python: interpreter they are for.
        newest: ISO 8601 moment; nothing published later is used. Empty: no limit.
        alone: without what the requirements themselves need.

    Raises:
        Unresolvable: there is no solution from wheels.
        SandboxError: the registry cannot be reached, or the disk is full.
    """
    with TemporaryDirectory(prefix="resolve-") as folder:
        wanted = Path(folder, "wanted.in")
        wanted.write_text("".join(f"{line}\n" for line in requirements), "utf-8")
        command = [*compile_command(uv_binary(), str(python), newest), "--only-binary", ":all:", str(wanted)]
        command += ["--no-deps"] if alone else []
        try:
            said = run(command, RESOLVE_SECONDS, NOT_RESOLVED)
        except SandboxError as exc:
            if not isinstance(unless_unresolvable(exc), Unresolvable):
                raise
            said = _resolve_anew(command)
    return pins(said)


def _resolve_anew(command: list[str]) -> str:
    """The same without uv's cache, where a login page may still stand in for the registry's answer."""
    try:
        return run([*command, "--refresh"], RESOLVE_SECONDS, NOT_RESOLVED)
    except SandboxError as exc:
        raise unless_unresolvable(exc) from exc


def unless_unresolvable(error: SandboxError) -> Exception:
    """The exception to raise for a failed resolution: the environment's fault stays what it is."""
    if error.retryable or isinstance(error, DiskFull):
        return error
    return Unresolvable(error.cause)


def compile_command(binary: str, python: str, newest: str) -> list[str]:
    """Arguments of `uv pip compile` without input and policy of builds."""
    command = [binary, "pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate", "--python", python]
    return [*command, "--exclude-newer", newest] if newest else command


def pins(text: str) -> tuple[str, ...]:
    """`name==version` of each pinned line of uv's output, sorted."""
    found = {f"{match[1].lower()}=={match[2]}" for match in map(_PIN.match, text.splitlines()) if match}
    return tuple(sorted(found))
