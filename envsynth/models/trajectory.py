"""Trajectory: tool calls with the outcome that they must get."""

from __future__ import annotations

from pydantic import Field, JsonValue

from envsynth.models.base import Model


class ToolCall(Model):
    """One call of a tool."""

    tool: str
    """Its name."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """By parameter."""


class Trajectory(Model):
    """A labelled trajectory of a task's panel, with the outcome it must get."""

    label: str
    """`reference`, `alternative:*`, `idle`, `mutant:*` or `attack:*`."""
    calls: tuple[ToolCall, ...] = ()
    """In order, handing in included."""
    outcome: float = Field(ge=0, le=1)
    """What grading must give."""
