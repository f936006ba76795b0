"""pytest's byte code of the plug-ins in an environment, made once and not by every run.

pytest rewrites the asserts of each installed plug-in before it imports it, and keeps what it compiled beside the
source. Runs cannot: the environment is read-only to them. So each would start by compiling all of them anew, which for
some plug-ins takes longer than the tests do. Here the first run of an environment is preceded by one without a project,
whose byte code is taken into the environment. pytest checks it against the source and does without what does not fit.

It was made in a sandbox by the environment's own code, and nothing but a sandbox ever loads it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from .seal import READY

DONE = "pytest-plugins"
"""In a folder `__pycache__` of the environment, which its seal leaves alone: says that there is nothing left to do."""
MAX_BYTES = 16 * 2**20
"""Of one file of byte code."""
_BYTE_CODE = re.compile(r"(?P<module>[^.]+)\.[^.]+-pytest-[^/]+\.pyc")
_looked_at: set[Path] = set()
"""Environments that this process has dealt with, in whatever way."""

Compiled = Iterable[tuple[str, bytes]]
"""Relative path, as if it lay beside its source, and content."""


def keep_plugin_code(environment: Path, compiled: Callable[[], Compiled]) -> None:
    """Take byte code into an environment, unless it has it or has no plug-ins.

    Args:
        environment: host folder; one that is not sealed is not ours and stays as it is.
        compiled: runs pytest without a project and gives what it compiled.

    Raises:
        SandboxError: what `compiled` raises.
    """
    if environment in _looked_at:
        return
    _looked_at.add(environment)
    done = environment / "__pycache__" / DONE
    if not (environment / READY).is_file() or done.exists() or not _has_plugins(environment):
        return
    # Whoever may not write here does without.
    with suppress(OSError):
        for path, content in compiled():
            _take(environment, path, content)
        _write(done, b"")


def _has_plugins(environment: Path) -> bool:
    declared = environment.glob("lib/python3*/site-packages/*.dist-info/entry_points.txt")
    return any("[pytest11]" in file.read_text("utf-8", "replace") for file in declared)


def _take(environment: Path, path: str, content: bytes) -> None:
    """Put one file to its source; what is not pytest's byte code of a source file of the environment is left out."""
    place = PurePosixPath(path)
    named = _BYTE_CODE.fullmatch(place.name)
    if named is None or ".." in place.parts:
        return
    folder = environment / place.parent
    source = folder / f"{named['module']}.py"
    if source.is_file() and folder.resolve().is_relative_to(environment.resolve()):
        _write(folder / "__pycache__" / place.name, content)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
