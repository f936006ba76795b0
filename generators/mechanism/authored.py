"""A skin as a model writes it: one typed document, which becomes a skin like those in `skins/`."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from envsynth.generators.mechanism.contract import Skin
from envsynth.models import Model

__all__ = ["AuthoredSkin", "example_of", "worn"]


class AuthoredSkin(Model):
    """A domain for a family, in words alone. Numbers, rules and what tools do stay the family's."""

    title: str
    """The domain in a few words."""
    unit: int
    """Minor units of money that one abstract unit is worth, so that amounts are plausible in the domain."""
    opening: str
    """Who the reader is and what this is about: the first paragraph of the instruction."""
    words: dict[str, str]
    """Word → what it is called here."""
    names: dict[str, str]
    """Neutral name of a table, column, tool, parameter or result column → its name here."""
    labels: tuple[str, ...] = ()
    """Names of things."""
    tools: dict[str, str] = Field(default_factory=dict)
    """Neutral name of a tool → a sentence that stands before what the tool does."""
    parameters: dict[str, str] = Field(default_factory=dict)
    """Neutral name of a parameter → a sentence that stands before what the parameter means."""


def worn(authored: AuthoredSkin, name: str, shared: Mapping[str, str]) -> Skin:
    """The skin that a document makes.

    Args:
        authored: what a model wrote.
        name: what the skin is called.
        shared: the family's own texts; they stay as they are, behind a sentence of the domain where there is one.
    """
    texts = {**shared, "opening": authored.opening}
    for key, text in shared.items():
        kind, *parts = key.split(".")
        told = {"tool": authored.tools, "parameter": authored.parameters}.get(kind, {})
        sentence = next((told[part] for part in parts if told.get(part)), "")
        if sentence:
            texts[key] = f"{sentence.strip()} {text}"
    return Skin(
        name=name, unit=authored.unit, words=dict(authored.words), names=dict(authored.names),
        labels=tuple(authored.labels), texts=texts,
    )  # fmt: skip


def example_of(skin: Skin) -> AuthoredSkin:
    """A skin from `skins/` in the form in which a model writes one."""
    return AuthoredSkin(
        title=skin.name.replace("_", " "), unit=skin.unit, opening=skin.texts["opening"].strip(),
        words=dict(skin.words), names=dict(skin.names), labels=tuple(skin.labels),
    )  # fmt: skip
