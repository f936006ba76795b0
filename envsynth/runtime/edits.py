"""Which files each tool call changed, whatever tool did it: an edit by a shell command is an edit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from .contract import Sandbox
from .roles import Roles
from .submission import changed_paths
from .trees import Manifest

EDITING = frozenset({"bash", "write_file", "edit_file"})
"""Tools that can change files."""
MAX_EDITS = 1_000
"""Files noted of one call; source files come first."""


class EditRow(NamedTuple):
    """A row of the episode database's `edits`: a file of the workspace that a call changed."""

    turn: int
    path: str
    role: str


def differences(sandbox: Sandbox, start: Manifest) -> dict[str, str]:
    """A key of the present content of each path that differs from the start tree; equal content gives an equal key.

    Raises:
        SandboxError: the workspace cannot be read.
    """
    return {changed.path: _key(changed.mode, changed.content) for changed in changed_paths(sandbox, start)}


def edits_between(turn: int, before: Mapping[str, str], after: Mapping[str, str], roles: Roles) -> list[EditRow]:
    """The files that differ between two states, those of role source first, at most `MAX_EDITS`.

    Args:
        turn: the call that led from one to the other.
        before: `differences` of the earlier state.
        after: `differences` of the later state.
        roles: what each path is to a solution.
    """
    paths = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    rows = (EditRow(turn, path, roles.role(path)) for path in paths)
    return sorted(rows, key=lambda row: (row.role != "source", row.path))[:MAX_EDITS]


def _key(mode: str, content: bytes | None) -> str:
    return mode + ("" if content is None else hashlib.sha256(content).hexdigest())
