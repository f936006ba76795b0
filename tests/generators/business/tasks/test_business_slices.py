from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from envsynth.generators.business.slices import matches, slices
from envsynth.generators.business.tasks import Written
from envsynth.models import Candidate
from envsynth.runtime.worlds.episode import WorldModel

CandidateOf = Callable[[Written], Candidate]


def test_each_call_of_the_reference_is_one_slice(written: Mapping[str, Written], candidate_of: CandidateOf) -> None:
    task = written["by_policy"]
    candidate = candidate_of(task)
    found = list(slices(candidate, WorldModel(task.world.document())))
    reference = task.panel[0].calls
    assert [one.expected for one in found] == list(reference)
    assert [len(one.history) for one in found] == list(range(len(reference)))
    assert all(step["result"] is not None for one in found for step in one.history)
    document = json.loads(json.dumps(found[-1].document(candidate)))
    assert document["instruction"] == task.instruction
    assert document["expected"]["tool"] == reference[-1].tool


def test_arguments_are_compared_by_role(written: Mapping[str, Written], candidate_of: CandidateOf) -> None:
    task = written["by_policy"]
    found = list(slices(candidate_of(task), WorldModel(task.world.document())))
    for one in found:
        call = one.expected
        assert matches(one, call.tool, call.arguments)
        assert not matches(one, "another_tool", call.arguments)
        assert not matches(one, call.tool, {**call.arguments, "more": 1})
        for name, role in one.compared.items():
            said = {**call.arguments, name: "Put in other words."}
            assert matches(one, call.tool, said) == (role == "free")
            assert not matches(one, call.tool, {**call.arguments, name: " "})
    assert any("free" in one.compared.values() for one in found)
