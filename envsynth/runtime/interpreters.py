"""Finds the Python interpreters installed on this machine: PATH, pyenv, uv's own, and the running one."""

from __future__ import annotations

import errno
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ..errors import SandboxError

PROBES = 4
"""How many interpreters are asked at a time."""
_PROBE = (
    "import sys, ssl, venv; "
    "print('%d.%d %d %s' % (sys.version_info[0], sys.version_info[1], sys.version_info[2], "
    "getattr(sys, '_base_executable', '') or sys.executable))"
)


class Interpreter(NamedTuple):
    """One installed CPython."""

    version: str
    """Major and minor, such as `3.11`."""
    patch: int
    path: Path
    """The executable itself, not a virtual environment's link to it."""


@functools.cache
def installed_interpreters() -> tuple[Interpreter, ...]:
    """Working interpreters, oldest first, the one with the highest patch release for each version."""
    best: dict[str, Interpreter] = {}
    with ThreadPoolExecutor(PROBES) as pool:
        answers = list(pool.map(_probe, dict.fromkeys(_places())))
    for found in answers:
        if found is not None and (found.version not in best or found.patch > best[found.version].patch):
            best[found.version] = found
    return tuple(sorted(best.values(), key=lambda one: version_tuple(one.version)))


def version_tuple(version: str) -> tuple[int, ...]:
    """`3.11` as (3, 11)."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _places() -> Iterator[Path]:
    yield Path(sys.executable)
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    yield from _matching(pyenv, "versions/3.*/bin/python3")
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    managed = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv/python")
    yield from _matching(managed, "cpython-3.*/bin/python3")
    shims = pyenv / "shims"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        # pyenv's shims start a shell that mostly answers "not selected"; what they lead to is listed above.
        if folder and Path(folder) != shims:
            found = _matching(Path(folder), "python3.*")
            yield from (path for path in found if re.fullmatch(r"python3\.\d+", path.name))


def _matching(folder: Path, pattern: str) -> list[Path]:
    """Paths below a folder, sorted; none where it may not be read, such as another user's."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def _probe(path: Path) -> Interpreter | None:
    """Ask an interpreter for its version; None where it does not start or lacks what a build needs.

    Raises:
        SandboxError: the machine has no process or memory to spare, which says nothing about the interpreter.
    """
    try:
        answer = subprocess.run(
            [str(path), "-I", "-c", _PROBE], capture_output=True, timeout=20, check=True, stdin=subprocess.DEVNULL
        ).stdout.decode("utf-8", "surrogateescape")
        version, patch, executable = answer.strip().split(" ", 2)
    except OSError as exc:
        if exc.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
            raise SandboxError(
                "the installed interpreters cannot be listed", where=str(path), cause=str(exc.strerror),
                next_step="free some processes or memory and run the same command again",
            ) from exc  # fmt: skip
        return None
    except (subprocess.SubprocessError, ValueError):
        return None
    return Interpreter(version, int(patch), Path(executable))
