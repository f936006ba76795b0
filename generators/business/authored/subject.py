"""What a world is to be about: words of an industry or of a user, a persona, a passage of a document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml
from pydantic import JsonValue

from envsynth.errors import ConfigError, boundary
from envsynth.generators.business.authored.corpus import Passage, draw_passage, place
from envsynth.generators.business.blueprint import Industry
from envsynth.generators.business.countries import country
from envsynth.generators.business.load import Library
from envsynth.llm import quoted
from envsynth.models import Source
from envsynth.models.base import canonical_json

__all__ = ["Subject", "Wanted", "check_wanted", "passage_of", "personas", "scene_of", "subject_of", "words_of"]

MAX_WORDS = 8_000
"""Characters of a brief or a persona."""
MAX_PATH = 250
"""Characters of what may be a path; systems refuse to look for longer ones."""
_ANYTHING = (
    "Nothing is given: choose a trade, an institution or a household's affairs that is seldom written about, with"
    " rules of its own."
)
_PERSONAS = Path(__file__).with_name("personas.yaml")


class Wanted(NamedTuple):
    """What a source line says of its worlds."""

    brief: str = ""
    """Words with underscores, or a file's path."""
    persona: str = ""
    """A name that ships here, or words with underscores."""
    corpus: str = ""
    """A folder's path."""


class Subject(NamedTuple):
    """What a brief's author is shown, and where it comes from."""

    material: str
    metadata: dict[str, JsonValue]


@cache
def personas() -> Mapping[str, str]:
    """Personas that ship here, by name."""
    found: Mapping[str, str] = yaml.safe_load(_PERSONAS.read_text("utf-8"))
    return {name: text.strip() for name, text in found.items()}


def words_of(named: str, source: Source, option: str) -> str:
    """What an option says: the file that it names, or its words.

    Raises:
        ConfigError: it names a file that is not there, or says too much.
    """
    where = str(source.origin)
    path = place(named, source.origin.file)
    looks_like_path = "/" in named or Path(named).suffix.lower() in (".md", ".txt")
    if len(named) <= MAX_PATH and path.is_file():
        with boundary(ConfigError, f"{option}= cannot be read", where=str(path)):
            text = path.read_bytes().decode("utf-8", "replace").strip()
    elif looks_like_path:
        raise ConfigError(
            f"there is no file {path}", where=where, cause=f"{option}= names it",
            next_step=f"correct the path, or write words with underscores: {option}=a_village_post_office",
        )  # fmt: skip
    else:
        text = named.replace("_", " ").strip()
    if not text or len(text) > MAX_WORDS:
        raise ConfigError(
            f"{option}= has {len(text)} characters", where=where, next_step=f"give it 1 to {MAX_WORDS}",
        )  # fmt: skip
    return text


def check_wanted(wanted: Wanted, source: Source) -> None:
    """Look whether what a source line names is there.

    Raises:
        ConfigError: a file or a folder is not, or says nothing.
    """
    if wanted.brief:
        words_of(wanted.brief, source, "brief")
    if wanted.persona and wanted.persona not in personas():
        words_of(wanted.persona, source, "persona")
    passage_of(wanted, source, 0)


def passage_of(wanted: Wanted, source: Source, number: int) -> Passage | None:
    """The passage of a world; None where no corpus is named.

    Raises:
        ConfigError: the corpus cannot be used.
    """
    if not wanted.corpus:
        return None
    folder = place(wanted.corpus, source.origin.file)
    return draw_passage(folder, source.options.seed, number, where=str(source.origin))


def subject_of(wanted: Wanted, source: Source, number: int, scene: str) -> Subject:
    """What one world is to be about.

    Args:
        wanted: what the source line says.
        source: the line.
        number: of the world.
        scene: what the source itself says, ready to be shown; empty: nothing.

    Raises:
        ConfigError: the corpus or a file cannot be used.
    """
    pieces = [scene] if scene else []
    metadata: dict[str, JsonValue] = {}
    if wanted.brief:
        text = words_of(wanted.brief, source, "brief")
        pieces.append(f"What the user asks for:\n{quoted(text, 'brief')}")
    if wanted.persona:
        text = personas().get(wanted.persona) or words_of(wanted.persona, source, "persona")
        pieces.append(f"In the manner of this persona:\n{quoted(text, 'persona')}")
        metadata["persona"] = wanted.persona
    passage = passage_of(wanted, source, number)
    if passage is not None:
        pieces.append(f"A passage of a document, from which subject, terms and rules come:\n"
                      f"{quoted(passage.text, passage.path)}")  # fmt: skip
        metadata["corpus"] = {"path": passage.path, "sha256": passage.digest}
    return Subject("\n\n".join(pieces) or _ANYTHING, metadata)


def scene_of(industry: Industry, process: str, place_code: str, library: Library) -> str:
    """What an industry's documents say, as far as it helps an author who is to write another company of its kind."""

    def said(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda word: industry.words.get(word[1], word[1].replace("_", " ")), text)

    told: dict[str, JsonValue] = {
        "industry": industry.title,
        "role": said(industry.role),
        "services": [service.title for service in library.composed(industry)],
        "rules": [said(rule.states) for rule in industry.rules],
        "words": dict(industry.words),
        "process": process.replace("_", " "),
        "goals": [goal.replace("_", " ") for goal in industry.processes[process]],
    }
    text = quoted(canonical_json(told), f"industry {industry.industry}")
    name = country(place_code).name
    return (
        f"A company of this industry, in {name}, with data, tools and rules of its own; the process named is what most"
        f" matters are about. Write no copy of it:\n{text}"
    )
