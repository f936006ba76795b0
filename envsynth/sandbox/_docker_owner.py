"""Whose containers are whose: labels that say who made one, and the sweep of those whose maker was killed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..errors import SandboxError, boundary
from ._docker_client import API, discard

OWNER = "io.envsynth.owner"
DEADLINE = "io.envsynth.deadline"
KIND = "io.envsynth.kind"
_SWEEP_S = 60.0
_last_sweep: dict[int, float] = {}


class Owner(NamedTuple):
    """A process, named so that no other is taken for it."""

    boot: str
    namespace: str
    """Process namespace: ids mean nothing outside it."""
    process: int
    started: str

    @classmethod
    def present(cls) -> Owner:
        """This process."""
        return cls(_boot(), _namespace(), os.getpid(), _start_time(os.getpid()))

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The owner that a label names; None where it is not one of ours."""
        parts = text.split("/")
        if len(parts) != 4 or not parts[2].isdigit():
            return None
        return cls(parts[0], parts[1], int(parts[2]), parts[3])

    def __str__(self) -> str:
        return "/".join((self.boot, self.namespace, str(self.process), self.started))

    def dead(self) -> bool | None:
        """Whether it has ended; None where that cannot be seen from here."""
        if (self.boot, self.namespace) != (_boot(), _namespace()):
            return None
        try:
            return _start_time(self.process) != self.started
        except OSError:
            return True


def labels(wall_s: float) -> dict[str, str]:
    """Labels of a container whose command may take so long."""
    return {KIND: "sandbox", OWNER: str(Owner.present()), DEADLINE: str(int(time.time() + wall_s))}


def sweep_now_and_then(api: API) -> None:
    """Sweep, at most once a minute in each process."""
    now = time.monotonic()
    if now - _last_sweep.get(os.getpid(), -_SWEEP_S) >= _SWEEP_S:
        _last_sweep[os.getpid()] = now
        sweep(api)


def sweep(api: API) -> int:
    """Remove the containers and volumes that killed processes of ours left; returns how many.

    Raises:
        SandboxError: the daemon cannot be asked.
    """
    with boundary(SandboxError, "the containers cannot be listed"):
        found = api.containers(all=True, filters={"label": [f"{KIND}=sandbox"]})
        volumes = api.volumes(filters={"label": [f"{KIND}=sandbox"], "dangling": True})["Volumes"] or []
    count = 0
    for container in found:
        if _stale(container.get("Labels") or {}):
            discard(api, container["Id"])
            count += 1
    for volume in volumes:
        if _stale(volume.get("Labels") or {}):
            with suppress(SandboxError), boundary(SandboxError, "a volume cannot be removed"):
                api.remove_volume(volume["Name"])
                count += 1
    return count


def _stale(marks: dict[str, str]) -> bool:
    owner = Owner.parse(marks.get(OWNER, ""))
    dead = owner.dead() if owner is not None else None
    if dead is not None:
        return dead
    deadline = marks.get(DEADLINE, "")
    return deadline.isdigit() and time.time() > int(deadline)


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def _start_time(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
