"""Trees that a hostile program may have made: walked, copied and removed without following links.

Everything goes step by step through directory file descriptors with `O_NOFOLLOW`, needs neither recursion nor
one descriptor a level, and copes with paths longer than the kernel's limit, unreadable modes, special files and
names that are not UTF-8 (`surrogateescape`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 2**20

FileKind = Literal["file", "executable", "symlink"]


class Entry(NamedTuple):
    """One step of a walk. A directory comes twice: before its entries, and after them with `leaving`."""

    parent: int
    """Descriptor of the folder, valid until the next step."""
    name: str
    status: os.stat_result
    walk: Walk
    leaving: bool = False

    @property
    def path(self) -> str:
        """Relative to the root of the walk; to be asked for before the next step."""
        return "/".join((*self.walk.folders, self.name))

    @property
    def place(self) -> str:
        """A path of any length's entry for calls that take no directory descriptor."""
        return f"/proc/self/fd/{self.parent}/{self.name}"


@dataclass
class _Level:
    entry: Entry | None
    identity: tuple[int, int]
    names: list[str]
    mode: int | None = None
    """The mode to give back, where the walk had to change it."""


@dataclass
class Walk:
    """Depth-first walk of a folder.

    Args:
        root: the folder; itself not an entry.
        need: permission bits that every folder is given while it is walked; 0 never changes a mode.
        lenient: skip what cannot be read and set `complete` to False, for trees in use.
    """

    root: Path
    need: int = 0o500
    lenient: bool = False
    complete: bool = True
    _levels: list[_Level] = field(default_factory=list)
    _current: int = -1
    _pruned: bool = False

    @property
    def folders(self) -> list[str]:
        """Names of the folders from the root to where the walk is."""
        return [level.entry.name for level in self._levels if level.entry is not None]

    def prune(self) -> None:
        """Do not enter the folder that was just yielded; it is not left either."""
        self._pruned = True

    def __iter__(self) -> Iterator[Entry]:
        """Yield entries, names within a folder in no order.

        Raises:
            OSError: a folder cannot be read, or changed place during the walk.
        """
        mode = _open_up(self.root, self.need)
        self._current = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._levels = [self._level(None)]
            self._levels[0].mode = mode
            while self._levels:
                level = self._levels[-1]
                if level.names:
                    yield from self._step(level.names.pop())
                elif (left := self._leave()) is not None:
                    yield left
        finally:
            # An abandoned walk gives back the modes it can still reach.
            while self._levels and self._current >= 0:
                with suppress(OSError):
                    self._leave()
            if self._current >= 0:
                os.close(self._current)

    def _step(self, name: str) -> Iterator[Entry]:
        try:
            status = os.stat(name, dir_fd=self._current, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as exc:
            self._skip(exc)
            return
        entry = Entry(self._current, name, status, self)
        if not stat.S_ISDIR(status.st_mode):
            yield entry
            return
        mode = stat.S_IMODE(status.st_mode)
        locked = mode & self.need != self.need
        try:
            if locked:
                _chmod_at(self._current, name, mode | self.need)
            yield entry
            if self._pruned:
                self._pruned = False
                if locked:
                    _chmod_at(self._current, name, mode)
                return
            self._enter(entry, mode if locked else None)
        except FileNotFoundError:
            return
        except OSError as exc:
            self._skip(exc)

    def _skip(self, error: OSError) -> None:
        self.complete = False
        if not self.lenient:
            raise error

    def _level(self, entry: Entry | None) -> _Level:
        status = os.fstat(self._current)
        names = os.listdir(self._current)  # noqa: PTH208 -- a descriptor, not a path
        return _Level(entry, (status.st_dev, status.st_ino), names)

    def _enter(self, entry: Entry, mode: int | None) -> None:
        above = self._current
        self._current = os.open(entry.name, _DIRECTORY, dir_fd=above)
        try:
            level = self._level(entry)
        except OSError:
            os.close(self._current)
            self._current = above
            raise
        level.mode = mode
        self._levels.append(level)
        os.close(above)

    def _leave(self) -> Entry | None:
        level = self._levels.pop()
        below = self._current
        self._current = -1
        try:
            if self._levels:
                self._current = os.open("..", _DIRECTORY, dir_fd=below)
                status = os.fstat(self._current)
                if (status.st_dev, status.st_ino) != self._levels[-1].identity:
                    self._levels.clear()
                    raise OSError(errno.EBUSY, "a folder was moved while it was read", str(self.root))
            if level.mode is not None:
                os.fchmod(below, level.mode)
        finally:
            os.close(below)
        if level.entry is None:
            return None
        return level.entry._replace(parent=self._current, leaving=True)


def _open_up(root: Path, need: int) -> int | None:
    """Give a root folder of ours the permissions it needs; returns the mode to give back, if it changed."""
    mode = stat.S_IMODE(root.stat().st_mode)
    if mode & need == need:
        return None
    root.chmod(mode | need)
    return mode


def _chmod_at(parent: int, name: str, mode: int) -> None:
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(mode)
    finally:
        os.close(handle)


@contextmanager
def open_regular(parent: int, name: str, *, force: bool = True) -> Iterator[int]:
    """Open a regular file for reading, with `force` whatever its mode, which is given back.

    Raises:
        ValueError: not a regular file.
        OSError: it is a link, or gone.
    """
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):
        raise ValueError(f"not a regular file: {name!r}")
    locked = force and not mode & 0o400
    if locked:
        _chmod_at(parent, name, stat.S_IMODE(mode) | 0o400)
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    finally:
        if locked:
            _chmod_at(parent, name, stat.S_IMODE(mode))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError(f"not a regular file: {name!r}")
        yield handle
    finally:
        os.close(handle)


