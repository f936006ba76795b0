"""Control groups of either version, used where the kernel lets us and never left behind."""

from __future__ import annotations

import functools
import itertools
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

_PREFIX = "envsynth-"
_YOUNG_S = 5.0
"""A group may be new and its owner invisible from here, in another process namespace."""
_SWEEP_S = 60.0
_last_sweep: dict[str, float] = {}
_counter = itertools.count()
_left: set[Path] = set()
"""Groups to be removed."""


class Cgroup:
    """One group: a folder for each controller of version 1, or one of version 2."""

    def __init__(self, folders: dict[str, Path], unified: bool) -> None:
        self._folders = folders
        self._unified = unified

    @classmethod
    def make(cls, memory_bytes: int, tasks: int) -> Cgroup | None:
        """A new group with limits, or None where groups cannot be used."""
        parents = _parents()
        if parents is None:
            return None
        unified, places = parents
        _sweep_now_and_then(places)
        name = f"{_PREFIX}{os.getpid()}-{_start_time(os.getpid())}-{next(_counter)}"
        folders = {controller: place / name for controller, place in places.items()}
        group = cls(folders, unified)
        try:
            for folder in set(folders.values()):
                folder.mkdir()
            group._limit(memory_bytes, tasks)
        except OSError:
            group.close()
            return None
        return group

    def _limit(self, memory_bytes: int, tasks: int) -> None:
        memory, pids = self._folders["memory"], self._folders["pids"]
        (memory / ("memory.max" if self._unified else "memory.limit_in_bytes")).write_text(str(memory_bytes))
        (pids / "pids.max").write_text(str(tasks))
        with suppress(OSError):  # swap may not be counted here
            if self._unified:
                (memory / "memory.swap.max").write_text("0")
            else:
                (memory / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))

    def add(self, process: int) -> None:
        """Put a process, and what it will start, into the group.

        Raises:
            OSError: the kernel refuses.
        """
        for folder in set(self._folders.values()):
            (folder / "cgroup.procs").write_text(str(process))

    def memory_exceeded(self) -> bool:
        """Whether the kernel had to kill for memory."""
        name = "memory.events" if self._unified else "memory.oom_control"
        with suppress(OSError):
            for line in (self._folders["memory"] / name).read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1]) > 0
        return False

    def counts(self) -> tuple[int, int]:
        """Processes and tasks (threads) in the group."""
        with suppress(OSError, ValueError):
            processes = (self._folders["pids"] / "cgroup.procs").read_bytes().count(b"\n")
            return processes, int((self._folders["pids"] / "pids.current").read_bytes())
        return 0, 0

    def cpu_s(self) -> float:
        """Seconds of processor time that the group has taken; 0 where they are not counted."""
        with suppress(OSError, ValueError, KeyError):
            if not self._unified:
                return int((self._folders["cpuacct"] / "cpuacct.usage").read_bytes()) / 1e9
            for line in (self._folders["memory"] / "cpu.stat").read_text().splitlines():
                if line.startswith("usage_usec "):
                    return int(line.split()[1]) / 1e6
        return 0.0

    def drop_pages(self) -> None:
        """Forget what the group's processes, now dead, were the first to read: which pages are cached is a note.

        Pages that others use stay. Nothing happens where the kernel has no means.
        """
        memory = self._folders["memory"]
        with suppress(OSError):  # an older kernel, or less could be dropped than asked
            if self._unified:
                (memory / "memory.reclaim").write_text((memory / "memory.current").read_text().strip())
            else:
                (memory / "memory.force_empty").write_text("0")

    def close(self) -> None:
        """Remove the group; every process of it is dead, though the kernel may need a moment."""
        _left.update(self._folders.values())
        for pause in (0.0, 0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4):
            time.sleep(pause)
            # Those of earlier commands too, where the kernel was slow.
            for folder in list(_left):
                with suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    _left.discard(folder)
            if not _left:
                return


