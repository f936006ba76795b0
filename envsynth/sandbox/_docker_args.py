"""The configuration of a container: what a command inside sees of the host, and what it may take."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..runtime.contract import Limits, Mount
from . import _bwrap_args as arguments
from ._docker_owner import DEADLINE, KIND, OWNER, labels
from ._meter import task_limit
from ._process import resource_limits

COMMAND = "/envsynth-command"
"""Where the init script and the words of the command are found inside."""
_SHARED_MEMORY_BYTES = 64 * 2**20
_OWN_PROCESSES = 4
"""Of the init script."""
_RLIMITS = {resource.RLIMIT_CORE: "core", resource.RLIMIT_FSIZE: "fsize", resource.RLIMIT_CPU: "cpu"}
_READ_ONLY = ("/dev", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_MASKED = ("/sys", *(f"/proc/{name}" for name in ("acpi", "asound", "scsi", "driver", "dynamic_debug", "pressure")))
_EMPTY = "/run"


class Profile(NamedTuple):
    """What is the same for every container of a backend."""

    base: str
    """Id of the base image."""
    user: str
    """User and group inside: whoever owns the layers there."""
    runtime: str
    """Name of an OCI runtime; empty: the daemon's default."""
    security: tuple[str, ...]
    covered: tuple[str, ...]
    """Library folders of the base image's own Python."""


class Workspace(NamedTuple):
    """Where a sandbox keeps what its containers mount."""

    folder: Path
    state: Path
    target: str
    layers: Sequence[str]
    """Lower folders of an overlay, the lowest first; none where the workspace is a copy."""
    mounts: Sequence[Mount]
    covered: Sequence[str]


def container(profile: Profile, place: Workspace, limits: Limits, *, network: bool) -> dict[str, Any]:
    """The body of the API's request that creates a container.

    Args:
        profile: what the backend found.
        place: what is mounted.
        limits: what the command may take.
        network: whether the host's network is reachable.
    """
    marks = labels(limits.wall_s + 120)
    ulimits = [
        {"Name": _RLIMITS[kind], "Soft": value, "Hard": value}
        for kind, value in resource_limits(limits, address_space=False, others=None).items()
    ]
    host = {
        "NetworkMode": "host" if network else "none",
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", *profile.security],
        "ReadonlyRootfs": True,
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "PidsLimit": task_limit(limits) + _OWN_PROCESSES,
        "Ulimits": ulimits,
        "ShmSize": _SHARED_MEMORY_BYTES,
        "IpcMode": "private",
        "LogConfig": {"Type": "none"},
        "MaskedPaths": [*_MASKED, *_kernel_files()],
        "ReadonlyPaths": list(_READ_ONLY),
        "Tmpfs": dict.fromkeys((_EMPTY, *profile.covered, *place.covered), "ro,size=4k,mode=755"),
        "Mounts": _mounts(place, marks, network=network),
    }
    if profile.runtime:
        host["Runtime"] = profile.runtime
    return {
        "Image": profile.base, "Cmd": ["/bin/sh", f"{COMMAND}/init.sh"], "Entrypoint": [], "User": profile.user,
        "WorkingDir": "/", "Hostname": "sandbox", "Labels": marks, "OpenStdin": True, "StdinOnce": True,
        "AttachStdin": True, "AttachStdout": True, "AttachStderr": True, "Tty": False, "HostConfig": host,
    }  # fmt: skip


def _mounts(place: Workspace, marks: Mapping[str, str], *, network: bool) -> list[dict[str, Any]]:
    base = place.folder
    found = [
        _bind(base / "command", COMMAND),
        _bind(base / "homes", "/home"),
        _bind(base / "var", "/var"),
        _bind(place.state / "tmp", "/tmp", writable=True),
        _bind(place.state / "home", arguments.HOME, writable=True),
        _overlay(place, marks) if place.layers else _bind(place.state / "work", place.target, writable=True),
    ]
    for name in arguments.STUBS:
        if not (network and name == "hosts"):
            found.append(_bind(base / "etc" / name, f"/etc/{name}"))
    bundle = arguments.certificates() if network else None
    if bundle is not None:
        found.append(_bind(bundle.resolve(), str(bundle)))
    return found + [_bind(mount.source.resolve(), mount.target, writable=mount.writable) for mount in place.mounts]


def _bind(source: Path, target: str, *, writable: bool = False) -> dict[str, Any]:
    return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": not writable}


def _overlay(place: Workspace, marks: Mapping[str, str]) -> dict[str, Any]:
    """A volume that the daemon mounts on the host, so that resets and forks copy what changed and nothing else."""
    # The attributes that mark an overlay's folders must be readable by an ordinary user.
    options = [
        "lowerdir=" + ":".join(reversed(place.layers)), f"upperdir={place.state / 'work'}",
        f"workdir={place.folder / 'mount'}", "userxattr",
    ]  # fmt: skip
    driver = {"Name": "local", "Options": {"type": "overlay", "device": "overlay", "o": ",".join(options)}}
    volume = {"NoCopy": True, "Labels": {name: marks[name] for name in (KIND, OWNER, DEADLINE)}, "DriverConfig": driver}
    return {"Type": "volume", "Target": place.target, "VolumeOptions": volume}


def mountable(path: Path) -> bool:
    """Whether an overlay's options can hold the path."""
    return not set(str(path)) & set(",:\\\n")


@cache
def _kernel_files() -> tuple[str, ...]:
    """What the kernel lets user 0 write, or read by ownership alone."""
    found = []
    for path in sorted(Path("/proc").iterdir()):
        if not path.is_symlink() and path.is_file():
            mode = path.stat().st_mode
            if mode & 0o222 or not mode & 0o004:
                found.append(str(path))
    return tuple(found)


def variables(*layers: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a command; later mappings win."""
    merged = dict(arguments.BASE_VARIABLES)
    for mapping in layers:
        merged.update(mapping)
    return merged


def words(folder: str, seconds: float, environment: Mapping[str, str], command: Sequence[str]) -> bytes:
    """What the init script sources: shell, since the API's JSON cannot hold every byte."""
    # `env` would take a command with an equals sign in its name for a variable.
    line = ["env", "-i", *(f"{name}={value}" for name, value in environment.items())]
    line += ["/bin/sh", "-c", 'exec "$@"', "sh", *command]
    text = f"folder={_quoted(folder)}\nseconds={seconds:.0f}\nset -- {' '.join(map(_quoted, line))}\n"
    return os.fsencode(text)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def stubs(user: str) -> dict[str, str]:
    """Files of /etc in which the user inside has the usual name."""
    uid, _, gid = user.partition(":")
    return {
        **arguments.STUBS,
        "passwd": f"user:x:{uid}:{gid}:user:{arguments.HOME}:/bin/sh\n"
        + ("root:x:0:0:root:/root:/bin/sh\n" if uid != "0" else "")
        + "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
        "group": f"user:x:{gid}:\n" + ("root:x:0:\n" if gid != "0" else "") + "nogroup:x:65534:\n",
    }
