"""Endpoints that fail, over real sockets: retries, patience, and the end of both."""

from __future__ import annotations

import socket
import threading

import pytest

from envsynth.errors import (
    ConfigError,
    EndpointDown,
    ModelEndpointError,
    ModelOutputError,
    ModelRateLimited,
    ModelRequestRejected,
)
from envsynth.llm import Client, RoleSettings, Usage, user
from envsynth.llm.scripted_answers import Answer, cut, failure, garbage, hang, rate_limited, text

HELLO = [user("hello")]
PASSING = [
    (failure(500), "released"),
    (failure(503), "released"),
    (failure(502), "uncertain"),
    (failure(504), "uncertain"),
    (failure(408), "released"),
    (rate_limited(), "released"),
    (cut(), "uncertain"),
    (cut(0), "uncertain"),
    (garbage(), "uncertain"),
    (garbage(b""), "uncertain"),
    (garbage(b"[]"), "uncertain"),
    (garbage(b'{"choices": []}'), "uncertain"),
    (garbage(b'{"error": {"message": "upstream fell over"}}'), "uncertain"),
    (garbage(b"x" * 2_000_000), "uncertain"),
]


@pytest.mark.parametrize(("trouble", "state"), PASSING)
def test_what_may_pass_is_tried_again_and_each_request_is_accounted_for(bench, trouble, state):
    model = bench.model([trouble, text("hi")])
    assert bench.client(model).complete(HELLO).text == "hi"
    assert len(model.requests) == 2
    total = bench.ledger().total()
    assert (total.settled, total.reserved, getattr(total, state)) == (1, 0, 1)
    assert (total.uncertain_usd > 0) == (state == "uncertain")
    assert bench.slept == [0.5]


def test_a_hang_ends_at_the_timeout(bench):
    model = bench.model([hang(), text("hi")])
    assert bench.client(model, timeout=0.3).complete(HELLO).text == "hi"
    assert bench.ledger().total().uncertain == 1


def test_a_server_that_hangs_for_good_is_named_with_the_timeout(bench):
    client = bench.client(bench.model(lambda received: hang()), timeout=0.2, retries=1, failures=5)
    with pytest.raises(ModelEndpointError, match=r"127\.0\.0\.1.*no answer in 0\.2 s") as caught:
        client.complete(HELLO)
    assert caught.value.retryable
    assert not isinstance(caught.value, ModelOutputError | EndpointDown)


