"""The recording endpoint, with openai's own client and bare sockets for harnesses."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from envsynth.cache import Cache
from envsynth.errors import ConfigError
from envsynth.llm import Ledger, Usage
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import Answer, calls, cut, failure, garbage, hang, rate_limited, text
from envsynth.proxy import Record, Upstream
from envsynth.proxy.conversation import conversation_of

USAGE = Usage(prompt_tokens=1000, cached_tokens=200, completion_tokens=500)
COST = 0.0019
"""Of that, at the scripted model's prices."""
KEY = "sk-the-solver-s-own"


Got = tuple[int, dict[str, str], bytes]


def post(bench: Any, body: Any, path: str = "/v1/chat/completions", **headers: str) -> Got:
    connection = http.client.HTTPConnection("127.0.0.1", bench.proxy.port, timeout=60)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, content, {"content-type": "application/json", **headers})
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return found


def asking(prompt: str = "hello", **more: Any) -> dict[str, Any]:
    return {"model": "x", "messages": [{"role": "user", "content": prompt}], **more}


def test_openai_s_client_gets_the_solver_s_answer_and_the_record_has_it(bench, monkeypatch):
    monkeypatch.setenv("SOLVER_KEY", KEY)
    script = [text("hi", usage=USAGE), calls(("look", {"at": 1}))._replace(usage=USAGE)]
    bench.start(script, key=KEY, api_key_env="SOLVER_KEY")
    assert [model.id for model in bench.harness().models.list()] == ["scripted"]
    first = bench.ask(temperature=0.25, user="u-1", store=True, service_tier="priority")
    assert (first.choices[0].message.content, first.usage.prompt_tokens) == ("hi", 1000)
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    second = bench.ask(tools=[tool], max_tokens=77)
    assert second.choices[0].message.tool_calls[0].function.arguments == '{"at": 1}'
    sent = [received.body for received in bench.model.requests]
    assert [body["model"] for body in sent] == ["scripted", "scripted"]
    assert sent[0] == {
        "model": "scripted", "messages": [{"role": "user", "content": "hello"}], "temperature": 0.25,
        "max_tokens": 1000,
    }  # fmt: skip
    assert sent[1]["max_tokens"] == 77
    assert {received.headers["authorization"] for received in bench.model.requests} == {f"Bearer {KEY}"}
    one, two = bench.recorded()
    assert (one.number, one.ending, one.status, one.usage, one.cost_usd) == (0, "answered", 200, USAGE, COST)
    assert one.left_out == ("service_tier", "store", "user")
    assert (one.request, one.response["choices"][0]["message"]["content"]) == (sent[0], "hi")
    assert two.response["choices"][0]["finish_reason"] == "tool_calls"
    assert (bench.spent().settled, bench.spent().settled_usd) == (2, pytest.approx(2 * COST))
    assert KEY not in (bench.out / "calls.jsonl").read_text()


@pytest.mark.parametrize("told", [True, False])
def test_a_stream_is_passed_on_event_by_event_and_put_together(bench, told):
    message = calls(("edit", {"path": "a.py", "new": "x = 1\n"}), ("look", {}), content="Let me see.")
    bench.start([message._replace(usage=USAGE)])
    options = {"stream_options": {"include_usage": True}} if told else {}
    chunks = bench.ask(stream=True, **options)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Let me see."
    # The usage is asked for in any case; a harness that did not ask is not told.
    assert [chunk.usage.completion_tokens for chunk in chunks if not chunk.choices] == ([500] if told else [])
    assert bench.model.requests[0].body["stream_options"] == {"include_usage": True}
    (call,) = bench.recorded()
    said = call.response["choices"][0]["message"]
    assert (call.stream, said["content"], call.ending) == (True, "Let me see.", "answered")
    assert [one["function"]["name"] for one in said["tool_calls"]] == ["edit", "look"]
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == {"path": "a.py", "new": "x = 1\n"}
    assert (call.usage, call.cost_usd) == (USAGE, COST)
    assert (bench.spent().settled, bench.spent().uncertain) == (1, 0)


