"""Contents by sha256 inside a catalog: zlib-compressed, each stored once."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from envsynth.catalog._connection import Connection, transaction, translated
from envsynth.catalog._sql import statements
from envsynth.errors import CatalogError
from envsynth.models import Candidate, Tree, WorldRef
from envsynth.protocols import BlobStore

__all__ = ["CatalogBlobs", "roots_of"]

_BATCH = 1000
"""Contents a statement."""


def roots_of(candidate: Candidate) -> tuple[list[str], list[str]]:
    """Digests a candidate names: (trees, plain contents)."""
    if isinstance(candidate.environment, WorldRef):
        return [], [candidate.environment.world]
    environment = candidate.environment
    trees = [environment.tree, environment.hidden, candidate.solution.changes]
    if environment.recipe.site is not None:
        trees.append(environment.recipe.site)
    return trees, [candidate.solution.patch]


class CatalogBlobs:
    """The blob store of an open catalog."""

    def __init__(self, connection: Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._known: set[str] = set()
        self._closed: set[str] = set()

    def get(self, digest: str) -> bytes:
        """The content of a digest.

        Raises:
            KeyError: there is none, or it is corrupt.
        """
        with translated(self._path, "a content cannot be read"):
            row = self._connection.execute(statements("read")["blob"], {"digest": digest}).fetchone()
        if row is None:
            raise KeyError(digest)
        return _unpacked(digest, row[0])

    def get_tree(self, digest: str) -> Tree:
        """The tree of a digest.

        Raises:
            KeyError: there is none.
        """
        return Tree.from_json(self.get(digest))

    def put(self, content: bytes) -> str:
        """Keep a content; returns its digest."""
        digest = hashlib.sha256(content).hexdigest()
        with transaction(self._connection, self._path, "a content cannot be written"):
            self.insert([(digest, content)])
        return digest

    def put_tree(self, tree: Tree) -> str:
        """Keep a tree's document; returns the blob's digest."""
        return self.put(tree.to_json().encode())

    def copy_closure(self, candidates: Iterable[Candidate], origin: BlobStore) -> None:
        """Copy everything that candidates name, inside the caller's transaction.

        Raises:
            CatalogError: a content is gone from its origin.
        """
        trees: set[str] = set()
        contents: set[str] = set()
        for candidate in candidates:
            tree_digests, plain = roots_of(candidate)
            trees.update(tree_digests)
            contents.update(plain)
        unchecked = sorted(trees - self._closed)
        try:
            for digest in unchecked:
                contents.update(entry.blob for entry in origin.get_tree(digest).entries)
            missing = self.missing(sorted(contents | trees))
            for start in range(0, len(missing), _BATCH):
                batch = missing[start : start + _BATCH]
                self.insert([(digest, origin.get(digest)) for digest in batch])
        except KeyError as exc:
            raise CatalogError(
                "a content of a candidate is gone from the cache", where=str(exc.args[0]),
                cause="the cache was cleared or damaged while the build ran", next_step="run the same command again",
            ) from exc  # fmt: skip
        self._closed.update(unchecked)

    def insert(self, contents: Sequence[tuple[str, bytes]]) -> None:
        """Insert contents by digest, inside the caller's transaction."""
        self._connection.execute(
            statements("write")["insert_blobs"],
            {
                "digests": [digest for digest, _ in contents],
                "sizes": [len(content) for _, content in contents],
                "contents": [zlib.compress(content) for _, content in contents],
            },
        )

    def missing(self, digests: Sequence[str]) -> list[str]:
        """Those of the digests that are not here, in order."""
        asked = [digest for digest in digests if digest not in self._known]
        if not asked:
            return []
        rows = self._connection.execute(statements("read")["known_blobs"], {"digests": asked}).fetchall()
        self._known.update(row[0] for row in rows)
        return [digest for digest in asked if digest not in self._known]

    def forget(self) -> None:
        """Ask the database again for what is here: rows were removed, or a transaction was rolled back."""
        self._known.clear()
        self._closed.clear()


def _unpacked(digest: str, packed: bytes) -> bytes:
    try:
        content = zlib.decompress(packed)
    except zlib.error:
        raise KeyError(digest) from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise KeyError(digest)
    return content
