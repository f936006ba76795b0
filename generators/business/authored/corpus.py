"""Passages of real documents that worlds are grounded in: a few paragraphs each, drawn by seed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from envsynth.errors import ConfigError, boundary
from envsynth.seeds import stream

__all__ = ["Passage", "draw_passage", "place"]

SUFFIXES = (".md", ".markdown", ".txt", ".rst")
LEAST, MOST = 400, 2_500
"""Characters of a passage; paragraphs are taken together until there are enough."""
MAX_FILE = 4 * 2**20
"""Bytes of a file that is read; longer ones are no prose."""
MAX_FILES = 5_000


class Passage(NamedTuple):
    """A few paragraphs of one document."""

    path: str
    """Inside the corpus."""
    text: str

    @property
    def digest(self) -> str:
        """sha256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def place(named: str, origin_file: str) -> Path:
    """Where a path of a source line leads: relative ones begin at the list's folder, or at the working folder."""
    folder = Path() if origin_file == "--source" else Path(origin_file).parent
    return (folder / Path(named).expanduser()).absolute()


def draw_passage(folder: Path, seed: int, number: int, *, where: str) -> Passage:
    """The passage of a world: no two worlds of one seed have the same before all had one.

    Args:
        folder: of the corpus.
        seed: of the source.
        number: of the world.
        where: the source's line, for messages.

    Raises:
        ConfigError: there is no such folder, or it has no passage.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"the corpus {folder} is no folder", where=where, cause="the path is wrong, or it is a file",
            next_step="name a folder of text or Markdown files with corpus=DIR",
        )  # fmt: skip
    with boundary(ConfigError, "the corpus cannot be read", where=str(folder)):
        passages = _all(folder)
    if not passages:
        raise ConfigError(
            f"the corpus {folder} has no passage", where=where,
            cause=f"no file ending in {', '.join(SUFFIXES)} has {LEAST} characters of prose",
            next_step="put documents into it",
        )  # fmt: skip
    order = stream(str(seed), "corpus").sample(range(len(passages)), len(passages))
    return passages[order[number % len(passages)]]


@lru_cache(maxsize=4)
def _all(folder: Path) -> tuple[Passage, ...]:
    """A corpus as it is when it is first read in a process."""
    return tuple(_passages(folder))


def _passages(folder: Path) -> Iterator[Passage]:
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and _is_plain(path, folder))
    for path in files[:MAX_FILES]:
        text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        name = path.relative_to(folder).as_posix()
        yield from (Passage(name, part) for part in _parts(text))


def _is_plain(path: Path, folder: Path) -> bool:
    """Whether a path is a file of the corpus itself: links may lead anywhere, and dot files are no documents."""
    relative = path.relative_to(folder)
    inside = [folder.joinpath(*relative.parts[:depth]) for depth in range(1, len(relative.parts) + 1)]
    if any(part.startswith(".") for part in relative.parts) or any(part.is_symlink() for part in inside):
        return False
    return path.is_file() and path.stat().st_size <= MAX_FILE


def _parts(text: str) -> Iterator[str]:
    """Paragraphs taken together; what is left at the end and too short is left out, as is a paragraph too long."""
    kept: list[str] = []
    size = 0
    for paragraph in (part.strip() for part in re.split(r"\n\s*\n", text)):
        if not paragraph or len(paragraph) > MOST:
            continue
        if size + len(paragraph) > MOST:
            if size >= LEAST:
                yield "\n\n".join(kept)
            kept, size = [], 0
        kept.append(paragraph)
        size += len(paragraph) + 2
    if size >= LEAST:
        yield "\n\n".join(kept)