def test_errors_of_the_endpoint_pass_unchanged_with_what_they_ask_for(bench):
    bench.start([
        rate_limited(7, headers=[("x-ratelimit-remaining-requests", "0"), ("set-cookie", "a=b")]), failure(503, "busy"),
        failure(400, "the context is too long", code="context_length_exceeded"), failure(504, "gateway"),
    ])  # fmt: skip
    status, headers, body = post(bench, asking())
    assert (status, headers["retry-after"], headers["x-ratelimit-remaining-requests"]) == (429, "7", "0")
    assert "set-cookie" not in headers
    assert json.loads(body)["error"]["code"] == "rate_limit_exceeded"
    with pytest.raises(openai.InternalServerError, match="busy"):
        bench.ask()
    with pytest.raises(openai.BadRequestError, match="too long") as caught:
        bench.ask()
    assert caught.value.code == "context_length_exceeded"
    assert post(bench, asking())[0] == 504
    found = [(call.status, call.ending) for call in bench.recorded()]
    assert found == [(429, "failed"), (503, "failed"), (400, "rejected"), (504, "failed")]
    # A gateway's upstream may have done the work; the others are certainly not billed.
    assert (bench.spent().released, bench.spent().uncertain, bench.spent().settled) == (3, 1, 0)


def test_an_endpoint_that_hangs_or_hangs_up_is_told_and_counts_as_uncertain(bench):
    whole = text("so well").rendered({}, "scripted")
    bench.start([hang(), cut(5), garbage(), text("so well")._replace(cut_at=len(whole) - 3)], timeout=0.5)
    assert post(bench, asking())[0] == 504
    assert post(bench, asking())[0] == 502
    assert post(bench, asking())[0] == 200  # it is no answer, but what came is passed on
    assert post(bench, asking())[0] == 502
    assert [call.ending for call in bench.recorded()] == ["failed"] * 4
    assert (bench.spent().uncertain, bench.spent().settled, bench.spent().reserved) == (4, 0, 0)


def test_an_endpoint_that_is_not_there_is_not_billed(bench):
    bench.start([])
    bench.model._server.server_close()
    bench.model._server.shutdown()
    assert post(bench, asking())[0] == 502
    (call,) = bench.recorded()
    assert (call.status, call.ending, bench.spent().released) == (502, "failed", 1)


def test_a_stream_that_is_cut_is_cut_for_the_harness_too(bench):
    bench.start([text("a long and winding answer")._replace(cut_at=400), text("good", usage=USAGE)])
    connection = http.client.HTTPConnection("127.0.0.1", bench.proxy.port, timeout=60)
    connection.request("POST", "/v1/chat/completions", json.dumps(asking(stream=True)),
                       {"content-type": "application/json"})  # fmt: skip
    with pytest.raises(http.client.IncompleteRead):
        connection.getresponse().read()
    connection.close()
    assert bench.ask().choices[0].message.content == "good"
    first, second = bench.recorded()
    assert (first.ending, second.ending) == ("failed", "answered")
    assert first.response is None or first.response["choices"][0]["finish_reason"] is None
    assert (bench.spent().uncertain, bench.spent().settled) == (1, 1)


def test_a_harness_that_goes_away_is_paid_for_and_recorded(bench):
    go = threading.Event()

    def answer(received: Any) -> Answer:
        go.wait(60)
        return text("too late for you", usage=USAGE)

    bench.start(answer)
    body = json.dumps(asking(stream=True)).encode()
    with socket.create_connection(("127.0.0.1", bench.proxy.port)) as harness:
        harness.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n%s" % (len(body), body))  # fmt: skip
        while not bench.model.requests:
            threading.Event().wait(0.01)
        harness.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset, at once
    go.set()
    (call,) = bench.recorded()  # leaving waits for it
    said = call.response["choices"][0]["message"]["content"]
    assert (call.ending, call.heard, call.usage, said) == ("answered", False, USAGE, "too late for you")
    assert (bench.spent().settled, bench.spent().uncertain) == (1, 0)


