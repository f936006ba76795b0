"""What the tests of mechanisms share."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest

from envsynth.models import Origin, Source, SourceOptions


class Blobs(dict[str, bytes]):
    """Contents by digest, in memory."""

    def put(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self[digest] = content
        return digest


@pytest.fixture
def context() -> Any:
    """As much of a context as mechanisms need."""
    return SimpleNamespace(blobs=Blobs(), remember=lambda kind, key, make: make(), model=lambda role: None)


def mechanism_source(family: str, *, limit: int | None = None, seed: int = 0, **extra: str) -> Source:
    """A source line `mechanism:FAMILY`."""
    return Source(
        uri=f"mechanism:{family}", kind="mechanism", location=family, options=SourceOptions(limit=limit, seed=seed),
        extra=tuple(sorted(extra.items())), origin=Origin(file="list", line=3),
    )  # fmt: skip


@pytest.fixture
def source_of() -> Any:
    """Makes sources."""
    return mechanism_source
