"""What a process tree takes: processes, threads, memory and disk, seen from outside."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from ..runtime.contract import Limits
from ._cgroup import Cgroup
from ._files import Walk

Excess = Literal["memory", "processes", "disk"]

_PAGE = os.sysconf("SC_PAGE_SIZE")
_ENTRY_BYTES = 4096
"""What the smallest file costs at least, so that empty ones count."""
_STEP_BYTES = 8 * 2**20
"""Less than a quarter of this is not worth a walk."""
GRACE_BYTES = 64 * 2**20
"""What may still be added by a command that starts over the limit, so that it can clean up."""


def task_limit(limits: Limits) -> int:
    """Hard limit of processes and threads together: threads are many where processes are few."""
    return 2 * limits.processes + 64


class Usage(NamedTuple):
    """What a process is seen to take."""

    threads: int
    resident: int
    """Bytes, shared ones counted in each process."""


class TreeMeter:
    """Counts a tree by walking it from its root process, for hosts without control groups.

    Args:
        root: process id; every descendant stays below it.
        count_root: whether the root itself belongs to the command.
    """

    def __init__(self, root: int, *, count_root: bool) -> None:
        self._root = root
        self._count_root = count_root

    def excess(self, limits: Limits) -> Excess | None:
        """The limit that is exceeded, if any."""
        processes = threads = resident = 0
        members = []
        for process in descendants(self._root):
            usage = _usage(process)
            if usage is None or (process == self._root and not self._count_root):
                continue
            members.append(process)
            processes += 1
            threads += usage.threads
            resident += usage.resident
            if processes > limits.processes or threads >= task_limit(limits):
                return "processes"
        if resident > limits.memory_bytes and _proportional(members, resident) > limits.memory_bytes:
            return "memory"
        return None


class GroupMeter:
    """Reads what the kernel counted for a control group."""

    def __init__(self, group: Cgroup) -> None:
        self._group = group

    def excess(self, limits: Limits) -> Excess | None:
        """The limit that is exceeded, if any."""
        if self._group.memory_exceeded():
            return "memory"
        processes, tasks = self._group.counts()
        return "processes" if processes > limits.processes or tasks >= task_limit(limits) else None


def descendants(root: int) -> Iterator[int]:
    """A process and everything below it."""
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process
        tasks = [str(process)]
        with suppress(OSError):
            tasks = os.listdir(f"/proc/{process}/task")  # noqa: PTH208 -- hot
        for task in tasks:
            with suppress(OSError):
                waiting += map(int, _read(f"/proc/{process}/task/{task}/children").split())


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while chunk := os.read(handle, 65536):
            content += chunk
        return content
    finally:
        os.close(handle)


def _usage(process: int) -> Usage | None:
    try:
        fields = _read(f"/proc/{process}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    return Usage(int(fields[17]), int(fields[21]) * _PAGE)


def user_tasks() -> int:
    """Processes and threads of the present user on the whole host."""
    mine = os.geteuid()
    total = 0
    for name in os.listdir("/proc"):  # noqa: PTH208 -- hot
        with suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == mine:  # noqa: PTH116 -- hot
                usage = _usage(int(name))
                total += usage.threads if usage else 0
    return total


def _proportional(members: Sequence[int], resident: int) -> int:
    """Bytes with shared pages counted once; what cannot be read keeps its resident size."""
    total = 0
    for process in members:
        try:
            lines = _read(f"/proc/{process}/smaps_rollup").splitlines()
        except OSError:
            total += usage.resident if (usage := _usage(process)) else 0
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
    return min(total, resident)


class Charge(NamedTuple):
    """What a command's use of the disk is measured against."""

    folders: tuple[Path, ...]
    """Host folders, and single files, that the command may write to."""
    before: int = 0
    """Bytes charged for them when the command starts, as far as known."""
    free_of_charge: int = 0
    """Bytes in them that are not charged, such as copies of the layers."""
    capped: tuple[tuple[Path, int], ...] = ()
    """Files that the command may write, and the size in bytes that each may have."""


