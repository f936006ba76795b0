"""Makes virtual environments and installs wheels: with uv where it is found, else with venv and pip alone."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ..errors import SandboxError, disk_full

INSTALL_SECONDS = 900.0
VENV_SECONDS = 120.0
NOT_INSTALLED = "the pinned distributions were not installed"

UNREACHABLE = re.compile(
    r"dns error|failed to lookup address|name or service not known|temporary failure in name resolution|"
    r"connection (?:refused|reset|timed out|aborted|broken)|network is unreachable|error sending request|"
    r"tcp connect error|operation timed out|failed to establish a new connection|no route to host|tls handshake|"
    r"peer certificate|certificate[ _]verif|self[- ]signed certificate|tunnel error|proxyerror|"
    r"(?:cannot connect|failed to connect|connect) to (?:the )?proxy|proxy (?:authentication|connect|error|tunnel)|"
    r"http status (?:server error|client error \(4(?:01|03|07|29))|\b(?:401 unauthorized|403 forbidden)|"
    r"max retries exceeded",
    re.I,
)
"""What uv and pip say when the registry, not the requirement, is at fault."""

REFUSED = re.compile(
    r"no solution found|requirements are unsatisfiable|not found in the package registry|"
    r"there (?:is|are) no versions? of|no wheels with a matching|no usable wheels|which are incompatible|"
    r"no matching distribution found|could not find a version|\b(?:404 not found|410 gone)\b|"
    r"couldn't parse requirement|distribution not found at|conflicting urls|"
    r"build backend|failed to build|call to `[^`]*` failed|failed to parse metadata|metadata (?:field|name)|"
    r"does not match given name|does not appear to be a python project|"
    r"repository .*not found|could not read username|couldn't find remote ref",
    re.I,
)
"""What they say when a registry answered and the requirement cannot be met, or its own build failed."""

_ANSWERED = re.compile(
    r"filtered by `exclude-newer`|no wheels with a matching|no usable wheels|which are incompatible|"
    r"couldn't parse requirement|build backend|failed to build|call to `[^`]*` failed",
    re.I,
)
"""Refusals that only someone who has seen real files can give."""

_NOT_WHOLE = re.compile(r"invalid package format|failed to read from zip file", re.I)
"""A wheel that is none: published so, or a download that was broken off. Installers do not tell these apart."""

_PROBE = "iniconfig"
"""A small distribution that every registry has which can serve pytest."""
_PROBE_SECONDS = 60.0
_PROBE_HOLDS = 10.0
"""Seconds for which one good answer stands."""
_proved: dict[tuple[str | None, bool], float] = {}
"""When the registry last gave one, by the uv that asked (None: pip) and whether it had to serve a file."""


def find_uv() -> str | None:
    """The uv program: beside the running interpreter, where the `uv` distribution puts it, or on PATH."""
    beside = Path(sys.executable).parent / "uv"
    return str(beside) if beside.is_file() else shutil.which("uv")


def make_venv(python: Path, folder: Path) -> None:
    """A virtual environment without packages in an empty folder."""
    uv = find_uv()
    if uv is not None:
        command = [uv, "venv", "--quiet", "--relocatable", "--no-project", "--no-config", "--allow-existing"]
        run([*command, "--python", str(python), str(folder)], VENV_SECONDS, "the virtual environment was not made")
    else:
        command = [str(python), "-m", "venv", "--without-pip"]
        run([*command, str(folder)], VENV_SECONDS, "the virtual environment was not made")


def install_wheels(folder: Path, pins: Sequence[str]) -> None:
    """Install exactly the given pins, wheels only: no code of theirs runs.

    Raises:
        SandboxError: the registry cannot be reached, or a pin has no wheel there.
    """
    uv = find_uv()
    python = str(folder / "bin/python")
    if uv is not None:
        command = [uv, "pip", "install", "--quiet", "--no-deps", "--no-config", "--only-binary", ":all:"]
        # Links would make each file one with uv's cache: damage to it would come back with every rebuild.
        command += ["--link-mode", "copy", "--python", python, *pins]
        run(command, INSTALL_SECONDS, NOT_INSTALLED)
        return
    with tempfile.TemporaryDirectory(prefix="pip-") as helper:
        command = [*_pip(Path(helper)), "--python", python, "install", "--quiet", "--no-deps", "--no-input"]
        command += ["--only-binary", ":all:", "--no-compile", "--disable-pip-version-check", *pins]
        run(command, INSTALL_SECONDS, NOT_INSTALLED)


def _pip(helper: Path) -> list[str]:
    """The pip of this interpreter; where it has none, one that comes with Python itself, set up in a helper folder."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    base = str(getattr(sys, "_base_executable", sys.executable))
    try:
        run([base, "-m", "venv", str(helper)], VENV_SECONDS, "pip was not set up")
    except SandboxError as exc:
        raise SandboxError(
            "there is neither uv nor pip", where=sys.executable, cause=exc.cause, retryable=False,
            next_step="install one of them (`python -m pip install uv`, or the system's python3-venv), then try again",
        ) from exc  # fmt: skip
    return [str(helper / "bin/python"), "-m", "pip"]


