"""Scripts of author models: worlds written artefact by artefact, and a model that hands them in when it is asked.

A script is a YAML file with the artefacts by name. What is written wrongly at first stands in places such as
`tools.tools.refund.result`; lists are entered by number, or by the name, id, label or page of what stands in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from envsynth import pipeline
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.generators.business.authored import artefacts
from envsynth.llm import LlmSettings
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import Answer, answer_json
from envsynth.models import Model, Outcome

HERE = Path(__file__).parent
KINDS: Mapping[str, type[Model]] = {
    "brief": artefacts.Brief, "schema": artefacts.Schema, "policies": artefacts.Policies, "tools": artefacts.Tools,
    "rows": artefacts.Rows, "plan": artefacts.Plan, "instruction": artefacts.Instruction, "checks": artefacts.Checks,
    "rubric": artefacts.Rubric, "hint": artefacts.Hint,
}  # fmt: skip
_NAMES = ("name", "id", "label", "page")

Document = dict[str, Any]
Answers = Mapping[str, Sequence[Document]]
"""By artefact, what is handed in first, second and so on; the last again and again."""


class _Plain(yaml.SafeLoader):
    """YAML without dates, as JSON has none."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Script(NamedTuple):
    """What a model writes."""

    first: dict[str, Document]
    """What it hands in when it is asked."""
    good: dict[str, Document]
    """What it hands in when it is asked again."""
    reason: str
    """What is found at first; empty: nothing is."""
    ends: str
    """Why its task is dropped where nothing is mended."""
    mends: bool
    """Whether what is good then is asked for."""

    @property
    def heeding(self) -> Answers:
        """Of a model that writes well once it is told."""
        return {kind: _distinct(self.first[kind], self.good[kind]) for kind in self.good}

    @property
    def deaf(self) -> Answers:
        """Of a model that hands in the same whatever it is told."""
        return {kind: [document] for kind, document in self.first.items()}


def load(name: str) -> Script:
    """Read a script: that of a strong model, which may slip, or that of a weak one, which is a strong one's `base`."""
    document = yaml.load((HERE / f"{name}.yaml").read_text("utf-8"), _Plain)
    if "base" in document:
        good = load(document["base"]).good
        weak = document
    else:
        good = {kind: _written(kind, document[kind]) for kind in KINDS if kind in document}
        weak = document.get("slip", {"change": {}, "reason": ""})
    first = good | changed(good, weak["change"])
    mended = good | changed(first, weak.get("mend", {}))
    ends = weak.get("ends", weak["reason"])
    return Script(first, mended, weak["reason"], ends, weak.get("mends", True))


def changed(good: Mapping[str, Document], changes: Mapping[str, Any]) -> dict[str, Document]:
    """The artefacts that differ once values are put into places; None takes what is there away."""
    wrong: dict[str, Document] = {}
    for place, value in changes.items():
        kind, *path = place.split(".")
        document = wrong.setdefault(kind, _copy(good[kind]))
        _put(document, path, _calls(value) if path[-1] in ("calls", "reference") else value)
    return wrong


def _distinct(first: Document, second: Document) -> list[Document]:
    return [first] if first == second else [first, second]


def _put(document: Any, path: Sequence[str], value: Any) -> None:
    for step in path[:-1]:
        document = document[_at(document, step)]
    last = path[-1]
    if last == "+":
        document.append(value)
    elif value is None:
        del document[_at(document, last)]
    else:
        document[_at(document, last)] = value


def _at(document: Any, step: str) -> Any:
    if isinstance(document, dict):
        return step
    if step.isdigit():
        return int(step)
    return next(place for place, one in enumerate(document) if step in (one.get(name) for name in _NAMES))


def _copy(document: Document) -> Document:
    copied: Document = yaml.load(yaml.safe_dump(document), _Plain)
    return copied


def _written(kind: str, document: Any) -> Document:
    """An artefact as the model sends it."""
    if kind == "plan":
        ways = {
            name: [way | {"calls": _calls(way["calls"])} for way in document.get(name, ())]
            for name in ("alternatives", "wrong")
        }
        document = document | ways | {"reference": _calls(document["reference"])}
    elif kind in ("schema", "tools"):
        (key,) = document
        document = {key: [{"name": one, **fields} for one, fields in document[key].items()]}
    written: Document = (
        KINDS[kind].model_validate(document).model_dump(mode="json", by_alias=True, exclude_defaults=True)
    )
    return written


def _calls(lines: Sequence[Any]) -> list[Document]:
    return [{"tool": tool, "arguments": arguments} for tool, arguments in lines]


class Author:
    """The script of a scripted model."""

    def __init__(self, answers: Answers) -> None:
        self.asked: Counter[str] = Counter()
        self._answers = answers

    def __call__(self, received: Received) -> Answer:
        kind = str(received.body["response_format"]["json_schema"]["name"]).lower()
        answers = self._answers[kind]
        answer = answers[min(self.asked[kind], len(answers) - 1)]
        self.asked[kind] += 1
        return answer_json(answer)


class Built(NamedTuple):
    """What a build came to that asked for one task."""

    outcome: Outcome
    asked: Counter[str]
    """How often each artefact was asked for."""

    @property
    def repairs(self) -> list[tuple[str, tuple[str, ...]]]:
        """What went back, and for which findings, of an admitted task."""
        assert self.outcome.task is not None
        told: Any = self.outcome.task.candidate.metadata["repairs"]
        return [(one["artefact"].lower(), tuple(one["rules"])) for part in ("world", "task") for one in told[part]]


def build(folder: Path, answers: Answers, script: Callable[[Received], Answer] | None = None) -> Built:
    """Build one free task whose author hands in a script's artefacts."""
    author = Author(answers)
    with ScriptedModel(script or author) as model:
        llm = LlmSettings(author=model.settings(max_tokens=32_000))
        config = BuildConfig(
            sources=("scenario:free limit=1 brief=a_place_with_rules",), root=folder, cache=folder / "cache",
            catalog=folder / "c.duckdb", out=folder / "out", jobs=1, llm=llm,
        )  # fmt: skip
        pipeline.build(config, lambda event: None)
    with Catalog.open(folder / "c.duckdb", read_only=True) as catalog:
        (outcome,) = catalog.outcomes()
    return Built(outcome, author.asked)
