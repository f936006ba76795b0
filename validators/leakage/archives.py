"""What archives and git's own files hold, so that it is searched like any other file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Member", "Unreadable", "is_archive", "is_git_store", "members"]

MAX_TOTAL = 2**27
"""Unpacked bytes of one archive; more is not looked into."""
MAX_MEMBERS = 20_000
MAX_DEPTH = 3
_GIT_S = 60.0
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0")
"""How files packed by gzip, bzip2 and xz begin."""
_BUNDLE = b"# v"
_PACK = b"PACK\0\0\0"


class Member(NamedTuple):
    """One file in an archive."""

    path: str
    content: bytes


class Unreadable(Exception):
    """An archive that cannot be looked into."""


def is_archive(content: bytes) -> bool:
    """Whether a content is packed in a way that `members` reads."""
    return (
        content.startswith((b"PK\x03\x04", b"PK\x05\x06"))
        or content[257:262] == b"ustar"
        or is_git_store(content)
        or content.startswith(_PACKED)
    )


def is_git_store(content: bytes) -> bool:
    """Whether a content is a git bundle, a pack or a loose object."""
    if content.startswith(_PACK) or (content.startswith(_BUNDLE) and b" git bundle\n" in content[:32]):
        return True
    return _loose(content) is not None


def members(content: bytes, depth: int = 0) -> Iterator[Member]:
    """The files of an archive, archives in it unpacked too.

    Raises:
        Unreadable: it is damaged, encrypted, too large, or packed too deep.
    """
    if depth >= MAX_DEPTH:
        raise Unreadable("archives in archives")
    total = 0
    for number, member in enumerate(_opened(content)):
        total += len(member.content)
        if total > MAX_TOTAL or number >= MAX_MEMBERS:
            raise Unreadable("too large")
        yield member
        if is_archive(member.content):
            yield from (Member(f"{member.path}!{one.path}", one.content) for one in members(member.content, depth + 1))


def _opened(content: bytes) -> Iterator[Member]:
    try:
        if is_git_store(content):
            yield from _git_objects(content)
        elif content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as file:
                for name in file.namelist():
                    if file.getinfo(name).file_size > MAX_TOTAL:
                        raise Unreadable("too large")
                    yield Member(name, file.read(name))
        elif content[257:262] == b"ustar":
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                for entry in archive:
                    opened = archive.extractfile(entry) if entry.isfile() else None
                    if opened is not None:
                        yield Member(entry.name, opened.read(MAX_TOTAL + 1))
        else:
            with _unpacker(content) as packed:
                yield Member("content", packed.read(MAX_TOTAL + 1))
    except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile, tarfile.TarError,
            zlib.error, lzma.LZMAError, subprocess.TimeoutExpired) as exc:  # fmt: skip
        raise Unreadable(str(exc) or type(exc).__name__) from exc


def _unpacker(content: bytes) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    stream = io.BytesIO(content)
    if content.startswith(_PACKED[0]):
        return gzip.GzipFile(fileobj=stream)
    return bz2.BZ2File(stream) if content.startswith(_PACKED[1]) else lzma.LZMAFile(stream)


def _loose(content: bytes) -> bytes | None:
    """A loose object's content."""
    if content[:1] != b"\x78":
        return None
    try:
        start = zlib.decompressobj().decompress(content, 64)
        kind, _, rest = start.partition(b" ")
        if kind not in (b"blob", b"commit", b"tree", b"tag") or b"\0" not in rest:
            return None
        return zlib.decompress(content).partition(b"\0")[2]
    except zlib.error:
        return None


def _git_objects(content: bytes) -> Iterator[Member]:
    """The objects of a bundle, a pack or a loose object; deltas against objects that are not there are left out."""
    loose = _loose(content)
    if loose is not None:
        yield Member("object", loose)
        return
    pack = content[content.index(_PACK) :] if _PACK in content else b""
    with tempfile.TemporaryDirectory(prefix="pack-") as folder:
        _git(folder, "init", "--quiet", "--bare")
        done = _git(folder, "unpack-objects", "-q", "-r", stdin=pack)
        listed = _git(folder, "cat-file", "--batch-all-objects", "--batch").stdout
        if done.returncode and not listed:
            raise Unreadable("git cannot unpack it")
    while listed:
        header, _, rest = listed.partition(b"\n")
        name, kind, size = header.decode().split(" ")
        if kind != "tree":
            yield Member(f"{kind} {name[:12]}", rest[: int(size)])
        listed = rest[int(size) + 1 :]


def _git(folder: str, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(Path(folder))}
    return subprocess.run(
        ["git", "-C", folder, *words], input=stdin, capture_output=True, timeout=_GIT_S, check=False, env=environment
    )
