"""A pack's folder: written aside, then put in place in one step."""

from __future__ import annotations

import fcntl
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from envsynth.errors import ExportError, boundary
from envsynth.models import digest_of

MANIFEST = "manifest.json"
DIGEST = "digest"
"""Field of the manifest that has the digest of the whole pack."""
_STEP = "name another folder with --out DIR"
_MADE_AGAIN = ("__pycache__", ".venv", ".pytest_cache", "build", "dist", "uv.lock")
"""What may go away with an earlier pack, since it is made from one."""
_NAME_BYTES = 200
"""Of a folder's name, what the names of those beside it begin with: a name has 255 bytes at most."""


def require_free(out: Path, *, name: str, format_: str) -> None:
    """Check that a pack may be written to `out`.

    Raises:
        ExportError: something else than an earlier pack of the same name is there, or something more.
    """
    with boundary(ExportError, "the pack cannot be written", where=str(out), next_step=_STEP):
        if not out.exists() and not out.is_symlink():
            return
        entries = sorted(entry.name for entry in out.iterdir()) if out.is_dir() and not out.is_symlink() else None
    found = read_manifest(out) if entries is not None else {}
    if entries is None or (entries and (found.get("name"), found.get("format")) != (name, format_)):
        raise ExportError(
            "the folder holds something else than an earlier pack of this name", where=str(out),
            next_step="choose another --out, or remove the folder",
        )  # fmt: skip
    files = found.get("files")
    own = {MANIFEST, *_MADE_AGAIN, *(path.partition("/")[0] for path in (files if isinstance(files, dict) else ()))}
    more = [entry for entry in entries if entry not in own and not entry.startswith(f".{MANIFEST}.")]
    if more:
        raise ExportError(
            "beside an earlier pack there is something that would be lost with it", where=str(out),
            cause=", ".join(more[:3]) + (f", and {len(more) - 3} more" if len(more) > 3 else ""),
            next_step="take it elsewhere, or choose another --out",
        )  # fmt: skip


def manifest_bytes(document: Mapping[str, object]) -> bytes:
    """A manifest as it is written, with the digest of the pack: the same document gives the same bytes."""
    whole = {**document, DIGEST: pack_digest(document)}
    return (json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def pack_digest(document: Mapping[str, object]) -> str:
    """`sha256:` and that of a manifest's canonical JSON without this digest: each file's path and digest, and the rest.

    Whoever has it from elsewhere knows of every file of a pack that it is the one that was written.
    """
    return f"sha256:{digest_of({name: value for name, value in document.items() if name != DIGEST})}"


def read_manifest(pack: Path) -> dict[str, object]:
    """The manifest of a pack; empty where there is none or it is no JSON object."""
    try:
        manifest = json.loads((pack / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def write_pack(out: Path, files: Mapping[str, bytes]) -> None:
    """Write a pack's files and put the folder in place; an earlier pack there goes away whole.

    Args:
        out: the pack's folder.
        files: contents by relative POSIX path.

    Raises:
        ExportError: the folder cannot be written, or holds something else by now.
    """
    with boundary(ExportError, "the pack cannot be written", where=str(out), next_step=_STEP):
        out = out.absolute()
        out.parent.mkdir(parents=True, exist_ok=True)
        with _alone(out.parent), _aside(out) as folder:
            manifest = json.loads(files.get(MANIFEST, b"{}"))
            if manifest:  # others may have written since it was looked at
                require_free(out, name=manifest["name"], format_=manifest["format"])
            for path, content in sorted(files.items()):
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            folder.chmod(0o777 & ~_umask())
            _swap(folder, out)
            _sweep(out, "old")


@contextmanager
def _alone(parent: Path) -> Iterator[None]:
    """Keep other writers of packs out of a folder; the kernel frees it when the holder dies."""
    handle = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some network file systems have no locks for folders; there two writers at once are not kept apart.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _beside(out: Path, kind: str) -> str:
    """How names of folders begin that are made while a pack is written."""
    name = os.fsencode(out.name)[:_NAME_BYTES].decode("utf-8", "ignore")
    return f".{name}-{kind}-"


def _sweep(out: Path, kind: str) -> None:
    """Take away what a killed writer left."""
    for left_over in out.parent.glob(f"{glob.escape(_beside(out, kind))}*"):
        shutil.rmtree(left_over, ignore_errors=True)


@contextmanager
def _aside(out: Path) -> Iterator[Path]:
    _sweep(out, "new")
    folder = Path(tempfile.mkdtemp(prefix=_beside(out, "new"), dir=out.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _swap(folder: Path, out: Path) -> None:
    if not out.exists():
        folder.rename(out)
        return
    old = Path(tempfile.mkdtemp(prefix=_beside(out, "old"), dir=out.parent))
    out.rename(old)
    try:
        folder.rename(out)
    except OSError:
        old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
