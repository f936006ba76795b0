"""Requests in other words: what stays, what may be left to the manual, and that rewritten tasks are admitted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envsynth import pipeline
from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.errors import ConfigError
from envsynth.generators.business import Business
from envsynth.generators.business.tasks import Written
from envsynth.llm import Client, Ledger, LlmSettings
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import Answer, answer_json
from envsynth.models import Candidate, Origin, Source, SourceKind
from envsynth.rewriting import Original, Rewritten, rewrite
from envsynth.validators.world_adversary import WorldAdversary
from envsynth.validators.world_execution import WorldExecution
from envsynth.validators.world_readback import WorldReadback
from envsynth.validators.world_static import WorldStatic

TORCH = "the torch of Ellie Naylor"
DAY = "You work at the counter of Lights of Leeds, and it is Monday 30 September 2024."


def original(written: Mapping[str, Written], name: str) -> Original:
    found = written[name].original
    assert found is not None
    return found


def rewritten(folder: Path, given: Original, level: int, text: str, *left_out: str) -> Rewritten:
    def answer(received: Any) -> Answer:
        if received.messages[1]["content"].startswith("Two texts"):
            return answer_json({})
        return answer_json({"text": text, "left_out": list(left_out)})

    with (
        ScriptedModel(answer) as model,
        Client("author", model.settings(), Cache(folder / "cache"), Ledger(folder / "spend.sqlite", None)) as client,
    ):
        return rewrite(client, given, level)


def test_facts_are_what_a_request_tells_of_its_targets(written: Mapping[str, Written]) -> None:
    told = {
        name: {fact.mark: fact.spelled for fact in original(written, name).facts} for name in ("named", "described")
    }
    assert told["named"] == {"today": "Monday 30 September 2024", "1.back_cents": "£11.40", "1.sale_id": TORCH}
    assert told["described"]["2.new_phone"] == "11-102"
    for name in ("plain", "named", "described", "by_policy"):
        given = original(written, name)
        assert all(fact.stands_in(given.text) for fact in given.facts)
    assert written["on_the_line"].original is None


def test_only_what_the_manual_decides_can_be_left_out(written: Mapping[str, Written]) -> None:
    def lost(name: str, *marks: str) -> list[str]:
        return list(original(written, name).unfound(frozenset(marks)))

    assert lost("named", "1.back_cents") == []
    assert lost("named", "1.back_cents", "1.sale_id") == ["1.back_cents", "1.sale_id"]
    assert lost("named", "today") == ["today"]
    assert lost("described", "2.new_phone") == ["2.new_phone"]


@pytest.mark.parametrize(
    ("level", "text", "left_out", "reason"),
    [
        (1, f"{DAY} Stanley Howell writes: give £11.40 back for {TORCH}, and do no more.", (), ""),
        (3, f"{DAY} Stanley Howell writes: {TORCH} is back; see what the manual gives, and do no more.",
         ("1.back_cents",), ""),
        (3, f"{DAY} Stanley Howell writes: {TORCH} is back; see to the refund, and do no more.",
         ("1.back_cents",), "rewrite_names_no_rule"),
        (1, f"{DAY} Stanley Howell writes: {TORCH} is back; see what the manual gives, and do no more.",
         ("1.back_cents",), "rewrite_drops_fact"),
        (3, f"{DAY} Stanley Howell writes: a torch is back; see what the manual gives, and do no more.",
         ("1.back_cents", "1.sale_id"), "rewrite_fact_not_found"),
        (3, f"{DAY} Stanley Howell writes: the lamp of Ellie Naylor is back: £11.40 by the manual, and no more.",
         (), "rewrite_drops_fact"),
        (1, f"{DAY} Stanley Howell writes: give £11.40 back for {TORCH} with refund_sale, and do no more.", (),
         "rewrite_adds_fact"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_request(
    written: Mapping[str, Written], tmp_path: Path, level: int, text: str, left_out: tuple[str, ...], reason: str
) -> None:
    given = original(written, "named")
    done = rewritten(tmp_path, given, level, text, *left_out)
    assert done.reason == reason
    assert done.text == (given.text if reason else text)


@pytest.mark.parametrize("validator", [WorldStatic, WorldExecution, WorldReadback, WorldAdversary])
def test_a_rewritten_task_still_passes(
    written: Mapping[str, Written], candidate_of: Callable[[Written], Candidate], lent: Any, tmp_path: Path,
    validator: type,
) -> None:  # fmt: skip
    task = written["named"]
    text = f"{DAY} Stanley Howell writes: {TORCH} is back; see what the manual gives, and do no more."
    done = rewritten(tmp_path, original(written, "named"), 3, text, "1.back_cents")
    candidate = candidate_of(task).model_copy(update={"instruction": done.text})
    verdict = validator().validate(candidate, None, lent, ())
    assert (verdict.status.value, verdict.findings) == ("PASS", ())


def day_last(received: Any) -> Answer:
    """A modest rewriter: who the reader is and what day it is come last."""
    asked = received.messages[1]["content"]
    if asked.startswith("Two texts"):
        return answer_json({})
    found = re.search(r'<quoted (\w+) name="instruction"[^\n]*\n(.*?)\n</quoted \1>', asked, re.DOTALL)
    assert found
    first, *others = found[2].split("\n\n")
    return answer_json({"text": "\n\n".join([*others, first])})


def built(folder: Path, model: ScriptedModel, catalog: str) -> Any:
    config = BuildConfig(
        sources=("scenario:retail author=deterministic rewrite=0,1 limit=4 levels=1,2 vagueness=0,1 countries=gb",),
        root=folder, cache=folder / "cache", catalog=folder / f"{catalog}.duckdb", out=folder / "out", jobs=1,
        llm=LlmSettings(author=model.settings(max_tokens=4000)),
    )  # fmt: skip
    return pipeline.build(config, lambda _: None)


@pytest.mark.slow
def test_rewritten_tasks_are_admitted_and_a_second_build_asks_nothing(tmp_path: Path) -> None:
    with ScriptedModel(day_last) as model:
        first = built(tmp_path, model, "first")
        asked = len(model.requests)
        assert first.statuses == {"admitted": 4}
        assert built(tmp_path, model, "second").statuses == {"admitted": 4}
        assert (len(model.requests), asked > 0) == (asked, True)
    with Catalog.open(tmp_path / "first.duckdb", read_only=True) as catalog:
        tasks = [one.task.candidate for one in catalog.outcomes() if one.task is not None]
    for task in tasks:
        told = task.metadata["rewrite"]
        assert isinstance(told, dict)
        if task.metadata["conversation"]:
            assert told["original_stays"] == "conversation"
            assert task.provenance.author == "deterministic"
        else:
            assert "original_stays" not in told
            assert task.provenance.author == "scripted"
            assert task.instruction.splitlines()[-1].startswith("You work in")
    assert len({str(task.metadata["rewrite"]["level"]) for task in tasks}) == 2  # type: ignore[index, call-overload]


def test_what_a_line_may_say() -> None:
    def planned(model: object, **extra: str) -> list[Any]:
        source = Source(
            uri="scenario:retail", kind=SourceKind.SCENARIO, location="retail", extra=tuple(extra.items()),
            origin=Origin(file="list", line=4),
        )  # fmt: skip
        return list(Business().plan(source, SimpleNamespace(model=lambda role: model)))

    with pytest.raises(ConfigError, match="list:4: rewrite= is for tasks that are composed"):
        planned(object(), rewrite="1")
    with pytest.raises(ConfigError, match="list:4: rewrite= needs an author model, and none is configured"):
        planned(None, rewrite="1", author="deterministic")
    with pytest.raises(ConfigError, match="list:4: bad value '5' for 'rewrite'"):
        planned(object(), rewrite="5", author="deterministic")
    plain = [lead.key for lead in planned(None)]
    assert [lead.key for lead in planned(object(), author="deterministic")] == plain
    assert not set(plain) & {lead.key for lead in planned(object(), author="deterministic", rewrite="1")}
