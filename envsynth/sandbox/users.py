"""For graders in a container of their own: a sandbox is a folder, and a user without rights whom its commands run as.

Such a container is thrown away afterwards and mostly may not make namespaces. Root can still keep commands from what is
root's, and from what other sandboxes left behind.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import SandboxError, SandboxUnavailable
from ..runtime.contract import ExecResult, Limits, SandboxSpec
from ._files import remove_tree
from .local import LocalBackend, LocalSandbox

__all__ = ["SHARED", "UserBackend"]

SHARED = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")))
"""Folders that every user may write to, which are emptied after each command."""
_FIRST = 61_000
"""Above the users of a distribution, below those that systemd makes up."""
_TRIES = 50
_IPC = (("shm", "shmctl", 3), ("msg", "msgctl", 3), ("sem", "semctl", 4))
"""Kinds of System V objects: list under /proc/sysvipc, function that removes one, and how many arguments it takes."""


class UserBackend(LocalBackend):
    """Opens folders whose commands run as a user of their own; needs root, and a machine that is thrown away."""

    name = "users"
    isolates = False
    warning = ""

    def __init__(self) -> None:
        super().__init__()
        self._users = itertools.count(_FIRST)

    def unavailable(self) -> str | None:
        """Why it does not work here."""
        if os.geteuid() != 0:
            return "commands can be run as other users by root alone: let the grader run as root"
        return None if shutil.which("setpriv") else "there is no setpriv: install util-linux"

    def open(self, spec: SandboxSpec) -> UserSandbox:
        """A fresh copy of the layers, which belongs to a new user.

        Raises:
            SandboxError: it cannot be made.
        """
        why = self.unavailable()
        if why is not None:
            raise SandboxUnavailable("commands cannot be kept apart here", where="grader", cause=why)
        return UserSandbox(spec, cgroups=self._cgroups, user=next(self._users))


class UserSandbox(LocalSandbox):
    """A folder and its user; implements `envsynth.runtime.contract.Sandbox`."""

    def __init__(self, spec: SandboxSpec, *, cgroups: bool, user: int) -> None:
        super().__init__(spec, cgroups=cgroups)
        self._user = user
        try:
            self._hand_over()
        except BaseException:
            self.close()
            raise

    def exec(
        self,
        command: Sequence[str],
        *,
        limits: Limits,
        cwd: str | None = None,
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        network: bool = False,
    ) -> ExecResult:
        """Run a command as the sandbox's user; nothing that it started or left in shared folders stays.

        Raises:
            ValueError: the command is empty, or a word holds a NUL byte.
            SandboxError: the environment failed.
        """
        if not command:
            raise ValueError("an empty command")
        try:
            return super().exec(
                [*_as_user(self._user), *command], limits=limits, cwd=cwd, variables=variables, stdin=stdin,
                network=network,
            )  # fmt: skip
        finally:
            _end_all(self._user)
            _empty(SHARED, self._user)
            _remove_ipc(self._user)

    def fork(self) -> LocalSandbox:
        """Not here: a grader needs none."""
        raise SandboxError("a sandbox of a grader cannot be forked", retryable=False)

    def _hand_over(self) -> None:
        """Give the user what is theirs, and let them through to it."""
        self._folder.path.chmod(0o711)
        for place in _below(self._folder.state):
            os.chown(place, self._user, self._user, follow_symlinks=False)
        for mount in self._spec.mounts:
            if mount.writable:
                os.chown(mount.source, self._user, self._user)
                mount.source.parent.chmod(0o711)


def _as_user(user: int) -> list[str]:
    return [
        str(shutil.which("setpriv")), f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs",
        "--inh-caps=-all", "--bounding-set=-all", "--",
    ]  # fmt: skip


def _below(root: Path) -> Iterator[str]:
    yield str(root)
    for parent, folders, names in os.walk(root):
        yield from (f"{parent}/{name}" for name in (*folders, *names))


def _end_all(user: int) -> None:
    """End every process of a user.

    Raises:
        SandboxError: one goes on.
    """
    for _ in range(_TRIES):
        if not _has_processes(user):
            return
        # One call of the kernel for all of them: whoever is asked for one by one can meanwhile start others.
        subprocess.run([*_as_user(user), "/bin/sh", "-c", "kill -KILL -1"], check=False, capture_output=True)
    raise SandboxError("processes of a command go on", where=f"user {user}")


def _has_processes(user: int) -> bool:
    for name in os.listdir("/proc"):  # noqa: PTH208 -- names alone
        if not name.isdigit():
            continue
        with suppress(OSError):
            lines = Path("/proc", name, "status").read_text("ascii", "replace").splitlines()
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
            if str(user) in fields["Uid"].split() and not fields["State"].strip().startswith(("Z", "X")):
                return True
    return False


def _empty(folders: Sequence[Path], user: int) -> None:
    """Take away what a user left in folders, however deep."""
    for folder in folders:
        if not folder.is_dir() or folder.is_symlink():
            continue
        for entry in list(os.scandir(folder)):
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if status.st_uid != user:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    remove_tree(Path(entry.path))  # as deep as a user made it
                else:
                    os.unlink(entry.path)  # noqa: PTH108 -- hot


def _remove_ipc(user: int) -> None:
    """Remove a user's System V shared memory, message queues and semaphores, which outlive their makers."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind, remove, count in _IPC:
        with suppress(OSError):
            head, *rows = Path("/proc/sysvipc", kind).read_text("ascii").splitlines()
            columns = head.split()
            for row in rows:
                values = dict(zip(columns, row.split(), strict=False))
                if str(user) in (values["uid"], values["cuid"]):
                    number = int(values["shmid" if kind == "shm" else "msqid" if kind == "msg" else "semid"])
                    order = (number, 0, None) if count == 3 else (number, 0, 0, None)
                    getattr(libc, remove)(*order)
