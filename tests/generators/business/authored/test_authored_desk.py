"""The desk: what is asked for in which order, what goes back, and what ends it. No ladder."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from envsynth.cache import Cache
from envsynth.errors import ModelEmpty, ModelMalformed, ModelOutputError, ModelRefused, ModelTruncated
from envsynth.generators.business.authored import artefacts
from envsynth.generators.business.authored.bench import Bench
from envsynth.generators.business.authored.desk import Desk
from envsynth.generators.business.authored.draft import Draft
from envsynth.generators.business.authored.faults import Overdrawn
from envsynth.generators.business.authored.stages import TASK, WORLD, Assignment, text_of
from envsynth.llm import Client, Ledger
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import Answer, answer_json, empty, refusal, text, truncated

EVERY = (*WORLD, *TASK, artefacts.Hint)
NAMES = [kind.__name__ for kind in EVERY]


@contextmanager
def desk(folder: Path, hand: Any, bench: Bench) -> Iterator[Desk]:
    with ScriptedModel(hand) as model:
        settings = model.settings(max_tokens=20_000)
        with Client("author", settings, Cache(folder / "cache"), Ledger(folder / "spend.sqlite", None)) as client:
            yield Desk(client, bench, Assignment("Something to be about.", 7))


def test_artefacts_are_asked_for_in_order(tmp_path: Path, hand: Any, bench: Bench) -> None:
    with desk(tmp_path, hand, bench) as found:
        draft = found.finish(Draft(), EVERY, lambda whole: ())
    assert hand.asked == NAMES
    assert found.repaired == []
    assert [draft.of(kind).to_json() for kind in EVERY] == [
        kind.model_validate(hand.good[kind.__name__]).to_json() for kind in EVERY
    ]


@pytest.mark.parametrize(
    ("artefact", "answer", "error"),
    [
        *((name, text("No."), ModelMalformed) for name in NAMES),
        ("Brief", refusal(), ModelRefused), ("Tools", truncated(), ModelTruncated), ("Plan", empty(), ModelEmpty),
        ("Schema", answer_json({"tables": [{"name": "Not A Name"}], "pages": 3}), ModelMalformed),
    ],
)  # fmt: skip
def test_garbage_at_each_stage_is_an_error_of_its_kind(
    artefact: str, answer: Answer, error: type[ModelOutputError], tmp_path: Path, hand: Any, bench: Bench
) -> None:
    hand.always[artefact] = answer
    with desk(tmp_path, hand, bench) as found, pytest.raises(error):
        found.finish(Draft(), EVERY, lambda whole: ())
    assert hand.asked.count(artefact) == (2 if error is ModelMalformed else 1)
    assert hand.asked[: NAMES.index(artefact) + 1] == NAMES[: NAMES.index(artefact) + 1]


def test_what_no_document_can_hold_is_malformed(tmp_path: Path, hand: Any, bench: Bench) -> None:
    endless = text(text_of(artefacts.Rows.model_validate(hand.good["Rows"])).replace("[14,140,", "[14,1e999,"))
    hand.always["Rows"] = endless
    with desk(tmp_path, hand, bench) as found, pytest.raises(ModelMalformed):
        found.finish(Draft(), EVERY, lambda whole: ())


def test_an_answer_of_the_wrong_shape_counts_as_a_repair(tmp_path: Path, hand: Any, bench: Bench) -> None:
    bad = copy.deepcopy(hand.good["Rows"])
    bad["rows"]["plots"][0][2] = "sold"
    hand.first = {"Schema": [text("{}")], "Tools": [text("{}")], "Rows": [answer_json(bad)] * 4}
    with desk(tmp_path, hand, bench) as found, pytest.raises(Overdrawn, match="Rows, after 5 repairs") as raised:
        found.finish(Draft(), EVERY, lambda whole: ())
    assert raised.value.worst.finding.rule == "rows_invalid"
    assert [one.rules for one in found.repaired] == [("malformed",), ("malformed",), *[("rows_invalid",)] * 3]


def test_a_repair_shows_the_last_artefact_and_what_was_found(tmp_path: Path, hand: Any, bench: Bench) -> None:
    bad = copy.deepcopy(hand.good["Rows"])
    bad["rows"]["plots"][0][2] = "sold"
    hand.first["Rows"] = [answer_json(bad)]
    with desk(tmp_path, hand, bench) as found:
        found.finish(Draft(), WORLD, lambda whole: ())
    system, asked, last, told = hand.requests[-1].messages
    assert "# The world format" in system["content"]
    assert asked["content"].startswith("Write the rows")
    assert '"sold"' in last["content"]
    assert "rows_invalid" in told["content"]
    assert "<quoted " in told["content"]


def test_what_the_ladder_finds_goes_back_and_everything_is_examined_again(
    tmp_path: Path, hand: Any, bench: Bench
) -> None:
    from envsynth.generators.business.authored.faults import fault

    climbs: list[str] = []

    def ladder(draft: Draft) -> list[Any]:
        climbs.append(draft.of(artefacts.Tools).tools[0].doc)
        return [] if len(climbs) > 2 else [fault(artefacts.Tools, "order_by_chance", "ties", "tool find_people")]

    with desk(tmp_path, hand, bench) as found:
        found.finish(Draft(), EVERY, ladder)
    assert len(climbs) == 3
    assert hand.asked == [*NAMES, "Tools", "Tools"]
    assert [one.document() for one in found.repaired] == [{"artefact": "Tools", "rules": ["order_by_chance"]}] * 2


def test_another_draw_is_another_world(tmp_path: Path, hand: Any, bench: Bench) -> None:
    with ScriptedModel(hand) as model:
        settings = model.settings(max_tokens=20_000)
        with Client("author", settings, Cache(tmp_path / "cache"), Ledger(tmp_path / "spend.sqlite", None)) as client:
            for draw in (1, 2, 1):
                Desk(client, bench, Assignment("Something.", draw)).finish(Draft(), WORLD, lambda whole: ())
    assert hand.asked == [*NAMES[:5], *NAMES[:5]]
