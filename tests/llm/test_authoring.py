"""An artefact is examined as soon as it exists, and goes back to its author with what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.llm import Client, Ledger, Order, Unrepaired, author, user
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import answer_json
from envsynth.models import Finding, Model


class Price(Model):
    """One number."""

    price: int


def _too_low(price: Price) -> list[Finding]:
    return [] if price.price >= 3 else [Finding(rule="too_low", message=f"{price.price} is below 3", where="price")]


def _client(model: ScriptedModel, folder: Path) -> Client:
    return Client("author", model.settings(), Cache(folder / "cache"), Ledger(folder / "spend.sqlite", None))


def _order(examine: Callable[[Price], list[Finding]] = _too_low) -> Order[Price]:
    return Order("price", Price, (user("A price."),), "1", examine)


def test_what_was_found_goes_back_and_the_repair_is_kept(tmp_path: Path) -> None:
    answers = [answer_json({"price": 1}), answer_json({"price": 5})]
    with ScriptedModel(answers) as model, _client(model, tmp_path) as client:
        written = author(client, _order())
        assert written.value.price == 5
        assert [[f.rule for f in found] for found in written.repairs] == [["too_low"]]
        told = model.requests[1]
    assert "too_low (price): 1 is below 3" in told.prompt
    assert [m["role"] for m in told.messages if m["role"] != "system"] == ["user", "assistant", "user"]


def test_after_every_repair_the_finding_is_the_reason(tmp_path: Path) -> None:
    with (
        ScriptedModel([answer_json({"price": -n}) for n in range(6)]) as model,
        _client(model, tmp_path) as client,
        pytest.raises(Unrepaired, match="below 3") as raised,
    ):
        author(client, _order())
    assert raised.value.reason == "too_low"
    assert len(model.requests) == 6


def test_a_repair_shows_only_the_last_try(tmp_path: Path) -> None:
    answers = [answer_json({"price": n}) for n in range(4)]
    with ScriptedModel(answers) as model, _client(model, tmp_path) as client:
        author(client, _order())
        assert len({len(one.messages) for one in model.requests[1:]}) == 1
        assert "2 is below 3" in model.requests[3].prompt
        assert "1 is below 3" not in model.requests[3].prompt
