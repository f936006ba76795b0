"""Whether a skin changes nothing but words: reference policies play the same draw undressed and dressed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from envsynth.errors import EnvsynthError, GeneratorError, boundary
from envsynth.generators.mechanism.contract import Family, Look, Presentation, Skin
from envsynth.generators.mechanism.dress import dress, dressed_sql, worded
from envsynth.generators.mechanism.players import Played, Stage
from envsynth.models import Check, ToolCall, Utility, Verifier, World
from envsynth.seeds import stream

__all__ = ["differences", "neutral_calls"]

_CLOCK = "2026-03-02T08:00:00"
_POLICIES = ("oracle", "default")
_UNDRESSED = Skin(name="undressed", unit=1, words={}, names={}, labels=(), texts={})


def differences(kind: Family[Any, Any], skin: Skin, level: int, seed: str) -> Iterator[str]:
    """One line for each presentation in which a draw does not play in the skin as it does in neutral names."""
    parameters = kind.sample(level, stream(seed, "parameters"), skin.unit)
    tape = kind.tape(parameters, stream(seed, "tape"))
    told = worded(skin, kind.variant(parameters))
    labels = tuple(skin.labels[: kind.labels(parameters)])
    for presentation in Presentation:
        try:
            with boundary(GeneratorError, "it cannot be played"):
                world = kind.world(parameters, tape, Look(presentation, labels, _CLOCK))
                dressed = dress(world, told, kind.facts(parameters, presentation), "dressed")
                bare = _played(kind, parameters, presentation, world, _UNDRESSED)
                worn = _played(kind, parameters, presentation, dressed, told)
        except EnvsynthError as error:
            yield f"in {presentation}: {error}"
            continue
        for name, played in bare.items():
            if played.utility != worn[name].utility or list(played.calls) != neutral_calls(worn[name].calls, skin):
                yield f"in {presentation}, {name} comes to {worn[name].utility} instead of {played.utility}"


def neutral_calls(calls: tuple[ToolCall, ...], skin: Skin) -> list[ToolCall]:
    """Calls in a skin's names, in neutral ones; those inside plans too."""
    backward = {own: neutral for neutral, own in skin.names.items()}
    return [
        ToolCall(
            tool=backward.get(call.tool, call.tool),
            arguments={backward.get(name, name): _neutral(value, backward) for name, value in call.arguments.items()},
        )
        for call in calls
    ]


def _neutral(value: JsonValue, backward: Mapping[str, str]) -> JsonValue:
    if not isinstance(value, str) or not value.startswith("["):
        return value
    return json.dumps([{backward.get(name, name): field for name, field in row.items()} for row in json.loads(value)])


def _played(
    kind: Family[Any, Any], parameters: Any, presentation: Presentation, world: World, skin: Skin
) -> dict[str, Played]:
    # The scale is of no consequence here: utilities are read as they are.
    utility = Utility(sql=dressed_sql(kind.utility(parameters), skin), default=0.0, reference=1.0)
    verifier = Verifier(checks=(Check(id="any", sql="SELECT 1"),), utility=utility)
    stage = Stage(world, skin, verifier, kind.turns(parameters, presentation))
    policies = kind.policies(parameters, presentation)
    try:
        return {name: stage.play(policies[name]) for name in _POLICIES}
    finally:
        stage.close()
