"""The executable surface of a world task: what its reference changes by which tools, whatever is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest
import world_bench
import worldkit

from envsynth.cache import Cache
from envsynth.models import World
from envsynth.runtime.worlds.episode import WorldModel
from envsynth.sketches import SKETCH, Fingerprint
from envsynth.validators.worlds.opened import task_of
from envsynth.validators.worlds.surface import surface

LOOK, LAMPS, NOTE, SUBMIT = ("look", {}), world_bench.LAMPS, world_bench.NOTE, world_bench.SUBMIT


@pytest.fixture
def of(tmp_path: Path):
    """The surface of calls in the shop, whose description may be changed."""

    def found(*calls, **changes) -> Fingerprint:
        document = worldkit.shop(**changes)
        candidate = world_bench.candidate(Cache(tmp_path), document)
        model = WorldModel(World.model_validate(document).document())
        return surface(World.model_validate(document), task_of(candidate, model), calls)

    return found


def test_reads_order_and_free_text_are_no_difference(of) -> None:
    one = of(LOOK, LAMPS, NOTE, SUBMIT)
    assert len(one.sketch) == SKETCH
    assert of(NOTE, LAMPS, LOOK, LOOK, SUBMIT) == one
    assert of(LOOK, LAMPS, ("note", {"body": "in other words", "cents": 196}), SUBMIT) == one
    assert of(LAMPS, NOTE, SUBMIT, id="shop-elsewhere", clock="2026-04-01T08:00:00") == one


@pytest.mark.parametrize(
    "calls",
    [
        (LAMPS, SUBMIT),
        (("order", {"item": "lamp", "amount": 3}), NOTE, SUBMIT),
        (LAMPS, ("note", {"body": "x", "cents": 197}), SUBMIT),
        (LAMPS, NOTE, ("submit", {"total": 5})),
        (LAMPS, NOTE),
    ],
)
def test_every_change_and_the_answer_count(of, calls) -> None:
    one, other = of(LOOK, LAMPS, NOTE, SUBMIT), of(*calls)
    assert other.patch != one.patch
    assert other.symbols == one.symbols
    equal = sum(left == right for left, right in zip(one.sketch, other.sketch, strict=True))
    assert 0 < equal < SKETCH


def test_other_tools_are_another_surface(of) -> None:
    tools = {name: tool for name, tool in worldkit.shop()["tools"].items() if name != "look"}
    one, other = of(LAMPS, NOTE, SUBMIT), of(LAMPS, NOTE, SUBMIT, tools=tools)
    assert (one.symbols != other.symbols, one.patch != other.patch) == (True, True)
    assert other.sketch == one.sketch
