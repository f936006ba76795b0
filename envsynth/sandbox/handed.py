"""A folder that came from elsewhere as the final state of a workspace."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import SandboxError, boundary
from ..runtime.contract import Change
from ..runtime.trees import leads_out
from ._files import FileKind, read_inside
from ._overlay import changes_of_copy

__all__ = ["HandedIn"]


class HandedIn:
    """The part of `runtime.contract.Sandbox` that collecting a submission needs.

    The folder is only read, and no link in it is followed.
    """

    def __init__(self, folder: Path, start: Path) -> None:
        """Compare a folder with the start tree.

        Raises:
            SandboxError: there is no folder, which is not the same as an empty one.
        """
        if folder.is_symlink() or not folder.is_dir():
            raise SandboxError(
                "nothing was handed in", where=str(folder), cause="the workspace did not arrive",
                next_step="see how it is carried from the agent's container to the grader's",
            )  # fmt: skip
        self.workdir = str(folder)
        self._folder = folder
        self._start = start

    def changes(self) -> list[Change]:
        """Every path that differs from the start tree, sorted.

        A link of the start tree that leads out of it counts as unchanged where it is missing: who carries a folder from
        container to container leaves such links behind.
        """
        with boundary(SandboxError, "the changes cannot be read", where=self.workdir):
            found = changes_of_copy(self._folder, (self._start,))
            return [change for change in found if change.kind != "removed" or not self._stays_behind(change.path)]

    def read_changed(self, path: str, *, max_bytes: int = 2**24) -> tuple[bytes, FileKind]:
        """Content of a path from `changes`, read without following links."""
        return read_inside(self._folder, path, max_bytes)

    def close(self) -> None:
        """Nothing to free."""

    def _stays_behind(self, path: str) -> bool:
        place = self._start / path
        return place.is_symlink() and leads_out(path, os.fsdecode(os.readlink(place)))  # noqa: PTH115 -- bytes
