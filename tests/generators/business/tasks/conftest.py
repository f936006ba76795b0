"""A lamp shop: four services, three goals, in one country; tasks of it are written once for all tests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from envsynth.generators.business.compose import compose
from envsynth.generators.business.countries import country
from envsynth.generators.business.load import Library
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.stage import Stage
from envsynth.generators.business.tasks import Wish, Written, write_task
from envsynth.models import Candidate, Lead, Provenance, WorldRef

DESK = Path(__file__).parents[3] / "data" / "desk"
WISHES = {
    "plain": Wish(1, 0, "counter"),
    "named": Wish(2, 1, "counter"),
    "described": Wish(3, 2, "counter"),
    "by_policy": Wish(3, 3, "counter"),
    "on_the_line": Wish(1, 2, "counter", conversation=True),
}


class Memory(dict[str, bytes]):
    """Blobs of one test."""

    def get(self, digest: str) -> bytes:  # type: ignore[override]
        return self[digest]


class Lent:
    """As much of a context as validators of worlds use."""

    def __init__(self) -> None:
        self.blobs = Memory()


@pytest.fixture(scope="session")
def desk() -> Scene:
    library = Library(DESK)
    return Scene(compose(library, library.industry("lamps"), country("gb"), "1"))


@pytest.fixture(scope="session")
def stage(desk: Scene) -> Iterator[Stage]:
    found = Stage.of(desk)
    yield found
    found.close()


@pytest.fixture(scope="session")
def written(desk: Scene, stage: Stage) -> Mapping[str, Written]:
    return {name: write_task(desk, stage, wish, f"test/{name}") for name, wish in WISHES.items()}


@pytest.fixture
def lent() -> Lent:
    return Lent()


@pytest.fixture
def candidate_of(lent: Lent) -> Callable[[Written], Candidate]:
    """Candidates as the generator makes them."""
    return lambda task: _candidate(task, lent)


def _candidate(task: Written, lent: Lent) -> Candidate:
    world = task.world.to_json().encode()
    digest = hashlib.sha256(world).hexdigest()
    lent.blobs[digest] = world
    lead = Lead(
        generator="business", generator_version="1", source="scenario:lamps", name="lamps", revision="1",
        strategy="counter", ref="test", index=0,
    )  # fmt: skip
    return Candidate(
        instruction=task.instruction, environment=WorldRef(world=digest), verifier=task.verifier, panel=task.panel,
        budget=task.budget, provenance=Provenance(lead=lead), metadata=task.metadata,
    )  # fmt: skip