def remove_tree(root: Path) -> None:
    """Remove a folder whole; nothing happens where there is none."""
    with suppress(FileNotFoundError):
        for entry in Walk(root, need=0o700):
            if entry.leaving:
                os.rmdir(entry.name, dir_fd=entry.parent)
            elif not stat.S_ISDIR(entry.status.st_mode):
                os.unlink(entry.name, dir_fd=entry.parent)
        root.rmdir()


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder's entries into an existing folder: modes, times, links among them, holes, `user.` attributes."""
    _Copy(target).run(source)


class _Copy:
    """One copy: follows the walk of the source with a descriptor in the target."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._current = -1
        self._linked: dict[tuple[int, int], str] = {}

    def run(self, source: Path) -> None:
        self._current = os.open(self._target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _copy_attributes(str(source), self._current)
            mode = stat.S_IMODE(source.stat().st_mode)
            for entry in Walk(source):
                if entry.leaving:
                    self._leave(entry)
                elif stat.S_ISDIR(entry.status.st_mode):
                    self._enter(entry)
                else:
                    self._copy(entry)
            os.fchmod(self._current, mode)
        finally:
            os.close(self._current)

    def _enter(self, entry: Entry) -> None:
        try:
            os.mkdir(entry.name, 0o700, dir_fd=self._current)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(entry.name, dir_fd=self._current, follow_symlinks=False).st_mode):
                os.unlink(entry.name, dir_fd=self._current)
                os.mkdir(entry.name, 0o700, dir_fd=self._current)
            _chmod_at(self._current, entry.name, 0o700)
        inside = os.open(entry.name, _DIRECTORY, dir_fd=self._current)
        _copy_attributes(entry.place, inside)
        os.close(self._current)
        self._current = inside

    def _leave(self, entry: Entry) -> None:
        os.utime(self._current, ns=(entry.status.st_atime_ns, entry.status.st_mtime_ns))
        above = os.open("..", _DIRECTORY, dir_fd=self._current)
        os.fchmod(self._current, stat.S_IMODE(entry.status.st_mode))
        os.close(self._current)
        self._current = above

    def _copy(self, entry: Entry) -> None:
        status, name = entry.status, entry.name
        self._make_way(name)
        if status.st_nlink > 1:
            identity = (status.st_dev, status.st_ino)
            first = self._linked.setdefault(identity, entry.path)
            if first != entry.path:
                with suppress(OSError):  # too long a path, or behind a closed folder: a copy of its own
                    os.link(self._target / first, name, dst_dir_fd=self._current, follow_symlinks=False)
                    return
        if stat.S_ISREG(status.st_mode):
            self._copy_regular(entry)
        elif stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(name, dir_fd=entry.parent), name, dir_fd=self._current)
            os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=self._current, follow_symlinks=False)
        else:
            os.mknod(name, status.st_mode, status.st_rdev, dir_fd=self._current)

    def _make_way(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._current)
        except FileNotFoundError:
            return
        except (IsADirectoryError, PermissionError):
            remove_tree(Path(f"/proc/self/fd/{self._current}/{name}"))

    def _copy_regular(self, entry: Entry) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        copy = os.open(entry.name, flags, 0o600, dir_fd=self._current)
        try:
            with open_regular(entry.parent, entry.name) as original:
                copy_content(original, copy, entry.status)
                _copy_attributes(original, copy)
            os.fchmod(copy, stat.S_IMODE(entry.status.st_mode))
            os.utime(copy, ns=(entry.status.st_atime_ns, entry.status.st_mtime_ns))
        finally:
            os.close(copy)


def copy_content(original: int, copy: int, status: os.stat_result) -> None:
    """Copy a file's content between descriptors, holes as holes."""
    if status.st_size <= status.st_blocks * 512:
        while chunk := os.read(original, _CHUNK):
            _write_all(copy, chunk)
        return
    os.ftruncate(copy, status.st_size)
    start = 0
    while start < status.st_size:
        try:
            start = os.lseek(original, start, os.SEEK_DATA)
        except OSError as exc:
            if exc.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(original, start, os.SEEK_HOLE)
        os.lseek(copy, start, os.SEEK_SET)
        while start < end:
            chunk = os.pread(original, min(_CHUNK, end - start), start)
            if not chunk:
                return
            _write_all(copy, chunk)
            start += len(chunk)


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]


