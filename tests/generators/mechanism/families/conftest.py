"""Episodes of families in neutral names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from envsynth.generators.mechanism.contract import Family, Look, Presentation
from envsynth.generators.mechanism.players import Stage, idle
from envsynth.models import Check, Utility, Verifier


@contextmanager
def open_stage(family: Family[Any, Any], parameters: Any, tape: Any, presentation: Presentation) -> Any:
    labels = tuple(f"thing {number}" for number in range(family.labels(parameters)))
    world = family.world(parameters, tape, Look(presentation, labels, "2026-03-02T08:00:00"))
    utility = Utility(sql=family.utility(parameters), default=0.0, reference=1.0)
    verifier = Verifier(checks=(Check(id="any", sql="SELECT 1"),), utility=utility)
    stage = Stage(world, None, verifier, family.turns(parameters, presentation))
    try:
        stage.play(idle)
        yield stage
    finally:
        stage.close()


@pytest.fixture
def neutral_stage() -> Callable[..., AbstractContextManager[Stage]]:
    """Opens a stage on a family's world without a skin, at the start of an episode."""
    return open_stage
