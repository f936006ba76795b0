"""Tool calls drawn from tools' JSON Schemas: those that fit, those that nearly do, and wild ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

LAW = settings(
    max_examples=20, deadline=None, database=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
"""Reproducible, and as slow as episodes are."""
TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["", "a", "ls", "' OR 1=1 --", "\0", "\ud800", "é" * 5, "1e9"]))
NUMBERS = st.one_of(st.integers(-3, 12), st.sampled_from([2**63, -(2**63), 10**30, 0.5, -1.5, 1e308]))
WILD = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXTS, inner, max_size=2)),
    max_leaves=4,
)
"""Any JSON."""


class Made(NamedTuple):
    """A call."""

    tool: str
    arguments: dict[str, Any]


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a parameter's schema allows."""
    if schema.get("enum"):
        return st.sampled_from(schema["enum"])
    if schema["type"] == "string":
        least = schema.get("minLength", 0)
        return st.text("abc 1", min_size=least, max_size=min(schema.get("maxLength", least + 6), least + 6))
    if schema["type"] == "boolean":
        return st.booleans()
    low = schema.get("minimum", -2)
    high = min(schema.get("maximum", low + 12), low + 12)
    if schema["type"] == "integer":
        return st.integers(int(low), int(high))
    return st.floats(low, high, allow_nan=False).map(lambda value: round(value, 3))


@st.composite
def fitting(draw: Any, tool: dict[str, Any]) -> Made:
    """A call that the tool's schema allows; the world may refuse it all the same."""
    properties, required = tool["parameters"]["properties"], tool["parameters"]["required"]
    chosen = [name for name in properties if name in required or draw(st.booleans())]
    return Made(tool["name"], {name: draw(values(properties[name])) for name in chosen})


@st.composite
def nearly(draw: Any, tool: dict[str, Any]) -> Made:
    """A call with one argument left out, added, or of another kind."""
    call = draw(fitting(tool))
    names = [*call.arguments, "no_such_parameter"]
    name = draw(st.sampled_from(names))
    rest = {key: value for key, value in call.arguments.items() if key != name}
    return Made(call.tool, rest if draw(st.booleans()) else {**rest, name: draw(WILD)})


def calls(tools: Sequence[dict[str, Any]], most: int) -> st.SearchStrategy[list[Made]]:
    """Sequences of calls; most of them fit."""
    fit = st.one_of([fitting(tool) for tool in tools])
    wild = st.builds(Made, st.one_of(st.sampled_from([tool["name"] for tool in tools]), TEXTS),
                     st.dictionaries(TEXTS, WILD, max_size=3))  # fmt: skip
    return st.lists(st.one_of(fit, fit, st.one_of([nearly(tool) for tool in tools]), wild), max_size=most)
