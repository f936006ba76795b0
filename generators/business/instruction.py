"""One natural request from a named person, at a level of vagueness."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from envsynth.generators.business import speech
from envsynth.generators.business.plans import SubGoal, shown
from envsynth.generators.business.scene import Scene

_VOWEL = re.compile(r"\b([Aa]) (?=(?!uni|use|usu|eu|one\b)[aeiouAEIOU])")
_SENTENCE = re.compile(r"(^|[.!?]\s+)\{([a-z][a-z0-9_]*)\}")
_TWO_STOPS = re.compile(r"(?<!\.)\.\.(?!\.)")
_PARAGRAPHS = 3
"""So many matters can stand as paragraphs; more are numbered."""


@cache
def phrases() -> Mapping[str, Any]:
    """The word table."""
    found: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("phrases.yaml").read_text("utf-8"))
    return found


def instruction(scene: Scene, parts: Sequence[SubGoal], rng: Random) -> str:
    """What the agent is told.

    Args:
        scene: the world.
        parts: what is asked for, in order.
        rng: chooses the person and the turns of phrase.
    """
    table = phrases()
    wordings = [wording(scene, part) for part in parts]
    if len(wordings) == 1:
        body = wordings[0]
    else:
        few = table["counts"][len(wordings)]
        opening = rng.choice(table["openings"]).format(count=few.capitalize(), few=few)
        numbered = len(wordings) > _PARAGRAPHS or rng.random() < 0.5
        lines = [f"{number}. {text}" for number, text in enumerate(wordings, 1)] if numbered else wordings
        body = "\n\n".join([opening, ("\n" if numbered else "\n\n").join(lines)])
    closing = rng.choice(table["closings"])
    body = "\n\n".join(filter(None, [body, closing])) if len(wordings) > 1 else " ".join(filter(None, [body, closing]))
    frame: str = rng.choice(table["frames"])
    return frame.format(
        role=scene.company.role, day=speech.day(scene.today), name=rng.choice(scene.people),
        department=rng.choice(table["departments"]), body=body,
    )  # fmt: skip


def wording(scene: Scene, part: SubGoal) -> str:
    """One sub-goal in words."""
    values = {name: shown(name, value, scene) for name, value in part.values.items()}
    values |= {name: referral.phrase for name, referral in part.referrals.items()}
    begins = {f"{name}_begins": text[:1].upper() + text[1:] for name, text in values.items()}
    template = _SENTENCE.sub(lambda found: f"{found[1]}{{{_begin(found[2], values)}}}", part.wording)
    return articled(scene.filled(template, {**values, **begins}).strip())


def articled(text: str) -> str:
    """A text with `an` before vowels, and one full stop where a sentence ends in an abbreviation."""
    return _TWO_STOPS.sub(".", _VOWEL.sub(r"\1n ", text))


def _begin(name: str, values: Mapping[str, str]) -> str:
    return f"{name}_begins" if name in values else name
