"""What of a candidate no agent may reach: files with the fix, hidden tests, and the names that only the fix has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from envsynth.leaks import Change, Secrets, secrets_of
from envsynth.models import Candidate, FileMode, Role, Tree, TreeEntry, role_of
from envsynth.protocols import BlobStore
from envsynth.runtime.testkeys import Place, locate
from envsynth.validators.leakage.passages import Guarded, guard

__all__ = ["Guards"]

TEXT_BYTES = 2**21
"""Bytes; a larger file is data."""


class _Files(NamedTuple):
    start: Tree
    hidden: Tree
    changes: Tree


@dataclass(frozen=True)
class Guards:
    """The candidate's trees, and what is looked for in everything that an agent can read."""

    candidate: Candidate
    blobs: BlobStore
    fail_to_pass: Sequence[str] = ()
    """Keys of the tests that the instruction shows."""

    @cached_property
    def files(self) -> _Files:
        """The trees."""
        workspace = self.candidate.workspace
        return _Files(
            self.blobs.get_tree(workspace.tree),
            self.blobs.get_tree(workspace.hidden),
            self.blobs.get_tree(self.candidate.solution.changes),
        )

    def role(self, path: str) -> Role:
        """What a path is to a solution."""
        return role_of(path, self.candidate.workspace.roles)

    def text(self, tree: Tree, path: str) -> str | None:
        """A file's text; None where there is none or it is no text."""
        entry = tree.by_path.get(path)
        if entry is None or entry.size > TEXT_BYTES or entry.mode is FileMode.SYMLINK:
            return None
        content = self.blobs.get(entry.blob)
        return None if b"\0" in content else content.decode("utf-8", "replace")

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The files of the reference that are text, before and after."""
        start, changes = self.files.start, self.files.changes
        return tuple(
            Change(path, self.text(start, path) or "", after)
            for path in changes.by_path
            if (after := self.text(changes, path)) is not None
        )

    @cached_property
    def changed_tests(self) -> tuple[TreeEntry, ...]:
        """Files that only the grader has, or that it has in another version than the start tree."""
        start = self.files.start.by_path
        return tuple(entry for entry in self.files.hidden.entries if start.get(entry.path) != entry)

    @cached_property
    def guarded(self) -> tuple[Guarded, ...]:
        """What no text may hold: code of the reference, and of the changed tests."""
        start, hidden = self.files.start, self.files.hidden
        found = [guard(change.path, "fix", change.before, change.after) for change in self.changes
                 if self.role(change.path) is Role.SOURCE]  # fmt: skip
        found += [
            guard(entry.path, "hidden_test", self.text(start, entry.path) or "", after)
            for entry in self.changed_tests
            if self.role(entry.path) is Role.TEST and (after := self.text(hidden, entry.path)) is not None
        ]
        return tuple(one for one in found if one is not None)

    @cached_property
    def packages(self) -> tuple[str, ...]:
        """Names that another copy of the project bears: the source's, and the top modules' that the fix is in."""
        names = {self.candidate.provenance.lead.name}
        roots = [root for root in self.candidate.workspace.command.roots if root != "."]
        for change in self.changes:
            if self.role(change.path) is Role.SOURCE:
                root = next((f"{root}/" for root in roots if change.path.startswith(f"{root}/")), "")
                names.add(change.path.removeprefix(root).partition("/")[0].partition(".")[0])
        return tuple(sorted(name for name in names if name))

    @cached_property
    def failing(self) -> tuple[Place, ...]:
        """Where the tests that the instruction shows are defined; those of no hidden file are left out."""
        places = (locate(key, self.files.hidden.by_path) for key in self.fail_to_pass)
        return tuple(place for place in places if place is not None)

    @cached_property
    def told(self) -> str:
        """What the instruction may say: the files of the failing tests and what they share."""
        paths = {place.path for place in self.failing}
        shared = {path for path in self.files.hidden.by_path if path.rpartition("/")[2] == "conftest.py"}
        return "\n".join(self.text(self.files.hidden, path) or "" for path in sorted(paths | shared))

    @cached_property
    def known(self) -> str:
        """Everything that the agent can read in its tree."""
        start = self.files.start
        return "\n".join(text for path in start.by_path if (text := self.text(start, path)) is not None)

    @cached_property
    def secrets(self) -> Secrets:
        """Names, literals and lines that only the fix has."""
        return secrets_of(self.changes, self.known, self.told)

    @cached_property
    def tokens(self) -> tuple[bytes, ...]:
        """Names and literals that the fix brings to the files it changes: what compiled code still shows."""
        touched = "\n".join(change.before for change in self.changes)
        new = secrets_of(self.changes, touched, "")
        return tuple(sorted(text.encode() for text in new.shaped | new.plain | new.literals if len(text) >= 5))