class DiskMeter:
    """Measures folders, but walks them only when the file system says that much was written.

    Args:
        charge: the folders, and what they hold to begin with.
        processes: gives the command's processes, for files that were removed but are still open.
        shared_memory: gives a path to the tree's /dev/shm, or "".
    """

    def __init__(self, charge: Charge, *, processes: Callable[[], Iterator[int]], shared_memory: str = "") -> None:
        self._folders = charge.folders
        self._before = charge.before
        self._free_of_charge = charge.free_of_charge
        self._capped = charge.capped
        self._processes = processes
        self._shared_memory = shared_memory
        self._free = _free(self._folders)
        self._walked_at_free = self._free
        self._total = self._before

    @property
    def total(self) -> int:
        """Bytes charged now: measured, and estimated for what was written since."""
        return self._total + self._written(self._walked_at_free)

    def _written(self, since: tuple[int, ...]) -> int:
        return max((old - new for old, new in zip(since, _free(self._folders), strict=True)), default=0)

    def due(self, limits: Limits) -> bool:
        """Whether enough was written since the last walk to walk again."""
        enough = max(self.allowed(limits) - self._total, _STEP_BYTES) // 4
        return self._overgrown() or self._written(self._walked_at_free) > enough

    def _overgrown(self) -> bool:
        for path, size in self._capped:
            with suppress(OSError):
                if path.lstat().st_size > size:
                    return True
        return False

    def allowed(self, limits: Limits) -> int:
        """Bytes that the folders may hold."""
        return limits.disk_bytes if self._before <= limits.disk_bytes else self._before + GRACE_BYTES

    def measure(self, limits: Limits) -> Excess | None:
        """Walk, and say whether the limit is exceeded."""
        allowed = self.allowed(limits)
        self._walked_at_free = _free(self._folders)
        complete = True
        total = self._in_shared_memory() - self._free_of_charge
        for folder in self._folders:
            size, whole = folder_size(folder, allowed + self._free_of_charge)
            total += size
            complete = complete and whole
        written = self._written(self._free)
        if total <= allowed < written:
            total += self._removed_but_open()
            # A tree that hides from the walk is judged by what the file system lost meanwhile.
            total = total if complete else max(total, written)
        self._total = max(0, total)
        return "disk" if total > allowed or self._overgrown() else None

    def _in_shared_memory(self) -> int:
        with suppress(OSError):
            if self._shared_memory:
                status = os.statvfs(self._shared_memory)
                blocks = (status.f_blocks - status.f_bfree) * status.f_frsize
                return blocks + (status.f_files - status.f_ffree) * _ENTRY_BYTES
        return 0

    def _removed_but_open(self) -> int:
        sizes: dict[tuple[int, int], int] = {}
        for process in self._processes():
            with suppress(OSError):
                for name in os.listdir(f"/proc/{process}/fd"):  # noqa: PTH208 -- hot
                    with suppress(OSError):
                        status = os.stat(f"/proc/{process}/fd/{name}")  # noqa: PTH116 -- hot
                        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                            sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
        return sum(sizes.values())


def folder_size(folder: Path, enough: int) -> tuple[int, bool]:
    """Bytes on disk of a file or below a folder, and whether all of it could be seen; stops once there is `enough`."""
    if folder.is_file():
        return max(folder.stat().st_blocks * 512, _ENTRY_BYTES), True
    total = 0
    linked: set[int] = set()
    walk = Walk(folder, need=0, lenient=True)
    try:
        for entry in walk:
            status = entry.status
            if entry.leaving or status.st_ino in linked:
                continue
            if status.st_nlink > 1:
                linked.add(status.st_ino)
            total += max(status.st_blocks * 512, _ENTRY_BYTES)
            if total > enough:
                return total, True
    except OSError:
        return total, False
    return total, walk.complete


def _free(folders: Sequence[Path]) -> tuple[int, ...]:
    found = []
    for folder in folders:
        with suppress(OSError):
            status = os.statvfs(folder)
            # Inodes count too: a file system may run out of them first.
            found += [status.f_bfree * status.f_frsize, status.f_ffree * _ENTRY_BYTES]
            continue
        found += [0, 0]
    return tuple(found)
