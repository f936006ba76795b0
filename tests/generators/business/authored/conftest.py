"""A world written by hand as an author model would write it, and models that hand it in artefact by artefact."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from envsynth.generators.business.authored import artefacts
from envsynth.generators.business.authored.bench import Bench
from envsynth.generators.business.authored.draft import Draft
from envsynth.llm.scripted import Received
from envsynth.llm.scripted_answers import Answer, answer_json
from envsynth.models import Lead

KINDS = ("Brief", "Schema", "Policies", "Tools", "Rows", "Plan", "Instruction", "Checks", "Rubric", "Hint")
Document = dict[str, Any]


class Hand:
    """What a scripted model writes: good artefacts, but for those that are to be something else for some time."""

    def __init__(self, good: Document) -> None:
        self.good = good
        self.asked: list[str] = []
        """Names of the artefacts that were asked for, in order."""
        self.requests: list[Received] = []
        self.first: dict[str, list[Answer]] = {}
        """By artefact: what is answered before the good one."""
        self.always: dict[str, Answer] = {}

    def __call__(self, received: Received) -> Answer:
        name = received.body["response_format"]["json_schema"]["name"]
        self.asked.append(name)
        self.requests.append(received)
        if name in self.always:
            return self.always[name]
        waiting = self.first.get(name)
        return waiting.pop(0) if waiting else answer_json(self.good[name])

    def prompts(self, name: str) -> list[str]:
        """Every turn of the conversations that asked for an artefact, one text a request."""
        return ["\n".join(str(turn["content"]) for turn in one.messages) for one in self.requests
                if one.body["response_format"]["json_schema"]["name"] == name]  # fmt: skip


@pytest.fixture(scope="session")
def allotments() -> Document:
    text = Path(__file__).with_name("allotments.yaml").read_text("utf-8")
    document: Document = yaml.safe_load(text)
    return document


@pytest.fixture
def good(allotments: Document) -> Document:
    """The artefacts by name, to be changed by each test."""
    return copy.deepcopy(allotments)


@pytest.fixture
def hand(good: Document) -> Hand:
    return Hand(good)


@pytest.fixture
def drafted() -> Callable[[Document], Draft]:
    def make(documents: Document) -> Draft:
        draft = Draft()
        for name in KINDS:
            if name in documents:
                draft = draft.put(getattr(artefacts, name).model_validate(documents[name]))
        return draft

    return make


class Blobs(dict[str, bytes]):
    def put(self, content: bytes) -> str:
        return "0" * 64


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A bench without a ladder."""
    lead = Lead(generator="business", generator_version="1", source="scenario:free", name="free", revision="r",
                strategy="authored", ref="xx000-00-l1-v0", index=0)  # fmt: skip
    with Bench(Blobs(), lambda candidate: (), lead) as found:  # type: ignore[arg-type]
        yield found