def _copy_attributes(original: int | str, copy: int) -> None:
    # Opaque folders of an overlay are marked by such an attribute. A file system without attributes has none.
    with suppress(OSError):
        for name in os.listxattr(original):
            if name.startswith("user."):
                os.setxattr(copy, name, os.getxattr(original, name))


def read_inside(root: Path, path: str, max_bytes: int) -> tuple[bytes, FileKind]:
    """Content of a file or link below a host folder, no part of the path followed through a link.

    Raises:
        FileNotFoundError: gone, or reached through a link.
        ValueError: not a regular file or link, or larger than `max_bytes`.
    """
    *folders, name = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in (*folders, name)):
        raise FileNotFoundError(errno.ENOENT, "not a path inside", path)
    with _parent(root, folders, path) as parent:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(os.readlink(name, dir_fd=parent)), "symlink"
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            raise FileNotFoundError(errno.ENOENT, "removed", path)
        if status.st_size > max_bytes:
            raise ValueError(f"larger than {max_bytes} bytes: {path!r}")
        with open_regular(parent, name) as handle, os.fdopen(os.dup(handle), "rb") as file:
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise ValueError(f"larger than {max_bytes} bytes: {path!r}")
        return content, "executable" if status.st_mode & 0o100 else "file"


@contextmanager
def _parent(root: Path, folders: list[str], path: str) -> Iterator[int]:
    before = _open_up(root, 0o500)
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    locked: list[tuple[int, int]] = [] if before is None else [(os.dup(current), before)]
    try:
        for folder in folders:
            try:
                status = os.stat(folder, dir_fd=current, follow_symlinks=False)
                mode = stat.S_IMODE(status.st_mode)
                closed = stat.S_ISDIR(status.st_mode) and mode & 0o500 != 0o500
                if closed:
                    _chmod_at(current, folder, mode | 0o500)
                inside = os.open(folder, _DIRECTORY, dir_fd=current)
            except (NotADirectoryError, FileNotFoundError) as exc:
                raise FileNotFoundError(errno.ENOENT, "gone, or reached through a link", path) from exc
            if closed:
                locked.append((os.dup(inside), mode))
            os.close(current)
            current = inside
        yield current
    finally:
        for handle, mode in reversed(locked):
            os.fchmod(handle, mode)
            os.close(handle)
        os.close(current)