def run(command: Sequence[str], timeout_s: float, what: str) -> str:
    """Run an installer on the host, with the user's own proxy, index and certificate settings.

    Raises:
        SandboxError: it failed, as `failure` classifies it.
    """
    done = _execute(command, timeout_s, what)
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    raise failure(what, (done.stderr + done.stdout).decode("utf-8", "replace"))


def _execute(command: Sequence[str], timeout_s: float, what: str) -> subprocess.CompletedProcess[bytes]:
    variables = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    variables |= {"UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    try:
        return subprocess.run(
            command, capture_output=True, timeout=timeout_s, check=False, env=variables, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise SandboxError(
            what, where=Path(command[0]).name, cause=f"no end after {timeout_s:.0f} s",
            next_step="check the connection to the package registry and run the same command again",
        ) from None  # fmt: skip


def failure(what: str, said: str) -> SandboxError:
    """Classify what an installer printed.

    Only a refusal that is recognised, and that comes from something that is a registry, speaks against the
    distributions: that error alone is not retryable. All else may be better next time.
    """
    if "No space left on device" in said or "os error 28" in said:
        return disk_full(what)
    cause = " ".join(said.split())[-600:]
    if UNREACHABLE.search(said):
        return SandboxError(
            what, where="package registry", cause=f"it cannot be reached: {cause[-300:]}", retryable=True,
            next_step="check the connection, proxy and certificate settings, then run the same command again",
        )  # fmt: skip
    if not REFUSED.search(said):
        return SandboxError(
            what, cause=cause or "the installer gave no reason", retryable=True,
            next_step="see the cause, then run the same command again",
        )  # fmt: skip
    not_whole = _NOT_WHOLE.search(said) is not None
    if registry_answers(serve=True) if not_whole else _ANSWERED.search(said) or registry_answers():
        return SandboxError(
            what, cause=cause, retryable=False,
            next_step="see the cause; a distribution that was withdrawn needs another source",
        )  # fmt: skip
    if not_whole:
        return SandboxError(
            what, where="package registry", retryable=True, cause=f"its downloads break off: {cause[-300:]}",
            next_step="check what stands between you and the registry, then run the same command again",
        )  # fmt: skip
    return SandboxError(
        what, where="package registry", retryable=True,
        cause=f"it does not answer as one: it has no {_PROBE} either; perhaps a login page or a wrong address answers "
        f"in its place: {cause[-300:]}",
        next_step="sign in to the network or correct the index address, then run the same command again",
    )  # fmt: skip


def registry_answers(*, serve: bool = False) -> bool:
    """Whether the registry offers a distribution that it must have, and serves its file whole where that is asked.

    A login page that answers every address with 200, and a server that answers 404 or 401, look to uv and pip like a
    registry without files. A good answer stands for a few seconds, so that a ladder of refusals asks once.
    """
    uv = find_uv()
    if time.monotonic() - _proved.get((uv, serve), -math.inf) < _PROBE_HOLDS:
        return True
    with tempfile.TemporaryDirectory(prefix="probe-") as folder:
        if uv is not None and serve:
            command = [uv, "pip", "install", "--quiet", "--no-config", "--no-cache", "--no-deps"]
            command += ["--only-binary", ":all:"]
            command += ["--python", sys.executable, "--target", str(Path(folder, "out")), _PROBE]
        elif uv is not None:
            wanted = Path(folder, "wanted.in")
            wanted.write_text(f"{_PROBE}\n", "utf-8")
            command = [uv, "pip", "compile", "--quiet", "--no-config", "--no-cache", "--no-deps"]
            command += ["--python", sys.executable, str(wanted)]
        else:
            command = [*_pip(Path(folder, "pip")), "download", "--quiet", "--no-deps", "--no-cache-dir", "--no-input"]
            command += ["--disable-pip-version-check", "--dest", folder, _PROBE]
        if _execute(command, _PROBE_SECONDS, "the package registry was not asked").returncode != 0:
            return False
    _proved[uv, serve] = time.monotonic()
    return True
