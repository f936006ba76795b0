"""No isolation: commands run as the user, on a copy of the layers, for code that is trusted."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import SandboxError, boundary
from ..runtime.contract import Change, ExecResult, Limits, SandboxSpec, Snapshot
from ._beneath import parent_beneath
from ._bwrap_args import BASE_VARIABLES, network_variables
from ._cgroup import Cgroup
from ._files import FileKind, copy_tree, open_regular, read_inside
from ._folder import Folder, capped, check_spec
from ._local_run import Local, run
from ._meter import Charge, folder_size, task_limit
from ._overlay import changes_of_copy

__all__ = ["LocalBackend"]


class LocalBackend:
    """Opens folders that are not sandboxes at all, behind the same protocol.

    Args:
        cgroups: whether control groups are used where they are writable.
    """

    name = "local"
    isolates = False
    warning = (
        "no isolation: code of this source runs as you, with your files and your network; "
        "use it only for code you would run anyway, and not for agents you do not trust: they could read hidden tests"
    )

    def __init__(self, *, cgroups: bool = True) -> None:
        self._cgroups = cgroups

    def unavailable(self) -> str | None:
        """Why it does not work here; None: it always does."""
        return None

    def explain(self) -> str:
        """One line for people."""
        return "always works, isolates nothing"

    def open(self, spec: SandboxSpec) -> LocalSandbox:
        """A fresh copy of the layers.

        Raises:
            SandboxError: the copy cannot be made.
        """
        return LocalSandbox(spec, cgroups=self._cgroups)


class LocalSandbox:
    """Implements `envsynth.runtime.contract.Sandbox` without isolation."""

    def __init__(self, spec: SandboxSpec, *, cgroups: bool, like: LocalSandbox | None = None) -> None:
        check_spec(spec)
        self._spec = spec
        self._cgroups = cgroups
        self._folder = Folder(spec.scratch)
        self._root = (self._folder.state / "work").resolve()
        self.workdir = str(self._root)
        if like is not None:
            return
        try:
            with boundary(SandboxError, "the layers cannot be copied", where=self.workdir):
                for layer in spec.layers:
                    copy_tree(layer, self._root)
                self._root.chmod(0o755)
                self._folder.free_bytes = folder_size(self._root, 2**62)[0]
        except BaseException:
            self._folder.close()
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
        """Run a command; when this returns, every process it started is dead. The network is always reachable.

        Raises:
            ValueError: the command is empty, or a word holds a NUL byte.
            SandboxError: the environment failed.
        """
        if not command or any("\0" in word for word in command):
            raise ValueError("an empty command, or one that holds a NUL byte")
        if self._folder.closed:
            raise SandboxError("the sandbox is closed", retryable=False)
        state = self._folder.state
        environment = {
            **BASE_VARIABLES, "HOME": str(state / "home"), "TMPDIR": str(state / "tmp"),
            **(network_variables() if network else {}), **self._spec.variables, **(variables or {}),
        }  # fmt: skip
        folders = tuple(state / name for name in ("work", "tmp", "home"))
        charge = Charge(folders, self._folder.disk_bytes, self._folder.free_bytes, capped(self._spec))
        group = Cgroup.make(limits.memory_bytes, task_limit(limits)) if self._cgroups else None
        try:
            with boundary(SandboxError, "a command could not be run", where=self.workdir):
                ran = run(Local(list(command), self.path(cwd or ""), environment, stdin), limits, group, charge)
        finally:
            if group is not None:
                group.close()
        self._folder.disk_bytes = ran.disk_bytes
        return ran.result

    def path(self, target: str) -> str:
        """Where a mount target or workspace path is found by commands inside: the host's own path."""
        normal = posixpath.normpath(posixpath.join(self._spec.workdir, target))
        for mount in self._spec.mounts:
            if normal == mount.target or normal.startswith(mount.target + "/"):
                return str(mount.source.absolute()) + normal.removeprefix(mount.target)
        if normal == self._spec.workdir or normal.startswith(self._spec.workdir + "/"):
            return self.workdir + normal.removeprefix(self._spec.workdir)
        return normal

    def _relative(self, path: str) -> tuple[Path, str]:
        """The folder that a path must stay in, and the path in it.

        Raises:
            PermissionError: the path is neither in the workspace nor in a mount.
        """
        host = posixpath.join(self.workdir, path)
        roots = [(self.workdir, self._root), (self._spec.workdir, self._root)]
        roots += [(str(self._folder.state / name), self._folder.state / name) for name in ("tmp", "home")]
        for mount in self._spec.mounts:
            roots += [(mount.target, mount.source), (str(mount.source.absolute()), mount.source)]
        for prefix, root in roots:
            if host == prefix or host.startswith(prefix + "/"):
                return root.resolve(), host.removeprefix(prefix)
        raise PermissionError(errno.EACCES, "the path is outside the workspace", path)

    def read(self, path: str, *, max_bytes: int = 2**24) -> bytes:
        """Content of a regular file below the workspace or a mount."""
        root, inside = self._relative(path)
        with parent_beneath(root, inside) as (parent, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            with open_regular(parent, name, force=False) as handle, os.fdopen(os.dup(handle), "rb") as file:
                content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise ValueError(f"larger than {max_bytes} bytes: {path!r}")
        return content

    def write(self, path: str, content: bytes, *, executable: bool | None = None) -> None:
        """Write a file below the workspace or a mount; parents are made."""
        root, inside = self._relative(path)
        with parent_beneath(root, inside, make=True) as (parent, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                handle = os.open(name, flags, 0o644, dir_fd=parent)
            except OSError as exc:
                if exc.errno == errno.ENXIO:  # a FIFO that nobody reads, or a socket
                    raise ValueError(f"not a regular file: {path!r}") from exc
                raise
            with os.fdopen(handle, "wb") as file:
                status = os.fstat(handle)
                if not stat.S_ISREG(status.st_mode):
                    raise ValueError(f"not a regular file: {path!r}")
                os.ftruncate(handle, 0)
                file.write(content)
                if executable is not None:
                    mode = stat.S_IMODE(status.st_mode)
                    os.fchmod(handle, mode | 0o111 if executable else mode & ~0o111)

    def remove(self, path: str) -> None:
        """Remove a file or link; nothing happens where there is none."""
        root, inside = self._relative(path)
        try:
            with parent_beneath(root, inside, follow=False) as (parent, name):
                if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
                os.unlink(name, dir_fd=parent)
        except (FileNotFoundError, NotADirectoryError):
            return

    def changes(self) -> list[Change]:
        """Every path that differs from the layers, sorted."""
        with boundary(SandboxError, "the changes cannot be read", where=self.workdir):
            return changes_of_copy(self._root, self._spec.layers)

    def read_changed(self, path: str, *, max_bytes: int = 2**24) -> tuple[bytes, FileKind]:
        """Content of a path from `changes`, read without following links."""
        return read_inside(self._root, path, max_bytes)

    def fork(self) -> LocalSandbox:
        """An independent copy of the present state."""
        twin = LocalSandbox(self._spec, cgroups=self._cgroups, like=self)
        twin._folder.copy_state_of(self._folder)
        return twin

    def snapshot(self) -> Snapshot:
        """Freeze the present state."""
        return Snapshot(self._folder.snapshot())

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot of this sandbox."""
        self._folder.restore(snapshot.path)

    def close(self) -> None:
        """Free everything; safe to call twice."""
        self._folder.close()
