"""Replaying a pack from outside: its own player, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from envsynth.errors import ExportError, SandboxError, boundary
from envsynth.exporters._folder import read_manifest
from envsynth.exporters._manifest import verified_pack
from envsynth.exporters._target_env import interpreter_of

_ALONE = """
import runpy, sys, types
name, folder = sys.argv[1:3]
del sys.argv[1:3]
package = sys.modules[name] = types.ModuleType(name)
package.__path__ = [folder]
runpy.run_module(f"{name}.replay", run_name="__main__", alter_sys=True)
"""
"""Runs a pack's player without the package's own `__init__`, which may import a trainer that is not installed."""


class ReplayLine(NamedTuple):
    """One trajectory played again."""

    task: str
    label: str
    expected: float
    got: float | None
    """None where the environment failed."""
    verdict: str
    """`same`, `differs` or `error`."""
    error: str


class ReplayReport(NamedTuple):
    """A pack's panel, played again."""

    lines: tuple[ReplayLine, ...]
    exit_code: int
    """0: all the same; 1: one differs; 3: the environment failed."""
    trouble: str
    """Why nothing, or not everything, was played; empty when all was."""
    digest: str = ""
    """Of the pack that was played."""


def replay(
    pack: Path,
    *,
    task: str = "",
    sandbox: str = "",
    target: str = "",
    progress: Callable[[ReplayLine], None] = lambda _: None,
) -> ReplayReport:
    """Play a pack's panel with the pack's own code and compare every reward.

    Args:
        pack: the pack's folder.
        task: play this one only; empty: all.
        sandbox: `auto`, `bubblewrap`, `docker`, `docker:RUNTIME` or `local`; empty: `$ENVSYNTH_SANDBOX`, else `auto`.
        target: the pack's format: each trajectory is also played through that trainer's own runtime, in a virtual
            environment of its own, and every component of the reward is compared. Empty: not.
        progress: told each line as it comes.

    Raises:
        ConfigError: packs of this format are not played through a runtime.
        ExportError: the folder is no pack of this format, or its files are not those of its manifest.
        SandboxError: the player cannot be started, or the target's environment cannot be made.
    """
    found = verified_pack(pack)
    python = Path(sys.executable) if not target else _target_python(pack, target)
    package = _playable(pack, found.package)
    alone = ["-c", _ALONE, package, str(pack.absolute() / package)]
    command = [str(python), *(["-m", f"{package}.replay", "--through"] if target else alone), "--json"]
    command += [f"--sandbox={sandbox}"] * bool(sandbox) + ["--", task] * bool(task)
    lines, trouble, last = [], "", ""
    with (
        boundary(SandboxError, "the pack's player cannot be started", where=str(pack)),
        _variables(pack) as variables,
        subprocess.Popen(
            command, cwd=pack, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf-8", errors="replace", env=variables,
        ) as player,
    ):  # fmt: skip
        for text in player.stdout or ():
            document = _parsed(text)
            if "verdict" in document:
                lines.append(ReplayLine(*(document[name] for name in ReplayLine._fields)))
                progress(lines[-1])
            trouble = str(document.get("trouble", trouble))
            last = text.strip() if any(map(str.isalnum, text)) else last  # a group of exceptions ends with a ruler
    code = player.returncode
    told = bool(trouble) or {1: "differs", 3: "error"}.get(code) in {line.verdict for line in lines}
    if code not in (0, 1, 2, 3) or (code and not told):
        code, trouble = 3, f"the player broke off: {last[:300]}"
    return ReplayReport(tuple(lines), code, trouble, found.digest)


@contextmanager
def _variables(pack: Path) -> Iterator[Mapping[str, str]]:
    """The player's environment: the pack's folder leads the import path and stays as it is."""
    variables = {**os.environ, "PYTHONPATH": str(pack.absolute()), "PYTHONDONTWRITEBYTECODE": "1"}
    if next(pack.rglob("__pycache__"), None) is None:
        yield variables
        return
    # The manifest knows nothing of compiled files: those that lie in the pack are not believed.
    variables.pop("PYTHONDONTWRITEBYTECODE")
    with tempfile.TemporaryDirectory() as folder:
        yield {**variables, "PYTHONPYCACHEPREFIX": folder}


def _target_python(pack: Path, target: str) -> Path:
    """The interpreter that plays a pack through its target's runtime."""
    written = read_manifest(pack).get("format")
    if target != written:
        raise ExportError(
            f"the pack is for {written}", where=str(pack), next_step=f"say --target {written}, or export for {target}"
        )
    return interpreter_of(target)


def _parsed(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def plays(pack: Path) -> bool:
    """Whether a pack brings what plays it; tables do not."""
    return "package" in read_manifest(pack)


def verified_package(pack: Path) -> str:
    """Name of a pack's package, once every file was found as the manifest has it.

    Raises:
        ExportError: the folder is no pack that brings what plays it, or it is not as the manifest has it.
    """
    return _playable(pack, verified_pack(pack).package)


def _playable(pack: Path, package: str) -> str:
    if not package:
        raise ExportError(
            "this is no pack that can be played", where=str(pack), cause="it brings tables, and no player",
            next_step="export the tasks for a trainer, such as --format gymnasium",
        )  # fmt: skip
    return package
