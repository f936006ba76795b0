"""The mechanism generator: what is planned, what is proposed, and that everything follows from the seed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from envsynth.errors import ConfigError
from envsynth.generators.mechanism import Mechanism
from envsynth.generators.mechanism.config import DEFAULT_LIMIT
from envsynth.generators.mechanism.dress import skins_of
from envsynth.generators.mechanism.registry import family, family_names
from envsynth.models import Candidate, World

FAMILIES = family_names()


def developed(source: Any, context: Any) -> list[Any]:
    generator = Mechanism()
    return [generator.develop(lead, source, context) for lead in generator.plan(source, context)]


def test_there_are_the_twelve_families() -> None:
    assert set(FAMILIES) >= {
        "bandit", "bargaining", "flow", "group_testing", "inventory", "knapsack", "pandora", "pricing", "queue",
        "routing", "scheduling", "stopping",
    }  # fmt: skip


def test_each_mechanism_is_planned_in_every_presentation(source_of: Any, context: Any) -> None:
    leads = list(Mechanism().plan(source_of("bandit"), context))
    assert len(leads) == DEFAULT_LIMIT
    assert {lead.strategy for lead in leads[:3]} == {"hidden", "revealed", "written"}
    assert len({lead.ref for lead in leads[:3]}) == 1
    assert len({lead.key for lead in leads}) == len(leads)


def test_levels_and_skins_are_crossed(source_of: Any, context: Any) -> None:
    leads = Mechanism().plan(source_of("bandit", limit=30, presentations="hidden"), context)
    assert len({(lead.ref[:2], lead.ref.split("-", 2)[2]) for lead in leads}) == 30


@pytest.mark.parametrize(
    ("name", "extra", "said"),
    [
        ("bandits", {}, "no mechanism 'bandits'.*mechanism:NAME with bandit"),
        ("bandit", {"levels": "1,9"}, "levels are 1 to 5"),
        ("bandit", {"skins": "moonbase"}, "no skin 'moonbase'.*use one of"),
        ("bandit", {"presentations": "shown"}, "bad value 'shown'"),
        ("bandit", {"depth": "3"}, "unknown option 'depth'"),
    ],
)
def test_a_bad_option_is_named_with_its_line(source_of: Any, name: str, extra: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=r"list:3") as raised:
        Mechanism().check(source_of(name, **extra))
    assert re.search(said, str(raised.value))


def test_a_candidate_says_what_it_is_and_claims_what_was_played(source_of: Any, context: Any) -> None:
    found = developed(source_of("bandit", limit=3), context)
    assert [type(one) for one in found] == [Candidate] * 3
    for candidate in found:
        outcomes = {line.label: line.outcome for line in candidate.panel}
        assert outcomes["reference"] == 1
        assert outcomes["idle"] == outcomes["mutant:default"] == 0
        assert {"family", "kin", "skin", "level", "presentation", "mechanism"} <= candidate.metadata.keys()
        World.from_json(context.blobs[candidate.world.world])
    assert len({one.metadata["mechanism"] for one in found}) == 1
    written = next(one for one in found if one.metadata["presentation"] == "written")
    reference = next(line for line in written.panel if line.label == "reference")
    assert len(reference.calls) == 1


@pytest.mark.parametrize("name", FAMILIES)
def test_the_oracle_realises_in_every_presentation_what_the_solver_says(
    source_of: Any, context: Any, name: str
) -> None:
    for candidate in developed(source_of(name, limit=15), context):
        assert isinstance(candidate, Candidate), candidate
        utility = candidate.verifier.utility
        assert utility.realised["oracle"] == pytest.approx(utility.solved, abs=1e-6)
        if utility.hindsight is not None:
            assert max(utility.realised.values()) <= utility.hindsight + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_every_skin_at_every_level_reads_and_plays(source_of: Any, context: Any, name: str) -> None:
    for candidate in developed(source_of(name, limit=90), context):
        assert isinstance(candidate, Candidate), candidate
        assert not re.search(r"[{}]", candidate.instruction.replace('{"', "").replace("}", "")), candidate.instruction
        world = World.from_json(context.blobs[candidate.world.world])
        assert all(tool.doc for tool in world.tools)
        assert all(parameter.doc for tool in world.tools for parameter in tool.parameters)


@pytest.mark.parametrize("name", FAMILIES)
def test_skins_of_a_family_share_no_tool_name(name: str) -> None:
    skins = list(skins_of(name).values())
    assert len(skins) >= 6
    tools = _tool_words(name)
    spoken = [{skin.names[word] for word in tools if word in skin.names} for skin in skins]
    for number, names in enumerate(spoken):
        for other in spoken[number + 1 :]:
            assert not names & other


def _tool_words(name: str) -> set[str]:
    """Neutral names of a family's tools."""
    from envsynth.generators.mechanism.contract import Look, Presentation
    from envsynth.seeds import stream

    kind, words = family(name), set()
    for level in (1, 5):
        parameters = kind.sample(level, stream("names", str(level)), 1)
        tape = kind.tape(parameters, stream("names", "tape"))
        labels = tuple(f"thing {number}" for number in range(kind.labels(parameters)))
        for presentation in Presentation:
            world = kind.world(parameters, tape, Look(presentation, labels, "2026-03-02T08:00:00"))
            words |= {tool.name for tool in world.tools}
    return words


@pytest.mark.parametrize("name", FAMILIES)
def test_neighbouring_seeds_share_nothing(source_of: Any, context: Any, name: str) -> None:
    worlds = [
        candidate.world.world
        for seed in (1, 2)
        for candidate in developed(source_of(name, limit=3, seed=seed, presentations="hidden", levels="3"), context)
    ]
    assert len(set(worlds)) == len(worlds)
    rows = [json.dumps(World.from_json(context.blobs[digest]).document()["rows"], sort_keys=True) for digest in worlds]
    assert all(one != other for one, other in pairwise(sorted(rows)))


_ELSEWHERE = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import Blobs, mechanism_source
from types import SimpleNamespace
from envsynth.generators.mechanism import Mechanism
generator = Mechanism()
context = SimpleNamespace(blobs=Blobs(), remember=lambda kind, key, make: make(), model=lambda role: None)
for name in sys.argv[2:]:
    source = mechanism_source(name, limit=3)
    for lead in generator.plan(source, context):
        print(generator.develop(lead, source, context).to_json())
"""


@pytest.mark.slow
def test_two_processes_make_the_same_bytes(request: pytest.FixtureRequest) -> None:
    texts = []
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-c", _ELSEWHERE, str(request.path.parent), *FAMILIES]
        ended = subprocess.run(command, capture_output=True, check=True, env={"PYTHONHASHSEED": hash_seed})
        texts.append(ended.stdout)
    assert texts[0] == texts[1]
    assert texts[0].count(b"\n") == 3 * len(FAMILIES)
