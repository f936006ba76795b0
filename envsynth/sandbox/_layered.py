"""A workspace of stacked layers in a host folder: what backends that mount it anew for every command share."""

from __future__ import annotations

import os
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from ..errors import SandboxError, boundary
from ..runtime.contract import Change, ExecResult, Limits, SandboxSpec, Snapshot
from . import _bwrap_args as arguments
from ._files import FileKind, copy_tree, read_inside
from ._folder import Folder, capped, check_spec
from ._inside import read_file, remove_file, write_file
from ._meter import Charge, folder_size
from ._overlay import changes_of_copy, changes_of_upper

_OPTION_ROOM = 3900
"""A mount's options are cut at a page."""
_OLD_ROOT = "/oldroot"
"""What bubblewrap writes before each path of an overlay."""
_LINKED_LAYERS = 8
"""More layers than this are named by short links."""
_MOUNT_BYTES = 8 * 2**20
"""Writable folders that hold more than this when a command starts, such as a shared cache, are not watched."""


class LayeredSandbox(ABC):
    """Implements all of `envsynth.runtime.contract.Sandbox` but `exec`.

    The workspace is an overlay whose upper folder is on the host, or, where overlays are refused, a copy of the layers.
    """

    def __init__(self, spec: SandboxSpec, *, overlay: bool, fill: bool) -> None:
        """Make the host folder.

        Args:
            spec: what the sandbox is made of.
            overlay: whether an overlay is used where the layers allow it.
            fill: whether copies of the layers are made where no overlay is used; a fork takes another's.
        """
        check_spec(spec)
        self.workdir = spec.workdir
        self._spec = spec
        self._folder = Folder(spec.scratch)
        self._layers: list[str] = []
        self._overlay = overlay and owned(spec.layers)
        try:
            self._prepare(fill=fill)
        except BaseException:
            self._folder.close()
            raise

    def _prepare(self, *, fill: bool) -> None:
        """Make what the workspace is mounted from."""
        base = self._folder.path
        with boundary(SandboxError, "a sandbox cannot be prepared", where=str(base)):
            etc = base / "etc"
            etc.mkdir()
            for name, text in arguments.STUBS.items():
                (etc / name).write_text(text)
            (base / "mount").mkdir()
            (base / "empty").mkdir()
            if self._overlay:
                self._layers = self._name_layers()
            elif fill:
                self._copy_layers()

    def _name_layers(self) -> list[str]:
        """The layers as an overlay's options can hold them, the lowest first."""
        base = self._folder.path.resolve()
        layers = [layer.resolve() for layer in self._spec.layers] or [base / "empty"]
        if len(layers) <= _LINKED_LAYERS and not self._always_links():
            names = [str(layer) for layer in layers]
        else:
            (base / "l").mkdir()
            names = []
            for number, layer in enumerate(layers):
                link = base / "l" / str(number)
                link.symlink_to(os.path.relpath(layer, link.parent))
                names.append(str(link))
        room = _OPTION_ROOM - 3 * len(_OLD_ROOT + str(base)) - 100
        fits = 0
        for name in reversed(names):
            room -= len(_OLD_ROOT) + 1 + 2 * len(name)  # a name may be escaped
            if room < 0:
                break
            fits += 1
        if fits == len(names):
            return names
        flat = base / "flat"
        flat.mkdir()
        for layer in layers[: len(layers) - fits + 1]:
            copy_tree(layer, flat)
        return [str(flat), *names[len(names) - fits + 1 :]]

    def _always_links(self) -> bool:
        """Whether layers are named by links however few they are: their own names may hold any character."""
        return False

    def _copy_layers(self) -> None:
        for layer in self._spec.layers:
            copy_tree(layer, self._work)
        self._work.chmod(0o755)
        self._folder.free_bytes = folder_size(self._work, 2**62)[0]

    @property
    def uses_overlay(self) -> bool:
        """Whether the workspace is an overlay; else it is a copy of the layers."""
        return self._overlay

    @property
    def _work(self) -> Path:
        return self._folder.state / "work"

    @abstractmethod
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
        """Run a command; when this returns, every process it started is dead."""

    @abstractmethod
    def _twin(self) -> Self:
        """A new sandbox of the same specification, its copy of the layers left out."""

    def _inside(self, command: Sequence[str], cwd: str | None) -> str:
        """The absolute path that a command is started in.

        Raises:
            ValueError: the command is empty, or a word holds a NUL byte.
            SandboxError: the sandbox is closed.
        """
        if not command or any("\0" in word for word in (*command, cwd or "")):
            raise ValueError("an empty command, or one that holds a NUL byte")
        if self._folder.closed:
            raise SandboxError("the sandbox is closed", retryable=False)
        return posixpath.join(self.workdir, cwd or "")

    def _charge(self, limits: Limits) -> Charge:
        folders = [self._work, self._folder.state / "tmp", self._folder.state / "home"]
        free_of_charge = self._folder.free_bytes
        before = self._folder.disk_bytes
        if before > limits.disk_bytes:
            before = sum(folder_size(folder, 2**62)[0] for folder in folders) - free_of_charge
        for mount in self._spec.mounts:
            single = mount.source.is_file()
            if mount.writable and (single or mount.source.is_dir()):
                size, _ = folder_size(mount.source, _MOUNT_BYTES)
                if single or size <= _MOUNT_BYTES:
                    folders.append(mount.source)
                    free_of_charge += size
        return Charge(tuple(folders), before, free_of_charge, capped(self._spec))

    def path(self, target: str) -> str:
        """Where a mount target or workspace path is found by commands inside."""
        return posixpath.normpath(posixpath.join(self.workdir, target))

    def read(self, path: str, *, max_bytes: int = 2**24) -> bytes:
        """Content of a regular file, resolved inside."""
        return read_file(self.exec, self.path(path), max_bytes)

    def write(self, path: str, content: bytes, *, executable: bool | None = None) -> None:
        """Write a file, resolved inside; parents are made."""
        write_file(self.exec, self.path(path), content, executable)

    def remove(self, path: str) -> None:
        """Remove a file or link; nothing happens where there is none."""
        remove_file(self.exec, self.path(path))

    def changes(self) -> list[Change]:
        """Every path that may differ from the layers, sorted."""
        with boundary(SandboxError, "the changes cannot be read", where=str(self._work)):
            find = changes_of_upper if self._overlay else changes_of_copy
            return find(self._work, self._spec.layers)

    def read_changed(self, path: str, *, max_bytes: int = 2**24) -> tuple[bytes, FileKind]:
        """Content of a path from `changes`, read on the host without following links."""
        return read_inside(self._work, path, max_bytes)

    def fork(self) -> Self:
        """An independent copy of the present state."""
        twin = self._twin()
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


def owned(layers: Sequence[Path]) -> bool:
    """Whether the layers are the user's own: others' files cannot be written through an overlay."""
    return all(layer.stat().st_uid == os.geteuid() for layer in layers)