@pytest.mark.parametrize(
    "body",
    [
        asking(tools=[{"type": "web_search"}]),
        asking(tools=[{"type": "mcp", "server_url": "https://evil.example"}]),
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://evil.example"}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f-1"}}]}]},
        {"messages": [{"role": "user", "content": [{"image_url": "http://evil.example"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "video_url": "http://evil.example"}]}]},
        {"messages": [{"role": "user", "content": {"type": "image_url", "image_url": {"url": "http://evil.example"}}}]},
        asking(tools={"type": "mcp", "server_url": "https://evil.example"}),
        asking(n=1000), asking(n=True), asking(max_tokens=0), asking(max_tokens="many"),
        {"messages": "hello"}, {"messages": ["hello"]}, [], b"{", b"[" * 100_000,
        # What could be forwarded, but not written down, or only as the endpoint's failure, would count for nothing.
        b'{"messages": [], "temperature": NaN}', b'{"messages": [], "temperature": 1e999}',
        b'{"messages": [], "stop": ' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"messages": [], "stop": ["' + b"x" * 20_000 + b'", ' + b"[" * 800 + b"]" * 800 + b"]}",
    ],
)  # fmt: skip
def test_what_would_reach_anything_but_the_model_is_not_forwarded(bench, body):
    bench.start([])
    status, _, answer = post(bench, body)
    assert (status, "envsynth proxy" in json.loads(answer)["error"]["message"]) == (400, True)
    (call,) = bench.recorded()
    assert (call.ending, call.status) == ("refused", 400)
    assert bench.model.requests == []
    assert bench.spent().reserved + bench.spent().released + bench.spent().uncertain == 0


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/completions", {}, 404),
        ("/v1/files", {}, 404),
        ("http://evil.example/v1/chat/completions", {}, 404),
        ("/v1/chat/completions", {"content-type": "text/plain"}, 415),
        ("/v1/chat/completions", {"origin": "https://evil.example"}, 415),
        ("/v1/chat/completions", {"content-length": "-1"}, 411),
        ("/v1/chat/completions", {"content-length": "99999999999"}, 413),
    ],
)
def test_other_places_and_pages_in_browsers_are_turned_away(bench, path, headers, status):
    bench.start([])
    assert post(bench, asking(), path, **headers)[0] == status
    assert bench.model.requests == []


def test_a_web_search_asked_for_by_parameter_is_left_out(bench):
    bench.start([text("no")])
    post(bench, asking(web_search_options={}, modalities=["audio"], metadata={"a": "b"}, tools=None))
    assert bench.model.requests[0].body.keys() == {"model", "messages", "tools", "max_tokens"}


def test_a_budget_turns_calls_away_and_holds_between_threads(bench):
    bench.start(lambda received: text("x", usage=USAGE), budget=0.02)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: post(bench, asking())[0], range(24)))
    spent = bench.spent()
    assert set(statuses) == {200, 402}
    assert (spent.settled, spent.reserved, spent.uncertain) == (statuses.count(200), 0, 0)
    assert spent.settled_usd <= 0.02
    # What is left is less than one call may cost.
    assert 0.02 - spent.settled_usd < 0.0035
    with pytest.raises(openai.APIStatusError) as caught:
        bench.ask()
    assert (caught.value.status_code, caught.value.code) == (402, "budget_spent")
    assert bench.proxy.upstream.spent is not None
    endings = [call.ending for call in bench.recorded()]
    assert (endings.count("answered"), endings.count("budget")) == (statuses.count(200), 25 - statuses.count(200))


def test_a_budget_reckons_with_every_choice_and_the_harness_s_own_limit(bench):
    bench.start([text("x", usage=USAGE)], budget=0.01)
    assert post(bench, asking(n=8, max_tokens=1000))[0] == 402  # $0.016 at most
    assert post(bench, asking(max_completion_tokens=10_000))[0] == 402
    assert post(bench, asking(max_completion_tokens=1000))[0] == 200


def test_a_budget_without_prices_is_refused_before_any_call(bench, tmp_path):
    bench.start([])
    with pytest.raises(ConfigError, match="prices of scripted are not known"):
        Upstream(bench.model.settings(prices=None), Cache(tmp_path), Ledger(bench.ledger_path, 1.0))


def test_calls_at_once_are_recorded_each_on_a_line_of_its_own(bench):
    bench.start(lambda received: text(received.prompt, usage=USAGE), concurrency=8)
    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(lambda number: bench.ask(f"number {number} " + "x" * 20_000), range(64)))
    assert [one.choices[0].message.content.split("x")[0] for one in said] == [f"number {n} " for n in range(64)]
    calls = bench.recorded()
    assert [call.number for call in calls] == list(range(64))
    for call in calls:
        assert call.response["choices"][0]["message"]["content"] == call.request["messages"][0]["content"]


