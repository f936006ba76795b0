"""Twenty tasks, one of each level and vagueness, printed in full so that people can read what agents are asked.

`ENVSYNTH_PRINT=1 pytest tests/generators/business/test_business_twenty.py` prints them anew, to be read before they are
committed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import faker
import pytest

from envsynth.generators.business.compose import compose
from envsynth.generators.business.config import LEVELS, every_country
from envsynth.generators.business.countries import country
from envsynth.generators.business.load import library
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.stage import Stage
from envsynth.generators.business.tasks import Wish, Written, talks, write_task
from envsynth.models import World

PRINTED = Path(__file__).with_name("twenty_tasks.md")
VAGUENESS = (0, 1, 2, 3)
KINDS = tuple(enumerate(product(LEVELS, VAGUENESS)))
pytestmark = pytest.mark.slow


def scene_of(number: int) -> Scene:
    known, places = library(), every_country()
    industry = known.industries[number % len(known.industries)]
    place = places[(3 * number) % len(places)]
    return Scene(compose(known, known.industry(industry), country(place), f"twenty-{number}"))


def task_of(number: int, level: int, vagueness: int) -> tuple[Scene, Written]:
    """Of the first process, counted from the number, in which such a task can be written."""
    scene = scene_of(number)
    processes = list(scene.processes)
    seed = f"twenty/{number}"
    wish = Wish(level, vagueness, processes[number % len(processes)])
    stage = Stage.of(scene)
    try:
        return scene, write_task(scene, stage, wish._replace(conversation=talks(wish, seed)), seed)
    finally:
        stage.close()


def lines_of(number: int, scene: Scene, task: Written) -> Iterator[str]:
    about = task.metadata
    spoken = ", on the line" if about["conversation"] else ""
    yield f"## {number + 1}. {scene.company.industry.title}, {scene.company.country.name}"
    yield f"{about['process']}, level {about['level']}, vagueness {about['vagueness']}{spoken}"
    yield "\n".join(f"> {line}".rstrip() for line in task.instruction.splitlines())
    facts = told(task.world)
    if facts:
        yield "Told when asked:\n" + "\n".join(f"- {topic}: {said}" for topic, said in facts.items())
    reference = next(line for line in task.panel if line.label == "reference")
    calls = [f"- `{call.tool}` {json.dumps(call.arguments, ensure_ascii=False)}" for call in reference.calls]
    yield "One right way:\n" + "\n".join(calls)
    yield "Nothing may have changed but:\n" + "\n".join(changes(task))
    yield "Rubric:\n" + "\n".join(f"- {line.class_.value}: {line.text}" for line in task.verifier.rubric)


def told(world: World) -> Mapping[str, str]:
    rows = world.rows.get("caller_facts", ())
    return {str(topic): str(said) for topic, said in rows if not str(topic).startswith(" ")}


def changes(task: Written) -> Iterator[str]:
    end = next(check for check in task.verifier.checks if check.kind == "diff")
    for table, change in end.expect.items():
        yield from (f"- {table}, new: {shown(row)}" for row in change.added)
        yield from (f"- {table} {shown(row.key)}: {shown(row.values)}" for row in change.changed)
        yield from (f"- {table}, gone: {shown(gone)}" for gone in change.removed)


def shown(value: Any) -> str:
    value = list(value) if isinstance(value, tuple) else value
    return json.dumps(value, ensure_ascii=False).strip("{}[]").replace('"', "")


@pytest.fixture(scope="module")
def printed() -> str:
    """All twenty; each was played by its author: right trajectories 1, all others 0."""
    head = f"# Twenty tasks\n\nThe people in them are from Faker {faker.VERSION}."
    parts = [head]
    for number, (level, vagueness) in KINDS:
        parts += lines_of(number, *task_of(number, level, vagueness))
    return "\n\n".join(parts) + "\n"


def test_twenty_tasks_read_as_they_did(printed: str) -> None:
    if os.environ.get("ENVSYNTH_PRINT"):
        PRINTED.write_text(printed, "utf-8")
    known = PRINTED.read_text("utf-8")
    if known.splitlines()[2] != printed.splitlines()[2]:
        pytest.skip(f"another version of Faker calls people otherwise: {known.splitlines()[2]}")
    assert printed == known
