"""Packs for Agent Lightning: what a rollout is worth when the model's server refuses a turn."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import tiny_worlds as worlds

from envsynth import plugins
from envsynth.cache import Cache

NAME = "desk_rollouts"


class Refused(Exception):
    """As the HTTP client raises it."""


class Answer:
    """As the HTTP client gives it."""

    def __init__(self, status_code: int, content: Any) -> None:
        self.status_code = status_code
        self.text = json.dumps(content)

    def json(self) -> Any:
        return json.loads(self.text)

    def raise_for_status(self) -> None:
        if self.status_code >= 400:
            raise Refused(self.status_code)


class Client:
    """Stands in for the HTTP client, and for the servers that it talks to."""

    answers: list[tuple[int, Any]]
    told: list[Any]

    def __init__(self, **_: Any) -> None:
        pass

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def post(self, url: str, *, json: Any = None, content: str = "", headers: Any = None) -> Answer:
        if url == "http://model/event":
            self.told.append(json)
            return Answer(200, {})
        assert content.encode()
        return Answer(*self.answers.pop(0))


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    out = tmp_path_factory.mktemp("lightning")
    store = Cache(out / "cache")
    task = worlds.make_world_task(store, worlds.TASKS[0])
    pack = plugins.load("exporters", "agentlightning")().export([task], store, out / NAME.replace("_", "-"), {})
    sys.path.insert(0, str(pack))
    before = sys.modules.get("httpx")
    sys.modules["httpx"] = stand_in = ModuleType("httpx")
    stand_in.Client = Client  # type: ignore[attr-defined]
    try:
        yield SimpleNamespace(
            agent=importlib.import_module(f"{NAME}.agent"), pack=importlib.import_module(f"{NAME}.pack").PACK
        )
    finally:
        sys.path.remove(str(pack))
        sys.modules.pop("httpx")
        if before is not None:
            sys.modules["httpx"] = before


def rollout(package: Any, monkeypatch: pytest.MonkeyPatch, answers: list[tuple[int, Any]]) -> list[float]:
    """The rewards that a rollout reports, where the model's server gives these answers."""
    Client.answers, Client.told = answers, []
    monkeypatch.setenv("AGL_OPENAI_BASE_URL", "http://model/v1")
    monkeypatch.setenv("AGL_EVENT_URL", "http://model/event")
    monkeypatch.setenv("ENVSYNTH_TASK", min(package.pack.budgets))
    package.agent.TaskAgent().run()
    return [event["data"]["value"] for event in Client.told if event["event_type"] == "reward"]


def turn(*calls: tuple[str, str], content: str = "") -> tuple[int, Any]:
    made = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    return 200, {"choices": [{"message": {"role": "assistant", "content": content, "tool_calls": made}}]}


def reference(package: Any) -> list[tuple[str, str]]:
    line = next(line for line in package.pack.panel() if line["label"] == "reference")
    return [(call["tool"], json.dumps(call["arguments"])) for call in line["calls"]]


FULL = (400, {"error": {"message": "This model's maximum context length is 4096 tokens. However, you requested 5000."}})


def test_an_agent_that_fills_its_context_is_graded_as_it_stands(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = reference(package)
    assert rollout(package, monkeypatch, [turn(calls[0]), FULL]) == [0.0]
    assert rollout(package, monkeypatch, [*map(turn, calls), FULL]) == [1.0]


def test_half_a_character_of_a_model_is_no_failure(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *more = reference(package)
    turns = [turn(first, content="\ud800"), turn(*more), turn()]
    assert rollout(package, monkeypatch, turns) == [1.0]


@pytest.mark.parametrize("before", [0, 1])
def test_a_failing_server_is_no_reward(package: Any, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    turns = [turn(call) for call in reference(package)[:before]]
    for refused in ((500, {"error": "gone"}), (400, {"error": "the tools are no JSON"}), FULL):
        if before and refused is FULL:
            continue
        with pytest.raises(Refused):
            rollout(package, monkeypatch, [*turns, refused])
