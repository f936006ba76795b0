"""The host folder of one sandbox: locked while it is used, swept away when its owner was killed."""

from __future__ import annotations

import fcntl
import itertools
import os
import posixpath
import tempfile
from contextlib import suppress
from pathlib import Path

from ..errors import SandboxError, boundary
from ..runtime.contract import SandboxSpec
from ._files import copy_tree, remove_tree

_PREFIX = "envsynth-sandbox-"
_swept: set[Path] = set()


class Folder:
    """Everything of one sandbox on the host.

    `state` is what forks and snapshots copy: `state/work` (an overlay's upper folder, or a copy of the layers),
    `state/tmp` and `state/home`.
    """

    def __init__(self, scratch: Path | None) -> None:
        """Make one.

        Raises:
            SandboxError: it cannot be written.
        """
        self.base = (scratch or Path(tempfile.gettempdir())).absolute()
        with boundary(SandboxError, "no sandbox can be made", where=str(self.base)):
            self.base.mkdir(parents=True, exist_ok=True)
            _sweep(self.base)
            # Named once it is locked, so that nobody sweeps it away meanwhile.
            made = Path(tempfile.mkdtemp(prefix=".new-", dir=self.base))
            self._lock = os.open(made / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.path = self.base / (_PREFIX + made.name.removeprefix(".new-"))
            made.rename(self.path)
            self.make_state()
        self._numbers = itertools.count()
        self._snapshots: set[Path] = set()
        self.disk_bytes = 0
        """Bytes charged for `state`, as far as they were measured."""
        self.free_bytes = 0
        """Bytes in `state` that are not charged: the copy of the layers."""

    @property
    def state(self) -> Path:
        """What forks and snapshots copy."""
        return self.path / "state"

    def make_state(self) -> None:
        """An empty state."""
        for name in ("work", "tmp", "home"):
            (self.state / name).mkdir(parents=True)
            (self.state / name).chmod(0o755)
        (self.state / "tmp").chmod(0o1777)

    def copy_state_of(self, other: Folder) -> None:
        """Take over another sandbox's state."""
        self._replace(other.state)
        self.disk_bytes, self.free_bytes = other.disk_bytes, other.free_bytes

    def snapshot(self) -> Path:
        """A copy of the state."""
        path = self.path / f"snapshot-{next(self._numbers)}"
        with boundary(SandboxError, "the state cannot be copied", where=str(path)):
            path.mkdir()
            copy_tree(self.state, path)
        self._snapshots.add(path)
        return path

    def restore(self, snapshot: Path) -> None:
        """Go back to a copy made by `snapshot`.

        Raises:
            SandboxError: it is not one of this sandbox.
        """
        if snapshot not in self._snapshots:
            raise SandboxError("not a snapshot of this sandbox", where=str(snapshot), retryable=False)
        self._replace(snapshot)

    def _replace(self, source: Path) -> None:
        with boundary(SandboxError, "the state cannot be copied", where=str(self.state)):
            remove_tree(self.state)
            self.state.mkdir()
            copy_tree(source, self.state)

    def close(self) -> None:
        """Remove everything; safe to call twice."""
        if self._lock < 0:
            return
        with boundary(SandboxError, "a sandbox's folder cannot be removed", where=str(self.path)):
            try:
                remove_tree(self.path)
            finally:
                os.close(self._lock)
                self._lock = -1

    @property
    def closed(self) -> bool:
        """Whether it is gone."""
        return self._lock < 0


def _sweep(base: Path) -> None:
    """Remove what killed processes of ours left in a scratch folder; once for each folder and process."""
    if base in _swept:
        return
    _swept.add(base)
    for path in base.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            handle = os.open(path / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(handle).st_uid != os.geteuid():
                    continue
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(path)
            finally:
                os.close(handle)


def capped(spec: SandboxSpec) -> tuple[tuple[Path, int], ...]:
    """The mounted files that may be written, and how large each may become."""
    return tuple(
        (mount.source, mount.max_bytes) for mount in spec.mounts if mount.writable and mount.max_bytes is not None
    )


def check_spec(spec: SandboxSpec) -> None:
    """Refuse a sandbox that could not be made.

    Raises:
        SandboxError: a layer or a mount is missing.
    """
    for layer in spec.layers:
        if not layer.is_dir():
            raise SandboxError("a layer is not a folder", where=str(layer), retryable=False)
    for mount in spec.mounts:
        if not mount.source.exists():
            raise SandboxError("a mount's source does not exist", where=str(mount.source), retryable=False)
    for target in (spec.workdir, *(mount.target for mount in spec.mounts)):
        if posixpath.normpath(target) != target or not target.startswith("/") or target == "/":
            raise SandboxError("not an absolute, normal path", where=target, retryable=False)
