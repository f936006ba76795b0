"""Paths resolved below a folder by hand: a link may lead anywhere inside it and nowhere else."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS = 40
"""As many links as the kernel follows."""


@contextmanager
def parent_beneath(root: Path, path: str, *, make: bool = False, follow: bool = True) -> Iterator[tuple[int, str]]:
    """The folder that holds a path, and the name in it.

    Args:
        root: the folder that is not left; links to absolute paths below it count as inside.
        path: relative to the root.
        make: make missing folders.
        follow: follow a link at the path's end.

    Raises:
        PermissionError: the path leads out of the root.
        IsADirectoryError: the path is the root itself.
        OSError: as the kernel says.
    """
    descent = _Descent(root, path)
    try:
        name = descent.go(make=make, follow=follow)
        yield descent.parent, name
    finally:
        descent.close()


class _Descent:
    """The folders from the root to where the descent has come."""

    def __init__(self, root: Path, path: str) -> None:
        self._root = root
        self._path = path
        self._left = _parts(path)
        self._folders = [os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
        self._links = 0

    @property
    def parent(self) -> int:
        """Descriptor of the folder reached."""
        return self._folders[-1]

    def go(self, *, make: bool, follow: bool) -> str:
        """Descend to the last folder; returns the name in it."""
        while self._left:
            name = self._left.pop()
            if name == "..":
                self._up()
                continue
            link = _link(self.parent, name) if self._left or follow else None
            if link is not None:
                self._follow(link)
                continue
            if not self._left:
                return name
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=self.parent)
            self._folders.append(os.open(name, _FOLDER, dir_fd=self.parent))
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self._path)

    def _up(self) -> None:
        if len(self._folders) == 1:
            raise PermissionError(errno.EACCES, "the path leads out of the workspace", self._path)
        os.close(self._folders.pop())

    def _follow(self, link: str) -> None:
        self._links += 1
        if self._links > _LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self._path)
        if link.startswith("/"):
            if not Path(link).is_relative_to(self._root):
                raise PermissionError(errno.EACCES, "a link leads out of the workspace", self._path)
            link = str(Path(link).relative_to(self._root))
            while len(self._folders) > 1:
                os.close(self._folders.pop())
        self._left += _parts(link)

    def close(self) -> None:
        """Free the descriptors."""
        for handle in self._folders:
            os.close(handle)


def _parts(path: str) -> list[str]:
    """Parts of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _link(parent: int, name: str) -> str | None:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return os.readlink(name, dir_fd=parent) if stat.S_ISLNK(status.st_mode) else None
