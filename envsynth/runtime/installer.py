"""Makes virtual environments and installs wheels: with uv where it is found, else with venv and pip alone."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import SandboxError, disk_full

INSTALL_SECONDS = 900.0
VENV_SECONDS = 120.0
NOT_INSTALLED = "the pinned distributions were not installed"

UNREACHABLE = re.compile(
    r"dns error|failed to lookup address|name or service not known|temporary failure in name resolution|"
    r"connection (?:refused|reset|timed out|aborted)|network is unreachable|error sending request|tcp connect error|"
    r"operation timed out|failed to establish a new connection|no route to host|certificate|tls handshake|"
    r"tunnel error|proxy|http status (?:server error|client error \(4(?:01|03|07|29))|max retries exceeded",
    re.I,
)
"""What uv and pip say when the registry, not the requirement, is at fault."""


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
        command += ["--python", python, *pins]
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
        SandboxError: it failed; the cause is its last line, and the error is retryable where the registry was at fault.
    """
    variables = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    variables |= {"UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=timeout_s, check=False, env=variables, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise SandboxError(
            what, where=Path(command[0]).name, cause=f"no end after {timeout_s:.0f} s",
            next_step="check the connection to the package registry and run the same command again",
        ) from None  # fmt: skip
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    raise failure(what, (done.stderr + done.stdout).decode("utf-8", "replace"))


def failure(what: str, said: str) -> SandboxError:
    """Classify what an installer printed: no registry, no disk, or a distribution that cannot be had."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    cause = " ".join(lines)[-600:]
    if "No space left on device" in said or "os error 28" in said:
        return disk_full(what)
    if UNREACHABLE.search(said):
        return SandboxError(
            what, where="package registry", cause=f"it cannot be reached: {cause[-300:]}", retryable=True,
            next_step="check the connection, proxy and certificate settings, then run the same command again",
        )  # fmt: skip
    return SandboxError(
        what, cause=cause, retryable=False,
        next_step="see the cause; a distribution that was withdrawn needs another source",
    )  # fmt: skip
