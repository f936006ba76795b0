"""Scripts of author models: worlds written artefact by artefact, and the model that hands them in when asked.

A script is a YAML file with the artefacts by name. One that has `base` takes what it does not name from that file;
`first` holds artefacts that are wrong and are handed in before the good ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from envsynth.generators.business.authored import artefacts
from envsynth.models import Model

KINDS: Mapping[str, type[Model]] = {
    "brief": artefacts.Brief, "schema": artefacts.Schema, "policies": artefacts.Policies, "tools": artefacts.Tools,
    "rows": artefacts.Rows, "plan": artefacts.Plan, "instruction": artefacts.Instruction, "checks": artefacts.Checks,
    "rubric": artefacts.Rubric, "hint": artefacts.Hint,
}  # fmt: skip


class _Plain(yaml.SafeLoader):
    """YAML without dates, as JSON has none."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Script(NamedTuple):
    """What a model writes."""

    artefacts: dict[str, Model]


def load(path: Path) -> Script:
    """Read a script."""
    document = yaml.load(path.read_text("utf-8"), _Plain)
    return Script({name: _artefact(name, document[name]) for name in KINDS if name in document})


def _artefact(name: str, document: Any) -> Model:
    if name == "plan":
        document = _plan(document)
    elif name in ("schema", "tools"):
        (key,) = document
        document = {key: [{"name": one, **fields} for one, fields in document[key].items()]}
    return KINDS[name].model_validate(document)


def _plan(document: dict[str, Any]) -> dict[str, Any]:
    def calls(lines: list[Any]) -> list[Any]:
        return [{"tool": tool, "arguments": arguments} for tool, arguments in lines]

    ways = {
        name: [way | {"calls": calls(way["calls"])} for way in document.get(name, ())]
        for name in ("alternatives", "wrong")
    }
    return document | ways | {"reference": calls(document["reference"])}
