"""The scripted model, asked by the official library itself."""

from __future__ import annotations

import json
import urllib.request

import openai
import pytest

from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import answer_json, calls, hang, rate_limited, refusal, text, truncated


def library(model: ScriptedModel) -> openai.OpenAI:
    client = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(api_key="none", base_url=model.base_url, max_retries=0, http_client=client)


def test_the_official_library_reads_every_good_answer():
    script = [text("hi"), calls(("f", {"a": 1})), answer_json({"b": 2}), refusal("no"), truncated("so")]
    with ScriptedModel(script) as model, library(model) as client:
        asked = [
            client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": f"{number}"}])
            for number in range(5)
        ]
        assert [listed.id for listed in client.models.list()] == ["scripted"]
    said = [answer.choices[0] for answer in asked]
    assert said[0].message.content == "hi"
    assert said[1].message.tool_calls[0].function.arguments == '{"a": 1}'
    assert said[1].finish_reason == "tool_calls"
    assert json.loads(said[2].message.content) == {"b": 2}
    assert said[3].message.refusal == "no"
    assert said[4].finish_reason == "length"
    assert asked[0].usage.total_tokens == asked[0].usage.prompt_tokens + asked[0].usage.completion_tokens
    assert [received.prompt for received in model.requests] == ["0", "1", "2", "3", "4"]
    assert model.requests[0].headers["authorization"] == "Bearer none"


def test_a_script_that_is_used_up_says_so():
    with ScriptedModel([rate_limited(3)]) as model, library(model) as client:
        with pytest.raises(openai.RateLimitError) as limited:
            client.chat.completions.create(model="m", messages=[])
        assert limited.value.response.headers["retry-after"] == "3"
        with pytest.raises(openai.BadRequestError, match="exhausted"):
            client.chat.completions.create(model="m", messages=[])


def test_leaving_ends_answers_that_hang(bench):
    with ScriptedModel([hang()]) as model:
        request = urllib.request.Request(
            f"{model.base_url}/chat/completions",
            b'{"model": "m", "messages": []}',
            {"Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with pytest.raises(TimeoutError):
            opener.open(request, timeout=0.1)
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/other", b"{}"), ("/v1/chat/completions", b"{"), ("/v1/chat/completions", b"[]")]
)
def test_what_is_no_request_of_the_protocol_is_turned_away(path, body):
    with ScriptedModel([text("hi")]) as model:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with pytest.raises(urllib.error.HTTPError) as caught:
            opener.open(urllib.request.Request(model.base_url.removesuffix("/v1") + path, body), timeout=5)
        caught.value.close()
        assert caught.value.code in (400, 404)
    assert model.requests == []
