"""Every skin put on its family, as `envsynth plugins check` asks for: what is missing is named, nothing is solved."""

from __future__ import annotations

from collections.abc import Iterator

from envsynth.errors import EnvsynthError
from envsynth.generators.mechanism.contract import LEVELS, Look, Presentation, Skin
from envsynth.generators.mechanism.dress import dress, dressed_sql, instruction, skins_of, worded
from envsynth.generators.mechanism.registry import family, family_names
from envsynth.seeds import stream

_CLOCK = "2026-03-02T08:00:00"


def skin_faults() -> Iterator[str]:
    """One line a skin that cannot be worn at some level or in some presentation."""
    for name in family_names():
        try:
            skins = skins_of(name)
        except EnvsynthError as error:
            yield str(error)
            continue
        for skin in skins.values():
            yield from faults_of(name, skin)


def faults_of(name: str, skin: Skin) -> Iterator[str]:
    """One line for each thing that keeps one skin of a family from being worn at some level or in some presentation."""
    # The same word is missing at most levels.
    yield from dict.fromkeys(fault for level in LEVELS for fault in _faults(name, skin, level))


def _faults(name: str, skin: Skin, level: int) -> Iterator[str]:
    kind, seed = family(name), f"check/{name}/{skin.name}/{level}"
    parameters = kind.sample(level, stream(seed, "parameters"), skin.unit)
    wanted = kind.labels(parameters)
    if wanted > len(skin.labels):
        yield f"{name}: the skin {skin.name} has {len(skin.labels)} labels, and level {level} shows {wanted}"
        return
    told = worded(skin, kind.variant(parameters))
    tape = kind.tape(parameters, stream(seed, "tape"))
    for presentation in Presentation:
        try:
            facts = kind.facts(parameters, presentation)
            world = kind.world(parameters, tape, Look(presentation, tuple(skin.labels[:wanted]), _CLOCK))
            dress(world, told, facts, f"{name}-{skin.name}".replace("_", "-"))
            instruction(told, presentation, facts)
            dressed_sql(kind.utility(parameters), told)
        except EnvsynthError as error:
            yield f"{name}: {error}"
        except (KeyError, ValueError) as error:
            yield f"{name}: the skin {skin.name} cannot be worn: {type(error).__name__}: {error}"