def group_of(process: int) -> Cgroup | None:
    """The group of another process, to be read and never changed; None where it cannot be seen from here."""
    try:
        mounts = _mounts()
        its = dict(_memberships(process))
    except (OSError, ValueError):
        return None
    wanted = {"memory", "pids", "cpuacct"}
    found: dict[str, Path] = {}
    for root, point, controllers in mounts:
        if controllers == {"cgroup2"} and "" in its and not wanted & its.keys():
            place = _below(root, point, its[""])
            found.update(memory=place, pids=place)
        for controller in controllers & wanted & its.keys():
            found[controller] = _below(root, point, its[controller])
    if not all(controller in found and found[controller].is_dir() for controller in ("memory", "pids")):
        return None
    return Cgroup(found, unified=found["memory"] == found["pids"])


@functools.cache
def _parents() -> tuple[bool, dict[str, Path]] | None:
    """The writable folders under which groups are made, by controller, and whether they are of version 2."""
    try:
        mounts = _mounts()
        mine = dict(_memberships())
    except OSError:
        return None
    return _version_two(mounts, mine) or _version_one(mounts, mine)


def _version_two(mounts: list[tuple[str, Path, set[str]]], mine: dict[str, str]) -> tuple[bool, dict[str, Path]] | None:
    if "" not in mine:
        return None
    for root, point, controllers in mounts:
        if controllers != {"cgroup2"}:
            continue
        place = _below(root, point, mine[""])
        # A group that holds processes cannot hold limited groups, so one that already does is looked for upwards.
        while place != point.parent:
            with suppress(OSError):
                enabled = set((place / "cgroup.subtree_control").read_text().split())
                if {"memory", "pids"} <= enabled and _writable(place):
                    return True, {"memory": place, "pids": place}
            place = place.parent
    return None


def _version_one(mounts: list[tuple[str, Path, set[str]]], mine: dict[str, str]) -> tuple[bool, dict[str, Path]] | None:
    places: dict[str, Path] = {}
    for root, point, controllers in mounts:
        for controller in controllers & {"memory", "pids"} & mine.keys():
            place = _below(root, point, mine[controller])
            if _writable(place):
                places[controller] = place
    return (False, places) if len(places) == 2 else None


def _writable(place: Path) -> bool:
    return os.access(place, os.W_OK) and os.access(place / "cgroup.procs", os.W_OK)


def _below(root: str, point: Path, membership: str) -> Path:
    inside = membership.removeprefix(root) if root != "/" else membership
    return point / inside.strip("/")


def _mounts() -> list[tuple[str, Path, set[str]]]:
    """Root, mount point and controllers of every mounted hierarchy; version 2 as `{"cgroup2"}`."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, _, options) = left.split(), right.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            controllers = {"cgroup2"} if kind == "cgroup2" else set(options.split(","))
            found.append((fields[3], Path(fields[4]), controllers))
    return found


def _memberships(process: int | Literal["self"] = "self") -> list[tuple[str, str]]:
    """A process's group by controller; version 2 has the empty name."""
    found = []
    for line in Path(f"/proc/{process}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        found += [(controller, path) for controller in controllers.split(",")]
    return found


def _start_time(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]


def _sweep_now_and_then(places: dict[str, Path]) -> None:
    now = time.monotonic()
    if now - _last_sweep.get("at", -_SWEEP_S) >= _SWEEP_S:
        _last_sweep["at"] = now
        for place in set(places.values()):
            _sweep(place)


def _sweep(place: Path) -> None:
    """Remove the groups that killed processes of ours left behind."""
    for folder in place.glob(f"{_PREFIX}*-*-*"):
        with suppress(OSError, ValueError):
            owner, started = folder.name.removeprefix(_PREFIX).split("-")[:2]
            young = time.time() - folder.stat().st_mtime < _YOUNG_S
            try:
                alive = _start_time(int(owner)) == started
            except FileNotFoundError:
                alive = False
            if not alive and not young:
                folder.rmdir()
