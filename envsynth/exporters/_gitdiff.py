"""What git would say of trees: a diff that `git apply` takes, and the id of a commit. Pure, so that bytes stay equal.

git itself is not asked: its diffs differ with its version and its user's settings.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import NamedTuple

from envsynth.hunks import lines_of
from envsynth.models import FileMode, Tree
from envsynth.protocols import BlobStore

__all__ = ["AUTHOR", "MESSAGE", "TIME", "GitFile", "commit_id", "git_diff", "git_files"]

AUTHOR, TIME, MESSAGE = "envsynth <envsynth@localhost>", "946684800 +0000", "Start"
"""Of the one commit that a start tree is."""
_LINK = "120000"
_MODES = {FileMode.FILE: "100644", FileMode.EXECUTABLE: "100755", FileMode.SYMLINK: _LINK}
_NOTHING = "0" * 40
_PLAIN = re.compile(r"[ !#-\[\]-~]+")
"""Paths that git does not quote."""
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


class GitFile(NamedTuple):
    """A file as git sees it."""

    mode: str
    content: bytes


def git_files(tree: Tree, blobs: BlobStore) -> dict[str, GitFile]:
    """Files of a tree by path.

    Raises:
        KeyError: a content is missing.
    """
    return {entry.path: GitFile(_MODES[entry.mode], blobs.get(entry.blob)) for entry in tree.entries}


def git_diff(old: Mapping[str, GitFile], new: Mapping[str, GitFile]) -> str:
    """The diff between two sets of files, by path; empty where they are equal.

    What is no UTF-8 text is a binary patch, so that the diff itself is text.
    """
    return "".join(
        part
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path)
        for part in _file_diff(path, old.get(path), new.get(path))
    )


def commit_id(files: Mapping[str, GitFile]) -> str:
    """The id of a commit without parents, of `AUTHOR` at `TIME` with `MESSAGE`, that holds just these files."""
    signed = f"{AUTHOR} {TIME}"
    text = f"tree {_tree_id(files)}\nauthor {signed}\ncommitter {signed}\n\n{MESSAGE}\n"
    return _object_id("commit", text.encode())


def _tree_id(files: Mapping[str, GitFile]) -> str:
    below: dict[str, dict[str, GitFile]] = {}
    lines: list[tuple[bytes, bytes]] = []
    for path, file in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            below.setdefault(name, {})[rest] = file
        else:
            lines.append((_raw(name), _tree_line(file.mode, name, _object_id("blob", file.content))))
    for name, inside in below.items():
        # git sorts a folder as if its name ended with a slash.
        lines.append((_raw(f"{name}/"), _tree_line("40000", name, _tree_id(inside))))
    return _object_id("tree", b"".join(line for _, line in sorted(lines)))


def _tree_line(mode: str, name: str, identity: str) -> bytes:
    return f"{mode} ".encode() + _raw(name) + b"\0" + bytes.fromhex(identity)


def _object_id(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _file_diff(path: str, old: GitFile | None, new: GitFile | None) -> Iterator[str]:
    if old and new and (old.mode == _LINK) != (new.mode == _LINK):
        # What turns from a file into a link goes and comes again.
        yield from _file_diff(path, old, None)
        yield from _file_diff(path, None, new)
        return
    before, after = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    yield f"diff --git {before} {after}\n"
    if old is None and new is not None:
        yield f"new file mode {new.mode}\n"
    elif new is None and old is not None:
        yield f"deleted file mode {old.mode}\n"
    elif old and new and old.mode != new.mode:
        yield f"old mode {old.mode}\nnew mode {new.mode}\n"
    removed, added = (file.content if file else b"" for file in (old, new))
    if old and new and removed == added:
        return
    identities = [_object_id("blob", file.content) if file else _NOTHING for file in (old, new)]
    mode = f" {new.mode}" if old and new and old.mode == new.mode else ""
    yield f"index {'..'.join(identities)}{mode}\n"
    texts = _text(removed), _text(added)
    if texts[0] is None or texts[1] is None:
        yield f"GIT binary patch\n{_literal(added)}\n{_literal(removed)}\n"
    elif removed != added:
        names = ("/dev/null" if old is None else before), ("/dev/null" if new is None else after)
        yield from _lines(texts[0], texts[1], *(f"{name}\t" if " " in name else name for name in names))


def _lines(old: str, new: str, *names: str) -> Iterator[str]:
    yield f"--- {names[0]}\n+++ {names[1]}\n"
    # The first two lines are the names, which difflib spells otherwise.
    for number, line in enumerate(unified_diff(lines_of(old), lines_of(new))):
        if number > 1:
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _literal(content: bytes) -> str:
    """A content as git's binary patches hold it: deflated, lines of base 85 with their length first."""
    packed, lines = zlib.compress(content), []
    for start in range(0, len(packed), 52):
        part = packed[start : start + 52]
        length = chr(ord("A") + len(part) - 1) if len(part) <= 26 else chr(ord("a") + len(part) - 27)
        lines.append(length + base64.b85encode(part, pad=True).decode() + "\n")
    return f"literal {len(content)}\n{''.join(lines)}"


def _quoted(path: str) -> str:
    """A path as git spells it where `core.quotePath` is on."""
    if _PLAIN.fullmatch(path):
        return path
    spelled = (_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in _raw(path))
    return f'"{"".join(spelled)}"'
