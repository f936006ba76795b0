"""A commit, split into what the agent starts from, what only the grader has, and the known solution."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from pydantic import ValidationError

from envsynth.generators.repository.gitdir import BlobReader, GitDir, GitEntry
from envsynth.generators.repository.history import Commit
from envsynth.generators.repository.roles import RoleBook
from envsynth.generators.repository.testfolders import rules_of_data, rules_of_test_folders
from envsynth.models import FileMode, Role, RoleRule, Tree, TreeEntry
from envsynth.protocols import BlobStore
from envsynth.runtime.trees import leads_out

_MODES = {"100644": FileMode.FILE, "100664": FileMode.FILE, "100755": FileMode.EXECUTABLE, "120000": FileMode.SYMLINK}
_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_LIMIT = 1024
"""Bytes; a pointer file is smaller by its specification."""
_BINARY = b"\0"


class LeftOut(NamedTuple):
    """A path of the repository that is in no tree, and why."""

    path: bytes
    kind: str
    """`submodule`, `lfs`, `odd_path` or `symlink_out`."""


class CommitTree(NamedTuple):
    """A commit's files as a tree."""

    tree: Tree
    left_out: tuple[LeftOut, ...]


class Split(NamedTuple):
    """The parts of a commit."""

    role: RoleBook
    """What a path is: the language's rules, after those for this project's own test folders."""
    parent: str
    start: Tree
    """The parent commit's files."""
    fixed: Tree
    """The commit's files."""
    hidden: Tree
    """Tests and runner configuration as the commit has them."""
    changes: Tree
    """Files of the known solution, added or changed."""
    removed: tuple[str, ...]
    """Paths that the known solution removes."""
    tests: tuple[str, ...]
    """Paths of tests that the commit adds or changes."""
    left_out: tuple[LeftOut, ...]
    touched_left_out: tuple[LeftOut, ...]
    """Those the commit touches: without them the commit means nothing."""

    def existing(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of some files and folders that the commit has."""
        return tuple(
            path
            for path in paths
            if any(known == path or known.startswith(path.rstrip("/") + "/") for known in self.fixed.by_path)
        )

    @property
    def reference(self) -> Tree:
        """The start tree with the known solution in it."""
        return self.start.without(self.removed).overlay(self.changes)


class TreeReader:
    """Trees of commits, with each content read and kept once."""

    def __init__(self, git: GitDir, blobs: BlobStore) -> None:
        self._git = git
        self._blobs = blobs
        self._known: dict[str, tuple[str, int, bytes]] = {}

    def read(self, commit: str) -> CommitTree:
        """A commit's tree; contents go into the blob store.

        Raises:
            GitFailed: an object is missing.
        """
        entries: dict[str, TreeEntry] = {}
        left_out = []
        with self._git.reader() as reader:
            for entry in self._git.entries(commit):
                if entry.path.startswith(b".git"):
                    continue
                kind, made = self._entry(entry, reader)
                if made is None:
                    left_out.append(LeftOut(entry.path, kind))
                else:
                    entries[made.path] = made
        return CommitTree(Tree(entries=tuple(entries.values())), tuple(left_out))

    def text(self, entry: TreeEntry) -> str:
        """The content of a file that was read, as text; empty for a binary one."""
        return text_of(self._blobs.get(entry.blob)) or ""

    def _entry(self, entry: GitEntry, reader: BlobReader) -> tuple[str, TreeEntry | None]:
        mode = _MODES.get(entry.mode)
        if mode is None:
            return "submodule", None
        try:
            path = entry.path.decode("utf-8")
        except UnicodeDecodeError:
            return "odd_path", None
        digest, size, head = self._content(entry.oid, reader)
        if mode is FileMode.SYMLINK and leads_out(path, os.fsdecode(head)):
            return "symlink_out", None
        if size < _LFS_LIMIT and head.startswith(_LFS):
            return "lfs", None
        try:
            return "", TreeEntry(path=path, mode=mode, blob=digest, size=size)
        except ValidationError:
            return "odd_path", None

    def _content(self, oid: str, reader: BlobReader) -> tuple[str, int, bytes]:
        known = self._known.get(oid)
        if known is None:
            content = reader.read(oid)
            known = self._blobs.put(content), len(content), content[:_LFS_LIMIT]
            self._known[oid] = known
        return known


def split(reader: TreeReader, commit: Commit, rules: Sequence[RoleRule]) -> Split:
    """Split a commit with one parent, by the language's rules."""
    (parent,) = commit.parents
    before, after = reader.read(parent), reader.read(commit.oid)
    every = before.tree.overlay(after.tree)
    touched_paths = tuple(_changed(before.tree, after.tree))
    own = rules_of_test_folders(
        tuple(every.by_path), touched_paths, lambda path: reader.text(every.by_path[path]), RoleBook(rules)
    )
    role = RoleBook((*own, *rules))
    useful = [path for path in touched_paths if not _not_in_reference().search(path)]
    role = RoleBook((*own, *rules_of_data(tuple(every.by_path), useful, role), *rules))
    hidden = after.tree.select(role.graded)
    changed = [path for path in touched_paths if _belongs(path, role)]
    changes = after.tree.select(set(changed).__contains__)
    left_out = {entry.path: entry for entry in (*before.left_out, *after.left_out)}
    touched = {path for touched in commit.touched for path in (touched.path, touched.old_path)}
    tests = [path for path in touched_paths if role(path) is Role.TEST and path in after.tree.by_path]
    return Split(
        role=role,
        parent=parent,
        start=before.tree,
        fixed=after.tree,
        hidden=hidden,
        changes=changes,
        removed=tuple(path for path in changed if path not in after.tree.by_path),
        tests=tuple(tests),
        left_out=tuple(left_out.values()),
        touched_left_out=tuple(entry for path, entry in left_out.items() if path in touched),
    )


def patch_of(git: GitDir, split: Split, commit: str) -> bytes:
    """The known solution as a unified diff."""
    paths = sorted({*split.changes.by_path, *split.removed})
    return git.run(
        "--literal-pathspecs", "diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames",
        split.parent, commit, "--", *paths,
    )  # fmt: skip


def text_of(content: bytes) -> str | None:
    """A content as text, or None for a binary one."""
    if _BINARY in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _changed(before: Tree, after: Tree) -> Iterator[str]:
    for path in sorted({*before.by_path, *after.by_path}):
        old, new = before.by_path.get(path), after.by_path.get(path)
        if old is None or new is None or (old.blob, old.mode) != (new.blob, new.mode):
            yield path


def _belongs(path: str, role: RoleBook) -> bool:
    found = role(path)
    return found is Role.SOURCE or (found is Role.OTHER and not _not_in_reference().search(path))


@cache
def _not_in_reference() -> re.Pattern[str]:
    lines = (resources.files(__package__) / "words" / "not_in_reference.txt").read_text("utf-8").splitlines()
    return re.compile("|".join(f"(?:{line})" for line in lines if line and not line.startswith("#")), re.I)
