"""Variants of a candidate's reference as trees, and what a test run says of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from envsynth.models import (
    Candidate,
    FileMode,
    Role,
    TestLists,
    TestRun,
    TestStatus,
    Tree,
    TreeEntry,
    VariantFile,
    role_of,
)  # fmt: skip
from envsynth.panel import reference_tree
from envsynth.protocols import BlobStore

MAX_BYTES = 2**20
"""Of one source file; larger ones are generated and make no variants."""


class ReferenceTexts(NamedTuple):
    """Text of each source file that the reference touches, by path."""

    before: dict[str, str]
    after: dict[str, str]


def reference_texts(candidate: Candidate, blobs: BlobStore) -> ReferenceTexts:
    """The source files of the reference that are text, at the start and with it applied."""
    start = blobs.get_tree(candidate.workspace.tree)
    changes = blobs.get_tree(candidate.solution.changes)
    paths = {entry.path for entry in changes.entries} | set(candidate.solution.removed)
    texts = ReferenceTexts({}, {})
    for path in sorted(path for path in paths if role_of(path, candidate.workspace.roles) is Role.SOURCE):
        gone = path in candidate.solution.removed
        sides = ((texts.before, start.by_path.get(path)), (texts.after, None if gone else changes.by_path.get(path)))
        read = [(side, entry, _text(entry, blobs)) for side, entry in sides if entry is not None]
        if all(text is not None for _, _, text in read):
            for side, _, text in read:
                side[path] = text or ""
    return texts


def variant_tree(candidate: Candidate, files: Iterable[VariantFile], blobs: BlobStore) -> Tree:
    """The tree with the reference applied and a variant's files laid over."""
    tree = reference_tree(candidate, blobs)
    files = list(files)
    entries = []
    for file in files:
        if file.text is not None:
            content = file.text.encode()
            known = tree.by_path.get(file.path)
            mode = known.mode if known is not None else FileMode.FILE
            entries.append(TreeEntry(path=file.path, mode=mode, blob=blobs.put(content), size=len(content)))
    removed = [file.path for file in files if file.text is None]
    return tree.without(removed).overlay(Tree(entries=tuple(entries)))


def not_passing(run: TestRun, keys: Sequence[str]) -> tuple[str, ...]:
    """Those of the tests that did not pass in a run; what is not reported did not pass."""
    passed = {record.key for record in run.records if record.status is TestStatus.PASSED}
    failed = {record.key for record in run.records if record.status is not TestStatus.PASSED}
    return tuple(key for key in keys if key not in passed or key in failed)


def graded_keys(lists: TestLists) -> tuple[str, ...]:
    """Every test that decides an outcome."""
    return (*lists.fail_to_pass, *lists.pass_to_pass)


def _text(entry: TreeEntry, blobs: BlobStore) -> str | None:
    if entry.mode is FileMode.SYMLINK or entry.size > MAX_BYTES:
        return None
    try:
        return blobs.get(entry.blob).decode("utf-8")
    except UnicodeDecodeError:
        return None
