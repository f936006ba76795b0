"""What an emitted environment's texts tell."""

from __future__ import annotations

import json
from typing import Any


def told(text: str) -> Any:
    """The result in a text: the words of an error, rows a line each, or fields."""
    lines = text.split("\n")
    if lines[0].startswith("error: "):
        return text.removeprefix("error: ")
    if lines[0].startswith("{"):
        return [json.loads(line) for line in lines]
    return {name: json.loads(value) for name, _, value in (line.partition(": ") for line in lines)}
