"""The worked examples: every trajectory of their panels comes out as their files say."""

from __future__ import annotations

import json

import pytest
import tiny_worlds as worlds

from envsynth.models import World
from envsynth.runtime.play import play
from envsynth.runtime.worlds.episode import WorldModel

PLAYED = [
    pytest.param(task, line.label, id=f"{task}:{line.label}")
    for task in worlds.TASKS
    for line in worlds.trajectories(task)
]


@pytest.mark.parametrize(("task", "label"), PLAYED)
def test_a_trajectory_gets_the_outcome_that_its_file_says(task: str, label: str) -> None:
    said = worlds.entry(task)["panel"][label]
    (line,) = (line for line in worlds.trajectories(task) if line.label == label)
    episode = worlds.episode_of(task)
    grade = play(episode, [call.document() for call in line.calls])
    assert grade.outcome == said["outcome"]
    assert all(isinstance(met, bool) for met in grade.checks.values())
    if "process" in said:
        assert grade.process == said["process"]
    assert grade.gate == float(label != "attack:only_looks")
    assert grade == play(episode, [call.document() for call in line.calls])
    episode.close()


@pytest.mark.parametrize(
    ("task", "label", "fault"),
    [
        ("returns-desk-refund", "mutant:wrong_customer", "orders: row 101 was not changed"),
        ("returns-desk-refund", "mutant:also_the_kettle", "orders: 2 rows changed, 1 expected"),
        ("returns-desk-refund", "mutant:extra_escalation", "the table escalations was changed"),
        ("returns-desk-refund", "mutant:no_fee", "refunds: a new row has other values than expected"),
        ("returns-desk-refund", "idle", "orders: 0 rows changed, 1 expected"),
        ("returns-desk-refuse", "mutant:both", "the table orders was changed"),
        ("returns-desk-refuse", "mutant:wrong_order", "escalations: a new row has other values than expected"),
    ],
)
def test_the_first_difference_is_named(task: str, label: str, fault: str) -> None:
    (line,) = (line for line in worlds.trajectories(task) if line.label == label)
    grade = play(worlds.episode_of(task), [call.document() for call in line.calls])
    assert grade.detail["faults"]["end_state"] == fault


def test_a_rule_that_no_tool_keeps_is_checked_at_the_end() -> None:
    (line,) = (line for line in worlds.trajectories("returns-desk-refuse") if line.label == "mutant:gave_in")
    grade = play(worlds.episode_of("returns-desk-refuse"), [call.document() for call in line.calls])
    assert grade.detail["faults"]["invariants"] == "the invariant window is violated"


@pytest.mark.parametrize("task", worlds.TASKS)
def test_the_document_of_a_world_is_all_that_playing_needs(task: str) -> None:
    text = worlds.world(task).to_json()
    assert World.from_json(text) == worlds.world(task)
    assert WorldModel(json.loads(text)).image == WorldModel(worlds.world(task).document()).image


def test_what_is_hidden_is_in_no_answer() -> None:
    episode = worlds.episode_of("two-armed")
    told = [episode.reset(), json.dumps(episode.tools())]
    told += [json.dumps(episode.call("view", {}).result), json.dumps(episode.call("pull", {"arm": 1}).result)]
    assert not any(word in text for text in told for word in ("theta", "tape", "0.65", "0.35"))
