"""Answers, tool calls, the cache, and what makes two questions the same."""

from __future__ import annotations

import sys
import threading

import pytest

from envsynth.errors import (
    ModelBadToolCall,
    ModelEmpty,
    ModelEndpointError,
    ModelOutputError,
    ModelOverlong,
    ModelRefused,
    ModelTruncated,
)
from envsynth.llm import Ledger, Sampling, Tool, Usage, system, tool_result, user
from envsynth.llm.scripted_answers import Answer, calls, empty, refusal, text, truncated

HELLO = [system("be brief"), user("hello")]
LOOK = Tool(name="look", description="look", parameters={"type": "object", "properties": {"at": {"type": "string"}}})


def test_an_answer_comes_with_its_usage_and_cost(bench):
    model = bench.model([text("hi", usage=Usage(prompt_tokens=100, cached_tokens=40, completion_tokens=10))])
    client = bench.client(model, sampling=Sampling(temperature=0.5, top_p=0.9, seed=7, max_tokens=50))
    reply = client.complete(HELLO)
    assert (reply.text, reply.finish_reason, reply.cached, reply.model) == ("hi", "stop", False, "scripted")
    assert reply.cost_usd == pytest.approx((60 * 1.0 + 40 * 0.5 + 10 * 2.0) / 1e6)
    assert model.requests[0].body == {
        "model": "scripted",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "max_tokens": 50, "temperature": 0.5, "top_p": 0.9, "seed": 7,
    }  # fmt: skip
    total = client.tally
    assert (total.calls, total.cached, total.usage.prompt_tokens, total.cost_usd) == (1, 0, 100, reply.cost_usd)
    assert bench.ledger().total().settled_usd == pytest.approx(reply.cost_usd)


def test_the_second_time_makes_no_call_and_spends_nothing(bench):
    model = bench.model([text("hi"), text("other")])
    first = bench.client(model).complete(HELLO)
    spent = bench.ledger().total()
    client = bench.client(model)
    again = client.complete(HELLO)
    assert (again.text, again.cached, again.cost_usd) == ("hi", True, 0.0)
    assert again.usage == first.usage
    assert len(model.requests) == 1
    assert bench.ledger().total() == spent
    assert (client.tally.calls, client.tally.cached) == (0, 1)


def test_whoever_is_killed_before_the_answer_is_settled_has_it(bench, monkeypatch):
    model = bench.model([text("paid for")])
    client = bench.client(model)
    with monkeypatch.context() as killed:
        killed.setattr(Ledger, "settle", lambda *_: sys.exit("killed"))
        with pytest.raises(SystemExit):
            client.complete([user("hello")])
    reply = bench.client(model).complete([user("hello")])
    assert (reply.text, reply.cached, len(model.requests)) == ("paid for", True, 1)


def test_the_cache_outlives_the_endpoint(bench):
    bench.client(bench.model([text("hi")])).complete(HELLO)
    elsewhere = bench.model([])
    assert bench.client(elsewhere).complete(HELLO).text == "hi"
    assert elsewhere.requests == []


def test_whatever_changes_the_question_is_another_question(bench):
    model = bench.model(lambda received: text(f"answer {received.number}"))
    client = bench.client(model)
    warm = bench.client(model, sampling=Sampling(temperature=1.0, max_tokens=1000))
    answers = [
        client.complete(HELLO).text,
        client.complete([user("hello")]).text,
        client.complete(HELLO, prompt_version="2").text,
        client.complete(HELLO, draw=1).text,
        client.complete(HELLO, tools=[LOOK]).text,
        client.complete(HELLO, tools=[LOOK], tool_choice="required").text,
        warm.complete(HELLO).text,
        bench.client(model, role="judge").complete(HELLO).text,
    ]
    assert answers == [f"answer {number}" for number in range(8)]


def test_draws_have_seeds_of_their_own_and_draw_0_the_one_that_was_given(bench):
    model = bench.model(lambda received: text("hi"))
    client = bench.client(model, sampling=Sampling(seed=5))
    for draw in range(4):
        client.complete(HELLO, draw=draw)
    seeds = [received.body["seed"] for received in model.requests]
    assert seeds[0] == 5
    assert len(set(seeds)) == 4
    assert not set(seeds) & set(range(6, 100))
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_a_conversation_with_tools(bench):
    model = bench.model([calls(("look", {"at": "sky"}), content="let me see"), text("blue")])
    client = bench.client(model)
    reply = client.complete(HELLO, tools=[LOOK], tool_choice="look")
    (call,) = reply.tool_calls
    assert (reply.text, call.name, call.parsed()) == ("let me see", "look", {"at": "sky"})
    assert client.complete([*HELLO, reply.message, tool_result(call, "blue sky")], tools=[LOOK]).text == "blue"
    asked, told = (received.body for received in model.requests)
    assert asked["tool_choice"] == {"type": "function", "function": {"name": "look"}}
    assert asked["tools"] == [{"type": "function", "function": {
        "name": "look", "description": "look",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    }}]  # fmt: skip
    assert told["messages"][2]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "sky"}'}
    assert told["messages"][3] == {"role": "tool", "content": "blue sky", "tool_call_id": call.id}
    assert told["tool_choice"] == "auto"


