"""Instructions of mechanisms in other words: no number is lost, and the task is the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from envsynth import pipeline
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.context import BuildContext
from envsynth.generators.mechanism import Mechanism
from envsynth.generators.mechanism.contract import Fact, Grid
from envsynth.generators.mechanism.retold import original_of
from envsynth.llm import LlmSettings
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import Answer, answer_json
from envsynth.models import Candidate, Lead, World

WORLD = World.model_validate(
    {
        "id": "till", "clock": "2026-03-02T08:00:00",
        "tables": {"till": {"columns": {"cash": {"type": "integer"}, "left": {"type": "integer"}}},
                   "shelf": {"columns": {"lamp": {"type": "integer"}, "fee": {"type": "integer"}}}},
        "rows": {"till": [[1250, 8]], "shelf": [[1, 3], [2, 3], [3, 4]]},
        "tools": {
            "look": {"kind": "read", "result": "SELECT cash, left AS lamps, left AS cash_rolls FROM till LIMIT 1"},
            "browse": {"kind": "read", "result": "SELECT lamp, fee FROM shelf ORDER BY lamp"},
            "sell": {"kind": "write", "effects": ["UPDATE till SET left = left - 1"]},
        },
    }
)  # fmt: skip
"""No tool shows a number called `left`; and `fee` is shown of some things only."""


def goal_first(received: Any) -> Answer:
    """A modest rewriter: the same paragraphs, with what counts before all else."""
    asked = received.messages[1]["content"]
    if asked.startswith("Two texts"):
        return answer_json({"lost": [], "added": [], "changed": []})
    paragraphs = quoted_in(asked).split("\n\n")
    return answer_json({"text": "\n\n".join([paragraphs[-1], *paragraphs[:-1]])})


def forgetful(received: Any) -> Answer:
    """One that leaves the rules out."""
    paragraphs = quoted_in(received.messages[1]["content"]).split("\n\n")
    return answer_json({"text": "\n\n".join([paragraphs[-1], paragraphs[0], paragraphs[-1]])})


def quoted_in(asked: str) -> str:
    found = re.search(r'<quoted (\w+) name="instruction"[^\n]*\n(.*?)\n</quoted \1>', asked, re.DOTALL)
    assert found
    return found[2]


def test_facts_are_the_numbers_that_stand_in_the_text_and_the_names_of_tools() -> None:
    table = Grid(("a",), ((7,),))
    facts: dict[str, Fact] = {"cash": 1250, "left": 8, "fee": 3, "table": table, "unsaid": 77}
    text = "You have 1,250 cents and 8 lamps; `sell` takes a fee of 3. Keep 2 back.\n\n| a |\n| --- |\n| 7 |"
    original = original_of(text, facts, WORLD, {})
    marks = {fact.mark: fact.spelled for fact in original.facts}
    assert {name: marks.pop(name) for name in ("cash", "left", "fee")} == {"cash": "1,250", "left": "8", "fee": "3"}
    assert set(marks.values()) == {"`sell`", "2"}
    assert list(original.unfound(frozenset({"cash"}))) == []
    assert list(original.unfound(frozenset({"cash", "fee", "left", *marks}))) == sorted(["fee", "left", *marks])


def built(folder: Path, model: ScriptedModel, catalog: str) -> Any:
    config = BuildConfig(
        sources=("mechanism:bandit author=deterministic rewrite=1 levels=1 limit=3",), root=folder,
        cache=folder / "cache", catalog=folder / f"{catalog}.duckdb", out=folder / "out", jobs=1,
        llm=LlmSettings(author=model.settings(max_tokens=4000)),
    )  # fmt: skip
    return pipeline.build(config, lambda _: None)


@pytest.mark.slow
def test_a_rewritten_task_climbs_the_ladder_and_a_second_build_asks_nothing(tmp_path: Path) -> None:
    with ScriptedModel(goal_first) as model:
        assert built(tmp_path, model, "first").statuses == {"admitted": 3}
        assert len(model.requests) == 6
        again = built(tmp_path, model, "second")
        assert (again.statuses, len(model.requests)) == ({"admitted": 3}, 6)
        assert [(use.calls, use.cached) for use in again.models] == [(0, 6)]
    with Catalog.open(tmp_path / "first.duckdb", read_only=True) as catalog:
        tasks = [one.task for one in catalog.outcomes() if one.task is not None]
    for task in tasks:
        assert task.candidate.instruction.startswith("Earn as many")
        assert task.candidate.metadata["rewrite"] == {"level": 1, "model": "scripted", "repairs": 0, "left_out": []}
        assert task.candidate.provenance.author == "scripted"
    (written,) = [task for task in tasks if task.candidate.metadata["presentation"] == "written"]
    assert written.candidate.instruction.count("\n| --- |") == 1


def test_where_a_rule_is_lost_the_original_stays(source_of: Any, tmp_path: Path) -> None:
    plain, wanted = (
        source_of("bandit", limit=1, author="deterministic", levels="1", presentations="written", **extra)
        for extra in ({}, {"rewrite": "2"})
    )
    with ScriptedModel(forgetful) as model:
        context = BuildContext(tmp_path, llm=LlmSettings(author=model.settings(max_tokens=4000)))
        try:
            (as_it_was,) = Mechanism().plan(plain, context)
            (lead,) = Mechanism().plan(wanted, context)
            assert isinstance(as_it_was, Lead)
            assert isinstance(lead, Lead)
            before = Mechanism().develop(as_it_was, plain, context)
            after = Mechanism().develop(lead, wanted, context)
            assert Mechanism().asks(as_it_was, plain) == ()
            assert Mechanism().asks(lead, wanted) == ("author",)
        finally:
            context.leave_models()
    assert isinstance(before, Candidate)
    assert isinstance(after, Candidate)
    assert as_it_was.key != lead.key
    assert after.instruction == before.instruction
    told = after.metadata["rewrite"]
    assert isinstance(told, dict)
    assert told["original_stays"] == "rewrite_loses_block"
    assert after.provenance.author == "deterministic"
