"""Candidates that are judged before they are handed in: by whom, and what of it stands afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from envsynth import admission, pipeline, work
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import answer_json
from envsynth.models import Candidate, Dropped, Finding, Lead, Source, Verdict, VerdictStatus
from envsynth.protocols import Context
from tests.modelkit import Asking, Judge, config, install, outcomes, silent


class Noting(Judge):
    """A validator that notes what it is asked, and fails what is called bad."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def validate(self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict]) -> Verdict:
        self.asked.append((self.name, candidate.instruction))
        if candidate.instruction == "bad":
            bad = Finding(rule="bad", message="it is bad")
            return Verdict(validator=self.name, version=self.version, status=VerdictStatus.FAIL, findings=(bad,))
        return Verdict(validator=self.name, version=self.version, status=VerdictStatus.PASS)


class Mending(Asking):
    """A generator that has a bad candidate judged, and the good one; and hands in that, or another still."""

    said: ClassVar[list[list[str]]] = []

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        good = super().develop(lead, source, context)
        assert isinstance(good, Candidate)
        for candidate in (good.model_copy(update={"instruction": "bad"}), good):
            verdicts = context.judged(candidate, source)
            self.said.append([f"{one.validator} {one.status.value}" for one in verdicts])
        return good.model_copy(update={"instruction": "another"}) if lead.ref == "other" else good


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setattr)
    steps = (Noting("static", 10), Noting("style", 20), Noting("taste", 30))
    monkeypatch.setattr(steps[2], "models", ("judge",), raising=False)
    monkeypatch.setattr(work, "validators", lambda kind: steps)
    monkeypatch.setattr(admission, "REQUIRED", {"workspace": ("static", "style", "taste")})
    monkeypatch.setattr(work, "generator", lambda _: Mending())
    monkeypatch.setattr(pipeline, "generator", lambda _: Mending())
    monkeypatch.setattr(Noting, "asked", [])
    monkeypatch.setattr(Mending, "said", [])


@pytest.mark.parametrize("judge", [False, True])
def test_what_was_said_of_a_candidate_stands_once_it_is_handed_in(tmp_path: Path, judge: bool) -> None:
    """Where the judge has a model, whoever asks it is left out until then."""
    with ScriptedModel(lambda received: answer_json({"number": 3})) as model:
        settings = model.settings()
        pipeline.build(config(tmp_path, "a", settings, judge=settings if judge else None), silent)
    assert outcomes(tmp_path) == {"a": ("admitted", "")}
    others = ["static PASS", "style PASS"]
    assert Mending.said == [["static FAIL"], others if judge else [*others, "taste PASS"]]
    assert Noting.asked == [("static", "bad"), ("static", "3"), ("style", "3"), ("taste", "3")]


def test_another_candidate_than_the_judged_one_is_judged_anew(tmp_path: Path) -> None:
    with ScriptedModel(lambda received: answer_json({"number": 3})) as model:
        pipeline.build(config(tmp_path, "other", model.settings()), silent)
    assert Noting.asked[-3:] == [("static", "another"), ("style", "another"), ("taste", "another")]
