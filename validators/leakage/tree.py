"""The fix and the hidden tests in the files of the start tree: copies, archives, byte code, history, change logs."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from envsynth.leaks import leaks, secrets_of
from envsynth.models import FileMode, Finding, Role, TreeEntry
from envsynth.validators.leakage.archives import Unreadable, is_archive, is_git_store, members
from envsynth.validators.leakage.guards import TEXT_BYTES, Guards
from envsynth.validators.leakage.passages import Guarded, held, readings

__all__ = ["Seen", "look_at_tree", "search"]

MAX_ARCHIVE = 2**26
"""Packed bytes; a larger one is not looked into."""
_SMALL = 20
"""Bytes; two files that are as short are equal by chance."""
_COMPILED = re.compile(r"\.(py[co]|so|pyd|dll|dylib|o|class)$", re.I)
_CHANGE_LOG = re.compile(
    r"(^|/)(change(s|log)|history|news|release[-_ ]?notes?|whats[-_ ]?new)([-_./]|$)|(^|/)newsfragments/", re.I
)
_TOKENS = 3


class Seen(NamedTuple):
    """What is wrong, and what only deserves a word."""

    fatal: list[Finding]
    noted: list[Finding]


def look_at_tree(guards: Guards) -> Seen:
    """Search every file that an agent finds in its workspace."""
    seen = Seen([*_equal_files(guards)], [])
    for entry in guards.files.start.entries:
        if ".git" in entry.path.split("/"):
            seen.fatal.append(Finding(rule="history_in_tree", message="git's own folder", where=entry.path))
        elif entry.mode is not FileMode.SYMLINK and entry.size:
            _look_at_file(guards, entry, seen)
    return seen


def search(guards: Guards, path: str, content: bytes, *, ours: bool) -> Iterator[tuple[Guarded, bool]]:
    """The guarded files that a content holds, each with whether that is a leak or a likeness.

    Args:
        guards: what is looked for.
        path: of the content, for how it is to be read.
        content: any bytes.
        ours: whether it is the project's own code, which a solution may well have taken as its model.
    """
    found = list(readings(path, content))
    for guarded in guards.guarded:
        for passages in found:
            seen = held(guarded, passages)
            if seen.copy or seen.alike:
                yield guarded, seen.copy or not ours
                break


def _look_at_file(guards: Guards, entry: TreeEntry, seen: Seen) -> None:
    if _CHANGE_LOG.search(entry.path):
        seen.noted.extend(_change_log(guards, entry))
    content = guards.blobs.get(entry.blob) if entry.size <= MAX_ARCHIVE else b""
    if content and is_archive(content):
        _look_into(guards, entry.path, content, seen)
    elif _COMPILED.search(entry.path):
        seen.fatal.extend(_compiled(guards, entry.path, content))
    elif content and entry.size <= TEXT_BYTES:
        _look_for_text(guards, entry.path, content, seen)
    else:
        seen.noted.append(Finding(rule="file_not_searched", message=f"{entry.size} bytes", where=entry.path))


def _look_for_text(guards: Guards, path: str, content: bytes, seen: Seen) -> None:
    ours = guards.role(path) in (Role.SOURCE, Role.TEST)
    for guarded, leak in search(guards, path, content, ours=ours):
        rule = f"{guarded.what}_in_tree" if leak else f"{guarded.what}_resembles_tree"
        message = f"holds {'the changed text' if leak else 'code much like that'} of {guarded.path}"
        (seen.fatal if leak else seen.noted).append(Finding(rule=rule, message=message, where=path))


def _look_into(guards: Guards, path: str, content: bytes, seen: Seen) -> None:
    """An archive: like files, and each whole file that is equal to a guarded one."""
    secret = {entry.blob: entry.path for entry in _secret_entries(guards)}
    try:
        for member in members(content):
            where = f"{path}!{member.path}"
            equal = secret.get(_digest(member.content)) if len(member.content) > _SMALL else None
            if equal is not None:
                seen.fatal.append(Finding(rule="packed_fix", message=f"equal to {equal}", where=where))
            elif _COMPILED.search(member.path):
                seen.fatal.extend(_compiled(guards, where, member.content))
            elif len(member.content) <= TEXT_BYTES:
                leaking = [one.path for one, leak in search(guards, member.path, member.content, ours=False) if leak]
                seen.fatal.extend(
                    Finding(rule="packed_fix", message=f"holds the changed text of {one}", where=where)
                    for one in leaking
                )
    except Unreadable as exc:
        test = guards.role(path) is Role.TEST
        if is_git_store(content) and not test:
            seen.fatal.append(Finding(rule="history_in_tree", message=f"git objects: {exc}", where=path))
        else:
            seen.noted.append(Finding(rule="archive_not_searched", message=str(exc), where=path))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _secret_entries(guards: Guards) -> list[TreeEntry]:
    """Files of the fix and of the changed tests whose content an agent must not have."""
    files = guards.files
    start = files.start.by_path
    moved = {start[path].blob for path in guards.candidate.solution.removed if path in start}
    fix = [entry for entry in files.changes.entries if entry != start.get(entry.path)]
    return [entry for entry in (*fix, *guards.changed_tests) if entry.size > _SMALL and entry.blob not in moved]


def _equal_files(guards: Guards) -> Iterator[Finding]:
    """Contents of the fix or the hidden tests that are visible as they are, in the tree or the environment's files.

    This is also what a pack gives to an agent: no digest of its hidden part may be in the visible part.
    """
    site = guards.candidate.workspace.recipe.site
    visible = [*guards.files.start.entries, *(guards.blobs.get_tree(site).entries if site else ())]
    places = {entry.blob: entry.path for entry in visible}
    for entry in _secret_entries(guards):
        if entry.blob in places:
            fix = entry.path in guards.files.changes.by_path
            yield Finding(
                rule="fixed_file_visible" if fix else "hidden_test_visible",
                message=f"the same content as {entry.path} of the {'solution' if fix else 'hidden tests'}",
                where=places[entry.blob],
            )
    visible_blobs = {guards.candidate.solution.patch, guards.candidate.solution.changes} & places.keys()
    for blob in visible_blobs:
        yield Finding(rule="fixed_file_visible", message="the solution's patch or file list", where=places[blob])


def _compiled(guards: Guards, path: str, content: bytes) -> Iterator[Finding]:
    """Byte code or machine code of a module that the fix changes, or of another that shows the fix's own names."""
    name = posixpath.basename(path).partition(".")[0]
    for change in guards.changes:
        folder, stem = posixpath.split(change.path)
        same = stem.rpartition(".")[0] == name and posixpath.basename(folder) in ["", *path.split("/")[:-1]]
        if same and path.lower().endswith((".pyc", ".pyo")):
            yield Finding(rule="byte_code_of_fix", message=f"byte code of {change.path}", where=path)
            return
        shown = [token for token in guards.tokens if token in content]
        if shown and (len(shown) >= _TOKENS or (same and 2 * len(shown) >= len(guards.tokens))):
            names = ", ".join(token.decode() for token in shown[:3])
            yield Finding(rule="compiled_fix", message=f"compiled code with {names}", where=path)
            return


def _change_log(guards: Guards, entry: TreeEntry) -> Iterator[Finding]:
    """A change log that already speaks of the fix: no solution, but more than the instruction says."""
    text = guards.text(guards.files.start, entry.path)
    if text is None:
        return
    touched = "\n".join(change.before for change in guards.changes)
    new = secrets_of(guards.changes, touched, guards.told)
    named = [word for word in leaks(text, new._replace(plain=frozenset(), lines=frozenset())) if len(word) >= 5]
    if len(named) >= 2:
        yield Finding(rule="change_log_names_fix", message=f"it says {', '.join(named[:3])}", where=entry.path)
