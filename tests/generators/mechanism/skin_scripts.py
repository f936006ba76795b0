"""Scripts of author models that dress mechanisms: skins as a strong model would write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from envsynth.generators.mechanism.registry import family
from envsynth.llm.scripted import Received
from envsynth.llm.scripted_answers import Answer, answer_json

SKINS: dict[str, list[dict[str, Any]]] = yaml.safe_load(Path(__file__).with_name("new_skins.yaml").read_text("utf-8"))


def is_reading(received: Received) -> bool:
    """Whether a story is to be read against the rules, rather than written."""
    return str(received.messages[1]["content"]).startswith("A game has these rules")


def setter(received: Received) -> Answer:
    """A strong model: the next skin of the family that the prompt speaks of."""
    if is_reading(received):
        return answer_json({"objections": []})
    asked = received.messages[1]["content"]
    name = next(name for name in SKINS if family(name).title in asked)
    return answer_json(next(skin for skin in SKINS[name] if skin["title"] not in asked))
