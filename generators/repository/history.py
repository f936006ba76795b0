"""The cheap look at a history: one `git log`, and a reason for every commit that is not followed."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from envsynth.generators.repository.config import Settings
from envsynth.generators.repository.gitdir import GitDir
from envsynth.generators.repository.roles import RoleBook
from envsynth.models import Role

_HEADER = re.compile(rb"\n?\x01([0-9a-f]{40}|[0-9a-f]{64})$")
_RAW = re.compile(rb"\n?:(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])\d*$")
_COMPILED_SOURCE = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".pyx", ".pxd", ".pxi", ".rs", ".f90", ".go")
_LINK = "120000"
_SUBMODULE = "160000"


class Touched(NamedTuple):
    """A path that a commit touches."""

    path: bytes
    old_path: bytes
    """Differs from `path` for a rename."""
    status: str
    """git's letter: A, M, D, R, C or T."""
    mode: str
    """git's mode after the commit, or before it for a removed path."""
    lines: int
    """Added and removed together; 0 for binary files."""


class Commit(NamedTuple):
    """What `git log` says of a commit."""

    oid: str
    parents: tuple[str, ...]
    committed: str
    """ISO 8601."""
    authored: str
    message: str
    touched: tuple[Touched, ...]

    @property
    def title(self) -> str:
        """First line of the message."""
        return self.message.strip().partition("\n")[0].strip()


class Scanned(NamedTuple):
    """A commit and why it is not followed; no reason: it is."""

    oid: str
    title: str
    reason: str
    detail: str


def scan(git: GitDir, revision: str, settings: Settings, role: RoleBook) -> list[Scanned]:
    """Judge the newest commits of a revision, newest first, in one git process."""
    log = git.run(
        "log", "-z", "--raw", "--numstat", "--find-renames", "-l200", "--no-abbrev", "--no-ext-diff", "--no-textconv",
        "--no-color", "--no-notes", "--encoding=UTF-8", f"--max-count={settings.commits}",
        "--format=%x01%H%x00%P%x00%cI%x00%aI%x00%B%x00", "--end-of-options", revision, timeout=600,
    )  # fmt: skip
    found = []
    for commit in parse_log(log):
        reason, detail = judge(commit, settings, role)
        found.append(Scanned(commit.oid, commit.title, reason, detail))
    return found


def read_commit(git: GitDir, oid: str) -> Commit:
    """One commit, as `scan` sees it."""
    log = git.run(
        "log", "-z", "--raw", "--numstat", "--find-renames", "-l200", "--no-abbrev", "--no-ext-diff", "--no-textconv",
        "--no-color", "--no-notes", "--encoding=UTF-8", "--max-count=1",
        "--format=%x01%H%x00%P%x00%cI%x00%aI%x00%B%x00", "--end-of-options", oid,
    )  # fmt: skip
    return next(parse_log(log))


def parse_log(log: bytes) -> Iterator[Commit]:
    """The commits of a NUL-separated log; paths are kept as bytes.

    Each record is a header of five fields, then raw lines, then the counts of the same paths in the same order.
    """
    tokens = log.split(b"\0")
    position = 0
    while position < len(tokens):
        header = _HEADER.match(tokens[position])
        if header is None:
            position += 1
            continue
        parents, committed, authored, message = (
            token.decode("utf-8", "replace") for token in tokens[position + 1 : position + 5]
        )
        position += 5
        touched, position = _paths(tokens, position)
        yield Commit(header[1].decode(), tuple(parents.split()), committed, authored, message, touched)


def _paths(tokens: list[bytes], position: int) -> tuple[tuple[Touched, ...], int]:
    raw: list[tuple[bytes, bytes, str, str]] = []
    while position < len(tokens) and (not tokens[position].strip() or _RAW.match(tokens[position])):
        match = _RAW.match(tokens[position])
        position += 1
        if match is None:
            continue
        status = match[5].decode()
        old = tokens[position]
        new = tokens[position + 1] if status in "RC" else old
        position += 2 if status in "RC" else 1
        raw.append((new, old, status, (match[1] if status == "D" else match[2]).decode()))
    lines: dict[bytes, int] = {}
    for _ in raw:
        added, removed, path = tokens[position].lstrip(b"\n").split(b"\t", 2)
        position += 1
        if not path:
            path = tokens[position + 1]
            position += 2
        lines[path] = 0 if added == b"-" else int(added) + int(removed)
    return tuple(Touched(new, old, status, mode, lines.get(new, 0)) for new, old, status, mode in raw), position


def judge(commit: Commit, settings: Settings, role: RoleBook) -> tuple[str, str]:
    """Why a commit is not followed, with a detail; empty reason: it is followed."""
    if len(commit.parents) > 1:
        return "merge", f"{len(commit.parents)} parents"
    if not commit.parents:
        return "no_parent", "the first commit"
    if settings.since and commit.committed[:10] < settings.since.isoformat():
        return "too_old", f"committed on {commit.committed[:10]}"
    reason = title_reason(commit)
    return (reason, commit.title[:100]) if reason else _judge_paths(commit, settings, role)


def title_reason(commit: Commit) -> str:
    """The reason that a message alone gives."""
    if re.search(r"^This reverts commit [0-9a-f]{7,}", commit.message, re.M):
        return "revert"
    return next((reason for reason, pattern in _titles() if pattern.search(commit.title)), "")


@cache
def _titles() -> tuple[tuple[str, re.Pattern[str]], ...]:
    table = tomllib.loads((resources.files(__package__) / "words" / "titles.toml").read_text("utf-8"))
    return tuple((reason, re.compile(text, re.I)) for reason, row in table.items() for text in row["patterns"])


def _judge_paths(commit: Commit, settings: Settings, role: RoleBook) -> tuple[str, str]:
    source, tests = [], []
    for touched in commit.touched:
        if touched.mode == _SUBMODULE:
            return "touches_submodule", _shown(touched.path)
        for path in {touched.path, touched.old_path}:
            try:
                found = role(path.decode("utf-8"))
            except UnicodeDecodeError:
                return "touches_odd_path", _shown(path)
            if found is Role.SOURCE and path == touched.path:
                source.append(touched)
            elif found is Role.TEST and path == touched.path:
                tests.append(touched)
    return _judge_roles(source, tests, settings)


_TEST_ENDINGS = (b".py", b".txt", b".json")


def _below(path: bytes, folders: tuple[str, ...]) -> bool:
    return any(
        path == os.fsencode(folder) or path.startswith(os.fsencode(folder.rstrip("/")) + b"/") for folder in folders
    )


def _judge_roles(source: list[Touched], tests: list[Touched], settings: Settings) -> tuple[str, str]:
    if not source:
        return "no_source_touched", ""
    if compiled := [
        touched for touched in source if touched.path.lower().endswith(tuple(s.encode() for s in _COMPILED_SOURCE))
    ]:
        return "non_python", f"{_shown(compiled[0].path)} is compiled"
    python = [touched for touched in source if touched.path.endswith(b".py")]
    if not python:
        return "non_python", f"{_shown(source[0].path)} is no Python"
    kept = [touched for touched in tests if touched.status != "D" and touched.path.endswith(_TEST_ENDINGS)]
    if not kept:
        return "no_tests_touched", ""
    if settings.tests and not any(_below(touched.path, settings.tests) for touched in kept):
        return "tests_elsewhere", f"{_shown(kept[0].path)} is not below tests={','.join(settings.tests)}"
    lines = sum(touched.lines for touched in source)
    if len(source) > settings.max_files or lines > settings.max_lines:
        return "too_large", f"{len(source)} source files, {lines} lines"
    return "", ""


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
