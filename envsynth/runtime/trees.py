"""Trees of files read from their JSON documents, and host folders made of them, once per content.

The folders lie where `envsynth.cache.Cache` puts them, under the same locks, so that both share one copy.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..errors import SandboxError, boundary
from .contract import JSON

Blobs = Callable[[str], bytes]
"""Content of a sha256 digest. Raises KeyError where there is none."""


class Entry(NamedTuple):
    """One file of a tree."""

    mode: str
    """`file`, `executable` or `symlink`."""
    blob: str
    """sha256 of the content; of the target's text for a symlink."""
    size: int


Manifest = Mapping[str, Entry]
"""Files by relative POSIX path."""


def canonical_json(value: JSON) -> str:
    """The one JSON text of a value; the same as `envsynth.models.canonical_json`."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def load_manifest(digest: str, blobs: Blobs) -> dict[str, Entry]:
    """The files of a tree blob.

    Raises:
        SandboxError: the blob is missing or no tree.
    """
    with boundary(SandboxError, "a tree of the task cannot be read", where=digest[:12]):
        document = json.loads(blobs(digest))
        found = {entry["path"]: Entry(entry["mode"], entry["blob"], entry["size"]) for entry in document["entries"]}
        _require_safe(found)
        return found


def _require_safe(manifest: Manifest) -> None:
    for path in manifest:
        parts = path.split("/")
        if "\0" in path or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"not a relative path inside the tree: {path!r}")
        if any("/".join(parts[:end]) in manifest for end in range(1, len(parts))):
            raise ValueError(f"a path below a file: {path!r}")


def materialise(manifest: Manifest, blobs: Blobs, cache_dir: Path) -> Path:
    """A host folder with the files of a tree, made once and never changed afterwards.

    Raises:
        SandboxError: a content is missing or damaged, or the folder cannot be written.
    """
    entries = [
        {"path": path, "mode": entry.mode, "blob": entry.blob, "size": entry.size}
        for path, entry in sorted(manifest.items())
    ]
    name = hashlib.sha256(canonical_json({"entries": entries}).encode()).hexdigest()
    place = cache_dir / "trees" / name
    if place in _WHOLE or (place.is_dir() and _is_whole(place, manifest)):
        _WHOLE.add(place)
        return place
    trouble = boundary(SandboxError, "a tree cannot be laid out in the cache", where=str(cache_dir))
    with trouble, _lock(cache_dir, f"tree-{name}"):
        if place.is_dir() and not _is_whole(place, manifest):
            shutil.rmtree(place)
        if not place.is_dir():
            aside = cache_dir / "scratch"
            aside.mkdir(parents=True, exist_ok=True)
            for left_over in aside.glob(f"{name[:12]}-*"):  # of a killed process; others are kept out by the lock
                shutil.rmtree(left_over, ignore_errors=True)
            scratch = Path(tempfile.mkdtemp(prefix=f"{name[:12]}-", dir=aside))
            try:
                _write(manifest, blobs, scratch)
                place.parent.mkdir(parents=True, exist_ok=True)
                scratch.rename(place)
            except BaseException:
                shutil.rmtree(scratch, ignore_errors=True)
                raise
    _WHOLE.add(place)
    return place


_WHOLE: set[Path] = set()
"""Folders that this process has made or compared: a cache may be damaged between processes, not during one."""


def _is_whole(folder: Path, manifest: Manifest) -> bool:
    """Whether a folder still holds exactly the files of a tree."""
    found = 0
    for parent, folders, names in os.walk(folder):
        for name in (*names, *(inside for inside in folders if Path(parent, inside).is_symlink())):
            path = Path(parent, name)
            entry = manifest.get(path.relative_to(folder).as_posix())
            if entry is None or (_mode_of(path), _blob_of(path)) != (entry.mode, entry.blob):
                return False
            found += 1
    return found == len(manifest)


def _mode_of(path: Path) -> str:
    mode = path.lstat().st_mode
    return "symlink" if stat.S_ISLNK(mode) else "executable" if mode & 0o100 else "file"


def _blob_of(path: Path) -> str:
    try:
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError:
        return ""
    return hashlib.sha256(content).hexdigest()


def _write(manifest: Manifest, blobs: Blobs, folder: Path) -> None:
    for path, entry in manifest.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        content = blobs(entry.blob)
        if hashlib.sha256(content).hexdigest() != entry.blob:
            raise ValueError(f"the content of {path!r} is damaged")
        if entry.mode == "symlink":
            target.symlink_to(os.fsdecode(content))
            continue
        target.write_bytes(content)
        target.chmod(0o755 if entry.mode == "executable" else 0o644)


@contextmanager
def _lock(cache_dir: Path, name: str) -> Iterator[None]:
    path = cache_dir / "locks" / hashlib.sha256(name.encode()).hexdigest()[:32]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def leads_out(path: str, target: str) -> bool:
    """Whether a link may leave the tree: absolute, too many `..`, or `..` after a name, which may itself be a link."""
    if target.startswith("/") or not target:
        return True
    parts = [part for part in target.split("/") if part not in ("", ".")]
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    return ups > path.count("/") or ".." in parts[ups:]


def word_table(name: str) -> tuple[str, ...]:
    """The lines of a table in `words/`, without comments and blank lines."""
    text = Path(__file__).parent.joinpath("words", name).read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
