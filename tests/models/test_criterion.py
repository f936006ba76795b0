"""A criterion is decided by a query or by a judge, never by both or by nobody."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from envsynth.models import Criterion
from envsynth.runtime.episode_db import EpisodeDatabase
from envsynth.runtime.grading import _criterion as of_workspace
from envsynth.runtime.worlds.grading import _criterion as of_world

LINE = {"id": "polite", "class": "important", "evidence": "SELECT 1", "text": "It was polite."}


def test_a_query_or_a_prompt_decides() -> None:
    asked = Criterion.model_validate({**LINE, "prompt": "Was every message polite?"})
    assert (asked.sql, asked.document()["prompt"]) == ("", "Was every message polite?")
    assert Criterion.model_validate({**LINE, "sql": "SELECT 1"}).prompt == ""
    assert Criterion.model_validate(asked.document()) == asked


@pytest.mark.parametrize("decides", [{}, {"sql": "SELECT 1", "prompt": "Was it?"}])
def test_nobody_and_both_decide_nothing(decides: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="criterion polite: either a query decides it, or a judge"):
        Criterion.model_validate({**LINE, **decides})


@pytest.mark.parametrize("criterion_of", [of_world, of_workspace])
def test_without_a_judge_a_judge_criterion_does_not_apply(criterion_of: Any) -> None:
    database = EpisodeDatabase()
    try:
        database.seal()
        asked = Criterion.model_validate({**LINE, "prompt": "Was it?"}).document()
        assert criterion_of(database, asked, "here") is None
        for kind, good in (("important", True), ("pitfall", False)):
            queried = {**LINE, "sql": "SELECT 1", "class": kind}  # as packs of before have it, without a prompt
            assert criterion_of(database, queried, "here") is good
    finally:
        database.close()
