"""The content-addressed cache: blobs, materialised trees, remembered results, and locks between processes.

Everything here may be deleted at any time; it is made again. Every entry is written beside its place and renamed
into it, so a killed process leaves no half entry, and every read checks what it read.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from envsynth.errors import ConfigError, boundary
from envsynth.models import Tree
from envsynth.runtime import trees
from envsynth.runtime.trees import Entry

__all__ = ["Cache", "default_cache_dir", "remove_folder"]


def default_cache_dir() -> Path:
    """`$ENVSYNTH_CACHE`, else the platform's cache folder."""
    named = os.environ.get("ENVSYNTH_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("envsynth", appauthor=False))


class Cache:
    """A folder of content-addressed work, shared by any number of processes."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._whole: set[str] = set()
        """Blobs that this process has written or compared."""
        with self._boundary():
            self.root.mkdir(parents=True, exist_ok=True)

    # --- blobs ---------------------------------------------------------------------------------------------

    def put(self, content: bytes) -> str:
        """Keep a content; returns its sha256."""
        digest = hashlib.sha256(content).hexdigest()
        path = self._blob(digest)
        if digest not in self._whole or not path.exists():
            if not _holds(path, content):
                self._write(path, zlib.compress(content, 1))
            self._whole.add(digest)
        return digest

    def get(self, digest: str) -> bytes:
        """The content of a digest.

        Raises:
            KeyError: there is none, or it is corrupt (it is then removed).
        """
        path = self._blob(digest)
        try:
            content = zlib.decompress(path.read_bytes())
        except FileNotFoundError:
            self._whole.discard(digest)
            raise KeyError(digest) from None
        except zlib.error:
            content = b""
        if hashlib.sha256(content).hexdigest() != digest:
            self._whole.discard(digest)
            path.unlink(missing_ok=True)
            raise KeyError(digest)
        return content

    def put_tree(self, tree: Tree) -> str:
        """Keep a tree's document; returns the blob's digest."""
        return self.put(tree.to_json().encode())

    def get_tree(self, digest: str) -> Tree:
        """The tree of a digest.

        Raises:
            KeyError: there is none.
        """
        return Tree.from_json(self.get(digest))

    # --- trees on disk -------------------------------------------------------------------------------------

    def materialise(self, tree: Tree) -> Path:
        """A host folder with the tree's files; layers of sandboxes, never to be changed."""
        self.put_tree(tree)
        manifest = {entry.path: Entry(entry.mode.value, entry.blob, entry.size) for entry in tree.entries}
        return trees.materialise(manifest, self.get, self.root)

    # --- results -------------------------------------------------------------------------------------------

    def recall(self, kind: str, key: str) -> str | None:
        """The text kept for `key`, or None; a corrupt one counts as none."""
        path = self._result(kind, key)
        try:
            digest, _, text = path.read_text("utf-8").partition("\n")
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            path.unlink(missing_ok=True)
            return None
        return text

    def keep(self, kind: str, key: str, text: str) -> None:
        """Keep a text for `key`."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._write(self._result(kind, key), f"{digest}\n{text}".encode())

    def remember(self, kind: str, key: str, make: Callable[[], str]) -> str:
        """The text kept for `key`, made once even when several processes ask."""
        text = self.recall(kind, key)
        if text is None:
            with self.lock(f"{kind}-{key}"):
                text = self.recall(kind, key)
                if text is None:
                    text = make()
                    self.keep(kind, key, text)
        return text

    # --- locks and folders ---------------------------------------------------------------------------------

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock between processes; the kernel frees it when the holder dies."""
        path = self.root / "locks" / hashlib.sha256(name.encode()).hexdigest()[:32]
        with self._boundary():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = path.open("a")
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def folder(self, *parts: str) -> Path:
        """A folder of the cache, made if it is not there."""
        path = self.root.joinpath(*parts)
        with self._boundary():
            path.mkdir(parents=True, exist_ok=True)
        return path

    @contextmanager
    def _boundary(self) -> Iterator[None]:
        step = "name another folder with --cache DIR or $ENVSYNTH_CACHE"
        with boundary(ConfigError, "the cache cannot be written", where=str(self.root), next_step=step):
            yield

    def _blob(self, digest: str) -> Path:
        return self.root / "blobs" / digest[:2] / digest[2:]

    def _result(self, kind: str, key: str) -> Path:
        return self.root / "results" / kind / key[:2] / key[2:]

    def _write(self, path: Path, content: bytes) -> None:
        with self._boundary():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise


def _holds(path: Path, content: bytes) -> bool:
    """Whether a blob's file is there and undamaged: a damaged one must not keep the content from being written."""
    try:
        return zlib.decompress(path.read_bytes()) == content
    except (FileNotFoundError, zlib.error):
        return False


def remove_folder(path: Path) -> None:
    """Remove a folder whole, read-only parts included."""
    for parent, folders, _ in os.walk(path):
        for name in folders:
            inside = Path(parent, name)
            if not inside.is_symlink():
                inside.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