def test_leaving_writes_down_what_is_still_under_way(bench):
    bench.start(lambda received: hang(), patience=0.1, timeout=300.0)

    def ask() -> None:
        with pytest.raises((OSError, http.client.HTTPException)):
            post(bench, asking("endless"))

    thread = threading.Thread(target=ask)
    thread.start()
    while not bench.model.requests:
        threading.Event().wait(0.01)
    (call,) = bench.recorded()
    assert (call.ending, call.status, call.request["messages"][0]["content"]) == ("interrupted", 0, "endless")
    thread.join(60)
    assert not thread.is_alive()


def test_a_key_that_the_endpoint_repeats_is_masked_everywhere(bench, monkeypatch):
    monkeypatch.setenv("SOLVER_KEY", KEY)
    bench.start([failure(401, f"bad key {KEY}"), text(f"your key is {KEY}")], api_key_env="SOLVER_KEY")
    for _ in range(2):
        assert KEY.encode() not in post(bench, asking())[2]
    bench.recorded()
    assert KEY not in (bench.out / "calls.jsonl").read_text()


@pytest.mark.parametrize("stream", [False, True])
def test_halves_of_characters_leave_the_record_readable(bench, stream):
    bench.start([Answer({"role": "assistant", "content": "half \ud83d"})])
    body = json.dumps(asking(stream=stream)).replace("hello", "hel\\udc80lo")
    assert post(bench, body.encode())[0] == 200
    (call,) = bench.recorded()
    assert (call.ending, call.request["messages"][0]["content"]) == ("answered", "hel?lo")
    assert conversation_of([call]).messages[-1].content == "half ?"


def test_numbers_and_depths_of_an_answer_that_cannot_be_written_down_leave_the_record_readable(bench):
    answer = '{"choices": [{"message": {"content": "a"}, "logprobs": %s}]}'
    bench.start([garbage((answer % told).encode()) for told in ("-1e999", "NaN", "[" * 300 + "]" * 300)])
    for _ in range(3):
        assert post(bench, asking())[0] == 200
    calls = bench.recorded()
    assert [call.ending for call in calls] == ["answered", "answered", "failed"]
    assert calls[0].response["choices"][0]["logprobs"] == "-1e999"
    assert conversation_of(calls).answers == 2


def test_a_key_that_no_header_can_carry_is_named_and_shown_to_nobody(tmp_path, monkeypatch):
    with ScriptedModel([]) as model:
        for key in (f"{KEY}\nsecond line", f"{KEY}\u00e9"):
            monkeypatch.setenv("SOLVER_KEY", key)
            with pytest.raises(ConfigError, match="holds no key") as caught:
                Upstream(model.settings(api_key_env="SOLVER_KEY"), Cache(tmp_path), Ledger(tmp_path / "s.sqlite"))
            assert KEY not in str(caught.value)


def test_a_record_is_never_written_over(bench, tmp_path):
    with Record(tmp_path / "r"), pytest.raises(ConfigError, match=r"the record cannot be written.*another folder"):
        Record(tmp_path / "r")


def test_the_scripted_model_streams_as_it_answers():
    with (
        ScriptedModel([text("in pieces")]) as model,
        openai.OpenAI(api_key="none", base_url=model.base_url, max_retries=0) as client,
    ):
        said = [{"role": "user", "content": "a"}]
        chunks = list(client.chat.completions.create(model="x", messages=said, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "in pieces"
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_what_floods_the_proxy_fills_neither_disk_nor_threads(bench, monkeypatch):
    bench.start(lambda received: text("x"))
    for _ in range(3):
        assert post(bench, b'{"messages": "' + b"x" * 1_000_000)[0] == 400
    assert (bench.out / "calls.jsonl").stat().st_size < 10_000
    monkeypatch.setattr("envsynth.proxy.record._MOST_REFUSED", 5)
    for _ in range(4):
        post(bench, b"{")
    monkeypatch.setattr("envsynth.proxy.record.MOST_BYTES", 1000)
    assert json.loads(post(bench, asking())[2])["error"]["code"] == "record_full"
    monkeypatch.setattr("envsynth.proxy.record.MOST_BYTES", 1 << 20)
    assert post(bench, asking())[0] == 200
    held = [socket.create_connection(("127.0.0.1", bench.proxy.port)) for _ in range(70)]
    closed = 0
    for connection in held[-3:]:
        connection.settimeout(60)
        closed += connection.recv(1) == b""
    assert closed == 3
    for connection in held:
        connection.close()
    endings = [call.ending for call in bench.recorded()]
    assert endings == ["refused"] * 5 + ["answered"]
