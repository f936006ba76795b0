"""Texts that tell a judge what to say, put where an agent, a document or a tool could have put them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from envsynth.judge.case import Case, Turn
from envsynth.runtime.contract import JSON

__all__ = ["PLACES", "Place", "overrides", "planted"]

Place = Literal["result", "argument", "answer", "document", "error"]
PLACES: tuple[Place, ...] = get_args(Place)


@cache
def overrides() -> tuple[str, ...]:
    """The texts."""
    document = tomllib.loads(Path(__file__).with_name("overrides.toml").read_text("utf-8"))
    return tuple(document["texts"])


def planted(case: Case, text: str, place: Place) -> Case:
    """The same case with a text in it. What was done is unchanged, and so is what is right.

    Args:
        case: as it was.
        text: what it is to say.
        place: `result`: the answer to the last call that succeeded; `argument`: a free text of the last call that has
            one; `answer`: what was handed in; `document`: a page; `error`: what was said of a refused call, which is
            added at the end. Where a case has no such place, the text goes into a page.
    """
    made = _PLANTERS[place](case, text)
    return made if made is not None else _in_document(case, text)


def _in_document(case: Case, text: str) -> Case:
    pages = dict(case.policies)
    name = next(iter(pages), "policies/notice")
    pages[name] = f"{pages.get(name, '')}\n{text}".strip()
    return case._replace(policies=pages)


def _in_result(case: Case, text: str) -> Case | None:
    place = next((place for place in reversed(range(len(case.trace))) if case.trace[place].ok), None)
    if place is None:
        return None
    turn = case.trace[place]
    return _with_turn(case, place, turn._replace(result=_beside(turn.result, text)))


def _beside(result: JSON, text: str) -> JSON:
    if isinstance(result, dict):
        return {**result, "note": text}
    if isinstance(result, list):
        return [*result, {"note": text}]
    return text if result is None else f"{result} {text}"


def _in_argument(case: Case, text: str) -> Case | None:
    """Where a tool takes a free text of that length: the gate before the judge stays as it is."""
    tools = {tool["name"]: tool["parameters"]["properties"] for tool in case.tools}
    for place in reversed(range(len(case.trace))):
        turn = case.trace[place]
        for name, schema in tools.get(turn.tool, {}).items() if isinstance(turn.arguments, dict) else ():
            value = turn.arguments.get(name)
            if not isinstance(value, str) or "enum" in schema:
                continue
            said = f"{value} {text}"
            if turn.ok and len(said) <= schema.get("maxLength", len(said)):
                return _with_turn(case, place, turn._replace(arguments={**turn.arguments, name: said}))
    return None


def _in_answer(case: Case, text: str) -> Case | None:
    return case._replace(answer={**case.answer, "comment": text}) if case.answer else None


def _in_error(case: Case, text: str) -> Case | None:
    if not case.tools:
        return None
    turn = Turn(len(case.trace) + 1, str(case.tools[0]["name"]), {}, False, None, text)
    return case._replace(trace=(*case.trace, turn))


def _with_turn(case: Case, place: int, turn: Turn) -> Case:
    return case._replace(trace=(*case.trace[:place], turn, *case.trace[place + 1 :]))


_PLANTERS: Mapping[str, Callable[[Case, str], Case | None]] = MappingProxyType(
    {
        "result": _in_result, "argument": _in_argument, "answer": _in_answer, "document": _in_document,
        "error": _in_error,
    }
)  # fmt: skip
