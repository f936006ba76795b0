"""Reading and writing files through a command inside, so that the kernel resolves every path there."""

from __future__ import annotations

import errno
import os
import posixpath
from typing import NoReturn, Protocol

from ..errors import SandboxError
from ..runtime.contract import ExecResult, Limits

_IS_FOLDER, _NOT_REGULAR, _TOO_LARGE = 91, 92, 93
_WALL_S = 60.0

_READ = f"""
[ -d "$1" ] && exit {_IS_FOLDER}
[ -e "$1" ] && [ ! -f "$1" ] && exit {_NOT_REGULAR}
exec head -c "$2" "$1"
"""
_WRITE = f"""
mkdir -p "$2" || exit 1
[ -d "$1" ] && exit {_IS_FOLDER}
[ -e "$1" ] && [ ! -f "$1" ] && exit {_NOT_REGULAR}
tee "$1" >/dev/null || exit 1
[ -z "$3" ] || exec chmod "$3" "$1"
"""
_REMOVE = f"""
[ -d "$1" ] && [ ! -L "$1" ] && exit {_IS_FOLDER}
exec rm -f "$1"
"""
_ERRNOS = {os.strerror(number): number for number in errno.errorcode}


class Exec(Protocol):
    """A sandbox's `exec`."""

    def __call__(
        self, command: list[str], *, limits: Limits, cwd: str, variables: dict[str, str], stdin: bytes
    ) -> ExecResult:
        """Run a command."""


def read_file(execute: Exec, path: str, max_bytes: int) -> bytes:
    """Content of a regular file, by its absolute path inside."""
    result = _run(execute, _READ, [path, str(max_bytes + 1)], output_bytes=max_bytes + 4096)
    if result.exit_code != 0:
        _fail(result, path)
    if len(result.stdout) > max_bytes:
        raise ValueError(f"larger than {max_bytes} bytes: {path!r}")
    return result.stdout


def write_file(execute: Exec, path: str, content: bytes, executable: bool | None) -> None:
    """Write a file by its absolute path inside, and make its parents."""
    mode = "" if executable is None else "a+x" if executable else "a-x"
    result = _run(execute, _WRITE, [path, posixpath.dirname(path), mode], stdin=content)
    if result.exit_code != 0:
        _fail(result, path)


def remove_file(execute: Exec, path: str) -> None:
    """Remove a file or link by its absolute path inside."""
    result = _run(execute, _REMOVE, [path])
    if result.exit_code != 0:
        _fail(result, path)


def _run(execute: Exec, script: str, words: list[str], *, stdin: bytes = b"", output_bytes: int = 4096) -> ExecResult:
    if any("\0" in word for word in words):
        raise ValueError("a path holds a NUL byte")
    limits = Limits(wall_s=_WALL_S, output_bytes=output_bytes, file_bytes=max(2**30, len(stdin)))
    return execute(
        ["/bin/sh", "-c", script, "sh", *words],
        limits=limits, cwd="/", variables={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, stdin=stdin,
    )  # fmt: skip


def _fail(result: ExecResult, path: str) -> NoReturn:
    if result.ended_by == "disk":
        raise OSError(errno.EDQUOT, "the sandbox's disk limit is reached", path)
    if result.ended_by != "exit":
        raise SandboxError(f"reading or writing a file ended by {result.ended_by}", where=path)
    if result.exit_code == _IS_FOLDER:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if result.exit_code == _NOT_REGULAR:
        raise ValueError(f"not a regular file: {path!r}")
    lines = result.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
    number = _ERRNOS.get(lines[0].rpartition(": ")[2])
    if number is None:
        raise SandboxError("a file could not be read or written", where=path, cause=lines[0])
    # OSError picks the subclass that belongs to the number.
    raise OSError(number, os.strerror(number), path)
