"""Cases of the shop, and what scripted judges say of them."""

from __future__ import annotations

import re
from typing import Any

import worldkit

from envsynth.judge import Case, world_case
from envsynth.llm.scripted import Received
from envsynth.llm.scripted_answers import Answer, answer_json
from envsynth.models import Criterion
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

LAMPS = ("order", {"item": "lamp", "amount": 4})
FIVE = ("order", {"item": "lamp", "amount": 5})
NOTE = ("note", {"body": "They cost 196 in all.", "cents": 196})
SUBMIT = ("submit", {"total": 4})
LOOK = ("look", {})
PANEL: dict[str, tuple[bool, list[tuple[str, dict[str, Any]]]]] = {
    "reference": (True, [LOOK, LAMPS, NOTE, SUBMIT]),
    "alternative:note_first": (True, [LOOK, NOTE, LAMPS, SUBMIT]),
    "idle": (False, []),
    "mutant:five": (False, [LOOK, FIVE, NOTE, SUBMIT]),
    "mutant:no_order": (False, [LOOK, NOTE, SUBMIT]),
}
CRITERIA = (
    Criterion.model_validate({
        "id": "looked_first", "class": "important", "text": "It looked before it ordered.",
        "sql": "SELECT 1", "evidence": "SELECT turn, tool, arguments FROM trace ORDER BY turn",
    }),
    Criterion.model_validate({
        "id": "told_the_price", "class": "optional", "text": "The note tells the price.",
        "prompt": "Does the note tell what four lamps cost?", "evidence": "SELECT body FROM notes ORDER BY id",
    }),
)  # fmt: skip
POLICIES = {"rules/orders": "Never order more than nine of one thing."}


def case_of_calls(calls: list[tuple[str, dict[str, Any]]], criteria: tuple[Criterion, ...] = CRITERIA) -> Case:
    """The case of an episode in the shop."""
    task = {
        "candidate": {
            "instruction": worldkit.INSTRUCTION, "budget": {"turns": 30, "cost": None},
            "verifier": {"checks": [], "rubric": [], "reward": {"gate": []}, "utility": None},
        }
    }  # fmt: skip
    episode = WorldEpisode(WorldTask(task, _shop(), task_id="shop-task"))
    try:
        episode.reset()
        for tool, arguments in calls:
            episode.call(tool, dict(arguments))
        return world_case(episode, criteria, policies=POLICIES, gate=1.0)
    finally:
        episode.close()


_models: list[WorldModel] = []


def _shop() -> WorldModel:
    if not _models:
        _models.append(worldkit.model_of(worldkit.shop()))
    return _models[0]


def ids_asked(prompt: str) -> list[str]:
    """The lines that are to be scored."""
    found = re.search(r"for each of these ids: (.*)\.$", prompt)
    assert found
    return found[1].split(", ")


def scores(prompt: str, mark: str, **others: str) -> dict[str, Any]:
    """An answer that gives every line the same mark, but for `others`; it points at the table `run`, always there."""
    pointer = {"turn": None, "table": "run", "row": 1, "column": "calls"}
    return {
        "reading": "It did things.",
        "scores": [
            {"id": name, "why": "so", "pointer": pointer, "score": others.get(name, mark)} for name in ids_asked(prompt)
        ],
    }


def is_right(prompt: str) -> bool:
    """What a careful reader of the trace says."""
    return '"tool": "order", "arguments": {"amount": 4, "item": "lamp"}, "ok": true' in prompt


def truthful(received: Received) -> Answer:
    """A judge that is right and does not listen to what texts say."""
    right = is_right(received.prompt)
    return answer_json(scores(received.prompt, "PASS", did_what_was_asked="PASS" if right else "FAIL"))