def test_a_trickle_of_blanks_ends_at_the_timeout_too(bench):
    """Each byte starts the library's own timeout anew; ours counts from the request."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def trickle() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
            for _ in range(200):
                if stop.wait(0.02):
                    return
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    thread = threading.Thread(target=trickle, daemon=True)
    thread.start()
    settings = RoleSettings(
        model="m", base_url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1", api_key_env="", timeout=0.3, retries=0
    )
    with listener, Client("author", settings, bench.cache, bench.ledger()) as client:
        with pytest.raises(ModelEndpointError, match=r"no answer in 0\.3 s"):
            client.complete(HELLO)
        stop.set()
        thread.join()
    assert bench.ledger().total().uncertain == 1


def test_what_may_be_billed_each_time_is_tried_three_times_at_most(bench):
    model = bench.model(lambda received: cut())
    with pytest.raises(ModelEndpointError, match="the connection broke during the answer"):
        bench.client(model, retries=8).complete(HELLO)
    assert len(model.requests) == bench.ledger().total().uncertain == 3


def test_waits_double_and_are_bounded(bench):
    model = bench.model(lambda received: failure(500))
    with pytest.raises(ModelEndpointError, match="HTTP 500"):
        bench.client(model, retries=8).complete(HELLO)
    assert len(model.requests) == 9
    assert bench.slept == [0.5, 1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize(("answer", "wait"), [
    (rate_limited(7), 7),
    (rate_limited(1, [("retry-after-ms", "2500")]), 2.5),
    (failure(503)._replace(headers=(("Retry-After", "4"),)), 4),
    (rate_limited(None, [("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "1m30.5s")]), 90),
])  # fmt: skip
def test_the_servers_own_word_is_waited_for(bench, answer, wait):
    model = bench.model([answer, text("hi")])
    assert bench.client(model).complete(HELLO).text == "hi"
    assert sum(bench.slept) == pytest.approx(wait, abs=0.6)


def test_a_limit_that_is_used_up_holds_the_next_call_back(bench):
    headers = (("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "12s"))
    model = bench.model([text("hi")._replace(headers=headers), text("ho")])
    client = bench.client(model)
    client.complete(HELLO)
    assert bench.slept == []
    client.complete([user("again")])
    assert bench.slept == [pytest.approx(12, abs=0.5)]


def test_more_patience_than_there_is_ends_the_call_at_once(bench):
    model = bench.model([rate_limited(3600)])
    with pytest.raises(ModelRateLimited, match="asks to wait 3600 s") as caught:
        bench.client(model, patience=60.0).complete(HELLO)
    assert caught.value.retryable
    assert (len(model.requests), bench.slept) == (1, [])


def test_a_limit_that_never_ends_is_typed(bench):
    with pytest.raises(ModelRateLimited, match="HTTP 429"):
        bench.client(bench.model(lambda received: rate_limited()), retries=2).complete(HELLO)


def test_calls_in_a_row_that_fail_alike_are_an_endpoint_that_is_down(bench):
    model = bench.model(lambda received: failure(500))
    client = bench.client(model, retries=1, failures=3)
    for number in range(2):
        with pytest.raises(ModelEndpointError) as caught:
            client.complete([user(f"question {number}")])
        assert not isinstance(caught.value, EndpointDown)
    with pytest.raises(EndpointDown) as caught:
        client.complete([user("the third")])
    assert model.base_url in str(caught.value)
    assert "3 calls in a row" in str(caught.value)
    assert "Next: " in str(caught.value)
    assert not caught.value.retryable
    asked = len(model.requests)
    with pytest.raises(EndpointDown):  # and no further call is tried
        client.complete([user("the fourth")])
    assert len(model.requests) == asked == 6


def test_an_answer_of_whatever_use_shows_that_the_endpoint_lives(bench):
    fails = [failure(500), failure(500), text(""), failure(500), failure(500), text("hi")]
    client = bench.client(bench.model(fails), retries=0, failures=3)
    for number in range(6):
        kind = ModelOutputError if number == 2 else ModelEndpointError
        if number < 5:
            with pytest.raises(kind) as caught:
                client.complete([user(f"question {number}")])
            assert not isinstance(caught.value, EndpointDown)
    assert client.complete([user("the last")]).text == "hi"


def test_outputs_of_no_use_never_bring_an_endpoint_down(bench):
    client = bench.client(bench.model(lambda received: text("")), failures=1)
    for number in range(5):
        with pytest.raises(ModelOutputError):
            client.complete([user(f"question {number}")])


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_what_no_retry_mends_is_down_at_once(bench, status):
    model = bench.model(lambda received: failure(status, "go away"))
    with pytest.raises(EndpointDown, match=f"HTTP {status} .go away"):
        bench.client(model).complete(HELLO)
    assert len(model.requests) == 1


def test_an_account_without_credit_is_no_rate_limit(bench):
    model = bench.model(lambda received: failure(429, "you are broke", code="insufficient_quota"))
    with pytest.raises(EndpointDown, match=r"no credit left .you are broke"):
        bench.client(model).complete(HELLO)
    assert len(model.requests) == 1


def test_nobody_listening_is_named_and_nothing_is_owed(bench):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings = RoleSettings(model="m", base_url=f"http://127.0.0.1:{port}/v1", api_key_env="", retries=2, failures=1)
    with (
        Client("author", settings, bench.cache, bench.ledger(), bench.clock) as client,
        pytest.raises(EndpointDown, match=rf"127\.0\.0\.1:{port}/v1 .m, llm\.author.*cannot be reached"),
    ):
        client.complete(HELLO)
    total = bench.ledger().total()
    assert (total.released, total.uncertain, total.committed_usd) == (3, 0, 0.0)


def test_a_request_that_is_not_taken_is_not_tried_again(bench):
    model = bench.model([failure(400, "maximum context length is 512 tokens")])
    with pytest.raises(ModelRequestRejected, match="maximum context length is 512 tokens") as caught:
        bench.client(model).complete(HELLO)
    assert not caught.value.retryable
    assert len(model.requests) == 1


def test_an_endpoint_that_renamed_the_token_limit_is_understood_once_and_for_all(bench):
    def answer(received) -> Answer:
        if "max_tokens" in received.body:
            return failure(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return text("hi")

    model = bench.model(answer)
    client = bench.client(model, max_tokens=77)
    assert client.complete(HELLO).text == "hi"
    assert bench.client(model, max_tokens=77).complete([user("again")]).text == "hi"
    assert [received.body.get("max_completion_tokens") for received in model.requests] == [None, 77, 77]


def test_an_endpoint_that_dislikes_both_names_is_not_asked_for_ever(bench):
    said = "neither max_tokens nor max_completion_tokens is known here"
    model = bench.model(lambda received: failure(400, said))
    with pytest.raises(ModelRequestRejected, match="neither"):
        bench.client(model).complete(HELLO)
    assert len(model.requests) == 2


def test_the_key_is_sent_and_a_wrong_one_named(bench, monkeypatch):
    monkeypatch.setenv("MY_MODEL_KEY", "sesame")
    model = bench.model([text("hi")], key="sesame")
    assert bench.client(model, api_key_env="MY_MODEL_KEY").complete(HELLO).text == "hi"
    monkeypatch.setenv("MY_MODEL_KEY", "wrong")
    with pytest.raises(EndpointDown, match="HTTP 401"):
        bench.client(model, api_key_env="MY_MODEL_KEY").complete([user("again")])


def test_a_key_that_is_not_set_is_named_before_any_call(bench, monkeypatch):
    monkeypatch.delenv("MY_MODEL_KEY", raising=False)
    settings = RoleSettings(model="m", base_url="https://models.example/v1", api_key_env="MY_MODEL_KEY")
    with pytest.raises(ConfigError, match=r"\$MY_MODEL_KEY is not set.*export MY_MODEL_KEY"):
        Client("author", settings, bench.cache, bench.ledger())


def test_the_key_stands_in_no_error(bench, monkeypatch):
    monkeypatch.setenv("MY_MODEL_KEY", "sesame-open")
    model = bench.model(lambda received: failure(401, f"what is {received.headers['authorization']} to us"))
    with pytest.raises(EndpointDown, match=r"what is Bearer \*\*\* to us"):
        bench.client(model, api_key_env="MY_MODEL_KEY").complete(HELLO)


def test_servers_that_leave_things_out_are_understood(bench):
    lean = garbage(b'{"choices": [{"message": {"content": [{"type": "text", "text": "h"}, {"text": "i"}]}}]}')
    think = b'{"choices": [{"message": {"content": "4", "reasoning_content": "2+2"}, "finish_reason": "stop"}]}'
    called = b'{"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}}]}'
    client = bench.client(bench.model([lean, garbage(think), garbage(called)]))
    assert client.complete(HELLO).text == "hi"
    assert client.complete([user("2+2?")]).reasoning == "2+2"
    (call,) = client.complete([user("call f")], check=False).tool_calls
    assert (call.name, call.id, call.parsed()) == ("f", "call_0", {"a": 1})


def test_usage_below_zero_is_no_income(bench):
    body = b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": -5, "completion_tokens": 3}}'
    reply = bench.client(bench.model([garbage(body)])).complete(HELLO)
    assert reply.usage == Usage(prompt_tokens=0, completion_tokens=3)


def test_usage_that_nobody_believes_is_uncertain_spend(bench):
    body = b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": %d, "completion_tokens": 3}}'
    client = bench.client(bench.model([garbage(body % 10**12), garbage(body % 10**30)]))
    for prompt in ("one", "two"):
        assert client.complete([user(prompt)]).usage is None
    spent = bench.ledger().total()
    assert (spent.settled, spent.uncertain, spent.reserved) == (0, 2, 0)


def test_half_a_character_is_no_fault_of_the_endpoint(bench):
    client = bench.client(bench.model([Answer({"role": "assistant", "content": "cut at \ud83d"}, "length")]))
    assert client.complete(HELLO, check=False).text == "cut at ?"


def test_a_key_that_no_header_can_carry_is_named_and_stands_in_no_error(bench, monkeypatch):
    monkeypatch.setenv("BROKEN_KEY", "sk-one\nsk-two")
    with pytest.raises(ConfigError, match=r"\$BROKEN_KEY holds no key.*in one line") as caught:
        bench.client(bench.model([]), api_key_env="BROKEN_KEY")
    assert "sk-one" not in str(caught.value)


@pytest.mark.parametrize(("status", "down"), [(500, True), (400, False)])
def test_what_a_server_says_beside_does_not_tell_failures_apart_and_tells_rejections_apart(bench, status, down):
    model = bench.model(lambda received: failure(status, f"request number {received.number}"))
    client = bench.client(model, retries=0, failures=2)
    kinds = []
    for number in range(3):
        with pytest.raises(ModelEndpointError) as caught:
            client.complete([user(f"question {number}")])
        kinds.append(isinstance(caught.value, EndpointDown))
    assert kinds == [False, down, down]
