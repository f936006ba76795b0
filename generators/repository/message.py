"""A commit message, cleaned of everything that is not about behaviour."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import NamedTuple

_FENCE = re.compile(r"^\s*(```|~~~).*?^\s*(```|~~~)\s*$", re.S | re.M)
_INDENTED = re.compile(r"^(    |\t)\S.*$", re.M)
_SCOPE = re.compile(
    r"^(?:(?:fix|feat|feature|bug|bugfix|perf|refactor|chore|improvement|enh|bld|mnt)(?:\([^)]*\))?!?"
    r"|[\w./*-]+(?: [\w./*-]+){0,2}(?:, ?[\w./-]+)*): +(?=\S)",
    re.I,
)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[A-Z`\"'(])")
_MIN_WORDS = 5
_INTRODUCTION_WORDS = 14
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|approx|incl)\.$", re.I)


class Words(NamedTuple):
    """The word tables, compiled."""

    lines: re.Pattern[str]
    inside: re.Pattern[str]
    noise: re.Pattern[str]
    how: re.Pattern[str]
    internal: re.Pattern[str]
    cause: re.Pattern[str]
    label: re.Pattern[str]
    link: re.Pattern[str]
    refers: re.Pattern[str]
    behaviour: re.Pattern[str]
    request: re.Pattern[str]
    rewrite: tuple[tuple[re.Pattern[str], str], ...]


class Prose(NamedTuple):
    """What a message says about behaviour, in sentences."""

    title: str
    """The title as what is wrong or wanted; empty where it says neither."""
    body: tuple[str, ...]
    """Paragraphs; each sentence describes behaviour."""


@cache
def words() -> Words:
    """The word tables of `words/message.toml`."""
    table = tomllib.loads((resources.files(__package__) / "words" / "message.toml").read_text("utf-8"))
    rewrite = tuple((re.compile(row["pattern"], re.I), row["replacement"]) for row in table["rewrite"])
    joined = {
        key: re.compile("|".join(f"(?:{text})" for text in table[key]), re.I)
        for key in ("lines", "inside", "how", "internal", "cause", "label", "link", "refers", "behaviour")
    }
    # The pronoun and the abbreviation are told from words by their case alone.
    noise = re.compile(
        "|".join(f"(?:{text})" if text.startswith((r"\bI", r"\bCI")) else f"(?i:{text})" for text in table["noise"])
    )
    return Words(**(joined | {"noise": noise}), request=re.compile(table["request"], re.I), rewrite=rewrite)


def read_message(message: str, told: Callable[[str], bool]) -> Prose:
    """The usable part of a commit message.

    Args:
        message: as git has it.
        told: whether a sentence may be said; it is asked for each.
    """
    title, _, body = clean(message).partition("\n")
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", body):
        kept = _kept(_sentences(paragraph), told)
        if any(words().behaviour.search(sentence) for sentence in kept):
            kept[0] = _capital(words().link.sub("", kept[0])) if words().link.match(kept[0]) else kept[0]
            paragraphs.append(" ".join(kept))
    rewritten = title_sentence(title)
    return Prose(rewritten if rewritten and told(rewritten) else "", tuple(paragraphs))


def _kept(sentences: list[str], told: Callable[[str], bool]) -> list[str]:
    """The sentences that may be said; one that speaks of a dropped one goes with it."""
    kept: list[str] = []
    dropped = False
    for sentence in sentences:
        dropped = not (_usable(sentence) and told(sentence)) or (dropped and bool(words().refers.match(sentence)))
        if not dropped:
            kept.append(sentence)
    return kept


def clean(message: str) -> str:
    """A message without trailers, addresses, links, issue numbers, hashes, code blocks and markdown."""
    text = message.replace("\r\n", "\n").replace("\r", "\n").strip()
    title, _, body = text.partition("\n")
    # A message of one paragraph has its title's sentence running on into the body.
    text = f"{title}\n\n{_INDENTED.sub('', _FENCE.sub('', body))}"
    kept = []
    for number, line in enumerate(text.split("\n")):
        if number and words().lines.search(line.strip()):
            continue
        told = _without_marks(line)
        kept.append(told.rstrip(" ,:;-" if number == 0 else " "))
    cleaned = re.sub(r"\n{3,}", "\n\n", "\n".join(kept))
    return re.sub(r" +([.,;:!?)])(?=\s|$)", r"\1", cleaned).strip()


def _without_marks(line: str) -> str:
    """A line without links, numbers, people and emphasis; repeated, for what is left may be one again."""
    before = ""
    while before != line:
        before, line = line, words().inside.sub("", line)
    line = re.sub(r"(?<=\S)  +", " ", line)
    return re.sub(r"(?<!\w)\(\s*\)|(?<!\w)\[\s*\]", "", re.sub(r"\*\*(\S.*?\S)\*\*", r"\1", line))


def title_sentence(title: str) -> str:
    """A title as a sentence that says what is wrong or wanted, or nothing where it says how."""
    bare = title.strip().rstrip(".").replace("``", "`")
    while (match := _SCOPE.match(bare)) and match.end() < len(bare):
        bare = bare[match.end() :]
    if (
        len(bare.split()) < 2
        or bare.endswith(("…", "..."))
        or words().noise.search(bare)
        or words().internal.search(bare)
    ):
        return ""
    for pattern, replacement in words().rewrite:
        if pattern.match(bare):
            return _capital(_agree(pattern.sub(replacement, bare)))
    return _capital(bare + ".") if words().request.match(bare) else ""


def _sentences(paragraph: str) -> list[str]:
    pieces: list[str] = []
    for line in paragraph.splitlines():
        if _BULLET.match(line) or not pieces:
            pieces.append(_BULLET.sub("", line).strip())
        else:
            pieces[-1] += " " + line.strip()
    return [sentence for piece in pieces for sentence in _split(piece, listed=len(pieces) > 1)]


def _split(text: str, *, listed: bool) -> list[str]:
    text = re.sub(r"\s+", " ", text).replace("``", "`").strip()
    text = re.sub(r" +([.,;:!?)])(?=\s|$)", r"\1", text)
    joined: list[str] = []
    for piece in _SENTENCE.split(text):
        if joined and (_ABBREVIATION.search(joined[-1]) or joined[-1].count("`") % 2):
            joined[-1] += " " + piece
        else:
            joined.append(piece)
    ended = [_polished(piece) for piece in joined if not _dangling(piece)]
    return [piece for piece in ended if piece and not (listed and not words().behaviour.search(piece))]


def _polished(piece: str) -> str:
    """A sentence without a label before it and without the inner cause after it."""
    told = words().label.sub("", piece)
    told = _ended(words().cause.sub("", told))
    return told if told[:1] == piece[:1] else _capital(told)


def _dangling(piece: str) -> bool:
    """Whether a piece only introduces what was taken out after it."""
    return piece.endswith(":") and len(piece.split()) < _INTRODUCTION_WORDS


def _usable(sentence: str) -> bool:
    enough = len(re.findall(r"\w+", sentence)) >= _MIN_WORDS
    unwanted = (words().noise, words().how, words().internal)
    return enough and not any(pattern.search(sentence) for pattern in unwanted)


def _agree(text: str) -> str:
    """The article and the verb that fit the noun."""
    if re.match(r"There is a \w+s\b", text):
        return text.replace("There is a ", "There are ", 1)
    return re.sub(r"^There is a (?=[aeiou])", "There is an ", text, flags=re.I)


def _capital(text: str) -> str:
    """With a capital, unless it starts with a name of code."""
    text = _ended(text)
    first = text.split(" ")[0]
    return text[:1].upper() + text[1:] if first.islower() and re.fullmatch(r"[a-z]+(-[a-z]+)*", first) else text


def _ended(text: str) -> str:
    text = text.strip().strip(",;:-").strip()
    return text if not text or text.endswith((".", "!", "?", ".)", '."')) else text + "."
