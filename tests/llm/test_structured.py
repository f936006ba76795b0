"""Typed answers: the ladder of forms, repair of text, repair by asking again."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel

from envsynth.errors import ModelEndpointError, ModelMalformed, ModelRefused, ModelRequestRejected, ModelTruncated
from envsynth.llm import user
from envsynth.llm._dialect import response_format
from envsynth.llm._repair import parsed
from envsynth.llm.scripted_answers import answer_json, failure, refusal, text, truncated


class Fruit(BaseModel):
    name: str
    grams: int
    colours: tuple[Literal["red", "green"], ...] = ()


ASK = [user("name a fruit")]
APPLE = {"name": "apple", "grams": 150, "colours": ["red", "green"]}


def formats(model):
    return [received.format for received in model.requests]


def test_the_schema_is_sent_and_the_answer_is_typed(bench):
    model = bench.model([answer_json(APPLE)])
    fruit = bench.client(model).structured(ASK, Fruit)
    assert fruit == Fruit(name="apple", grams=150, colours=("red", "green"))
    asked = model.requests[0].body
    assert asked["response_format"]["json_schema"]["schema"] == Fruit.model_json_schema()
    assert asked["messages"] == [{"role": "user", "content": "name a fruit"}]


@pytest.mark.parametrize("refuses", [400, 422, 500, 501])
@pytest.mark.parametrize(("understood", "form"), [(("json_object",), "json_object"), ((), "")])
def test_an_endpoint_that_lacks_a_form_is_asked_in_the_next_and_the_form_is_remembered(
    bench, refuses, understood, form
):
    model = bench.model(lambda received: answer_json(APPLE), formats=understood, refuses=refuses)
    client = bench.client(model)
    assert client.structured(ASK, Fruit).name == "apple"
    assert formats(model)[-1] == form
    tried = len(model.requests)
    assert client.structured([user("another")], Fruit).name == "apple"
    assert bench.client(model).structured([user("a third, by a new client")], Fruit).name == "apple"
    assert formats(model)[tried:] == [form, form]
    last = model.requests[-1]
    assert "JSON Schema" in last.prompt
    assert '"grams"' in last.prompt
    if form:
        assert last.body["response_format"]["schema"] == Fruit.model_json_schema()
    assert bench.ledger().total().uncertain == 0


def test_the_form_is_no_part_of_the_question(bench):
    bench.client(bench.model([answer_json(APPLE)], formats=())).structured(ASK, Fruit)
    fresh = bench.model([])
    assert bench.client(fresh).structured(ASK, Fruit).grams == 150
    assert fresh.requests == []


def test_a_failing_endpoint_is_not_taken_for_one_that_lacks_a_form(bench):
    model = bench.model(lambda received: failure(500) if received.number < 20 else answer_json(APPLE))
    with pytest.raises(ModelEndpointError):
        bench.client(model, retries=2).structured(ASK, Fruit)
    assert formats(model) == ["json_schema"] * 2 + ["json_object"] * 2 + [""] * 3
    calm = bench.model([answer_json(APPLE)])
    assert bench.client(calm).structured(ASK, Fruit).grams == 150
    assert formats(calm) == ["json_schema"]


def test_a_form_that_worked_is_kept_where_one_schema_is_rejected(bench):
    script = [answer_json(APPLE), failure(400, "schema too deep"), answer_json(APPLE), answer_json(APPLE)]
    model = bench.model(script)
    client = bench.client(model)
    for number in range(3):
        client.structured([user(f"fruit {number}")], Fruit)
    assert formats(model) == ["json_schema", "json_schema", "json_object", "json_schema"]


def test_a_form_that_worked_is_tried_to_the_end_where_the_endpoint_fails(bench):
    model = bench.model([answer_json(APPLE), failure(503), failure(503), answer_json(APPLE)])
    client = bench.client(model)
    client.structured(ASK, Fruit)
    client.structured([user("another")], Fruit)
    assert formats(model) == ["json_schema"] * 4


def test_a_request_that_no_form_helps_is_rejected_in_the_servers_words(bench):
    model = bench.model(lambda received: failure(400, "the context is 512 tokens"))
    with pytest.raises(ModelRequestRejected, match=r"HTTP 400.*the context is 512 tokens"):
        bench.client(model).structured(ASK, Fruit)


@pytest.mark.parametrize("content", [
    'Sure! Here it is:\n```json\n{"name": "fig", "grams": 50}\n```\nEnjoy.',
    'The fruit is {"name": "fig", "grams": 50,} as {you} asked',
    '\ufeff\n {"name": "fig", "grams": 50}\n\n',
    '{"fruit": 1} no, rather {"name": "fig", "grams": 50}',
    '```\n{\n  "name": "fig",\n  "grams": 50,\n}\n```',
    '[] {"name": "fig", "grams": 50}{"name": "plum", "grams": 60}',
    "{{{[[" * 30 + '{"name": "fig", "grams": 50}',
])  # fmt: skip
def test_json_is_found_in_what_surrounds_it(content):
    assert parsed(content, Fruit) == Fruit(name="fig", grams=50)


def test_strings_are_left_alone():
    assert parsed('{"name": "a,]b,}c\nd \\" ```", "grams": 1,}', Fruit).name == 'a,]b,}c\nd " ```'


@pytest.mark.parametrize("content", ["no json", "", "{", '{"name": "fig", "grams": NaN}', "[" * 5000, '"text"'])
def test_where_there_is_no_fitting_value_there_is_none(content):
    with pytest.raises(ValueError):  # noqa: PT011  what is said is for the model
        parsed(content, Fruit)


def test_a_model_is_told_what_does_not_fit_and_asked_again(bench):
    model = bench.model([answer_json({"name": "apple", "colours": ["blue"]}), answer_json(APPLE)])
    found = bench.client(model).structured_reply(ASK, Fruit)
    assert found.value.grams == 150
    assert [reply.cached for reply in found.replies] == [False, False]
    again = model.requests[1].messages
    assert again[1] == {"role": "assistant", "content": '{"name": "apple", "colours": ["blue"]}'}
    assert "- grams: Field required" in again[2]["content"]
    assert "- colours.0: " in again[2]["content"]
    assert '"properties"' in again[2]["content"]


@pytest.mark.parametrize("repairs", [0, 1, 3])
def test_after_its_repairs_an_answer_is_malformed_and_the_second_build_makes_no_call(bench, repairs):
    model = bench.model(lambda received: text(f"fruit {received.number}"))
    client = bench.client(model)
    for _ in range(2):
        with pytest.raises(ModelMalformed, match=r"no Fruit .there is no JSON") as caught:
            client.structured(ASK, Fruit, repairs=repairs)
        assert caught.value.output == f"fruit {repairs}"
    assert len(model.requests) == repairs + 1


@pytest.mark.parametrize(("answer", "kind"), [(refusal(), ModelRefused), (truncated('{"name"'), ModelTruncated)])
def test_a_refusal_or_a_cut_answer_is_not_repaired(bench, answer, kind):
    model = bench.model([answer])
    with pytest.raises(kind):
        bench.client(model).structured(ASK, Fruit, repairs=3)
    assert len(model.requests) == 1


def test_servers_that_make_grammars_get_no_bounds_of_sizes() -> None:
    schema = {
        "type": "object", "required": ["maxLength"], "$defs": {"pattern": {"type": "string", "pattern": "a+"}},
        "properties": {
            "maxLength": {"type": "string", "minLength": 1, "maxLength": 400},
            "rows": {"type": "array", "maxItems": 9, "items": {"$ref": "#/$defs/pattern"}},
        },
    }  # fmt: skip
    assert response_format("json_object", "Rows", schema) == {
        "type": "json_object",
        "schema": {
            "type": "object", "required": ["maxLength"], "$defs": {"pattern": {"type": "string"}},
            "properties": {
                "maxLength": {"type": "string"}, "rows": {"type": "array", "items": {"$ref": "#/$defs/pattern"}},
            },
        },
    }  # fmt: skip
    whole = response_format("json_schema", "Rows", schema)
    assert whole is not None
    assert whole["json_schema"]["schema"] == schema