FAULTS = [
    (refusal("no, never"), ModelRefused, "no, never"),
    (Answer({"role": "assistant", "content": "well"}, "content_filter"), ModelRefused, "well"),
    (truncated("and then"), ModelTruncated, "and then"),
    (empty(), ModelEmpty, ""),
    (text(" \n "), ModelEmpty, " \n "),
    (text("x" * 501), ModelOverlong, "x" * 501),
    (text("short", usage=Usage(prompt_tokens=1, completion_tokens=5000)), ModelOverlong, "short"),
    (calls(("jump", {})), ModelBadToolCall, "jump"),
    (calls(("look", '{"at": ')), ModelBadToolCall, '{\\"at\\": '),
    (calls(("look", [1])), ModelBadToolCall, "[1]"),
    (calls(("look", '{"at": NaN}')), ModelBadToolCall, "NaN"),
]


@pytest.mark.parametrize(("answer", "kind", "output"), FAULTS)
def test_each_fault_of_an_output_is_an_error_of_its_own_and_no_fault_of_the_endpoint(bench, answer, kind, output):
    model = bench.model([answer])
    client = bench.client(model, max_chars=500)
    with pytest.raises(kind) as caught:
        client.complete(HELLO, tools=[LOOK])
    assert type(caught.value) is kind
    assert not isinstance(caught.value, ModelEndpointError)
    assert output in caught.value.output
    assert not caught.value.retryable
    assert str(caught.value).startswith("scripted: ")
    with pytest.raises(kind):  # a fault is remembered too: the same build makes no second call
        client.complete(HELLO, tools=[LOOK])
    assert len(model.requests) == 1
    assert bench.ledger().total().settled == 1


def test_a_faulty_reply_can_be_had_as_it_is(asking):
    client = asking([calls(("look", "{oops"))])
    reply = client.complete(HELLO, tools=[LOOK], check=False)
    assert reply.tool_calls[0].arguments == "{oops"
    assert reply.tool_calls[0].parsed() is None
    assert isinstance(client.fault(reply, [LOOK]), ModelBadToolCall)
    assert isinstance(client.fault(reply), ModelOutputError)


def test_one_question_from_many_threads_is_one_call(bench):
    model = bench.model([text("hi")])
    client = bench.client(model)
    together = threading.Barrier(6)
    answers: list[str] = []

    def ask() -> None:
        together.wait(10)
        answers.append(client.complete(HELLO).text)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["hi"] * 6
    assert len(model.requests) == 1


@pytest.mark.parametrize("clients", [1, 2])
def test_no_more_calls_are_under_way_than_allowed_over_all_clients(bench, clients):
    two, three, go_on = threading.Event(), threading.Event(), threading.Event()

    def answer(received):
        if received.number == 1:
            two.set()
        if received.number == 2:
            three.set()
        go_on.wait(20)
        return text("hi")

    model = bench.model(answer)
    several = [bench.client(model, concurrency=2) for _ in range(clients)]
    threads = [
        threading.Thread(target=several[number % clients].complete, args=([user(f"question {number}")],))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    assert two.wait(20)
    assert not three.wait(0.4)
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(model.requests) == 8


def test_usage_that_is_not_told_is_uncertain_spend(bench):
    client = bench.client(bench.model([text("hi")._replace(tells_usage=False)]))
    reply = client.complete(HELLO)
    assert (reply.usage, reply.cost_usd) == (None, None)
    total = bench.ledger().total()
    assert (total.settled, total.uncertain) == (0, 1)
    assert total.uncertain_usd > 0


def test_without_prices_tokens_are_counted(bench):
    client = bench.client(bench.model([text("hi")]), prices=None)
    assert client.complete(HELLO).cost_usd is None
    total = bench.ledger().total()
    assert (total.settled, total.settled_usd) == (1, 0.0)
    assert total.prompt_tokens > 0
