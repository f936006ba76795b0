"""The commands of READMEs that need a model, run as written with one that makes the calls of the reference solution."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from envsynth.cache import Cache

_SPEC = importlib.util.spec_from_file_location("readmes", Path(__file__).with_name("test_readmes.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
readmes: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["readmes"] = readmes
_SPEC.loader.exec_module(readmes)


def references(pack: Path) -> dict[str, tuple[Sequence[Mapping[str, Any]], float]]:
    """Calls and reward of the reference solution, by instruction."""
    package = next(path.parent for path in pack.glob("*/tasks.jsonl"))
    told = {
        task["id"]: task["instruction"] for task in map(json.loads, (package / "tasks.jsonl").read_text().splitlines())
    }
    lines = [json.loads(line) for line in (pack / "panel.jsonl").read_text().splitlines()]
    return {told[line["task"]]: (line["calls"], line["reward"]) for line in lines if line["label"] == "reference"}


def said(body: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the model says next."""
    place = sum(message["role"] == "assistant" for message in body["messages"])
    if place >= len(calls):
        return {"role": "assistant", "content": "Done."}
    function = {"name": calls[place]["tool"], "arguments": json.dumps(calls[place]["arguments"])}
    call = {"id": f"call_{place}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answer(body: Mapping[str, Any], message: dict[str, Any]) -> tuple[str, str]:
    """Content type and text of the endpoint's answer, as a stream where that was asked for."""
    about = {"id": "x", "created": 0, "model": body["model"]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    ending = "tool_calls" if "tool_calls" in message else "stop"
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": ending}
        return "application/json", json.dumps(
            about | {"object": "chat.completion", "choices": [choice], "usage": usage}
        )
    delta = {**message, "tool_calls": [{"index": 0, **call} for call in message.get("tool_calls", [])]}
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": ending}]},
        {"choices": [], "usage": usage},
    ]
    lines = [json.dumps(about | {"object": "chat.completion.chunk"} | chunk) for chunk in chunks]
    return "text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])


@contextmanager
def model_of(pack: Path) -> Iterator[str]:
    """Address of an endpoint whose model solves the tasks that it is told."""
    known = references(pack)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if not self.path.endswith("/chat/completions"):
                self.send_error(404)
                return
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = json.dumps(body["messages"], ensure_ascii=False)
            (calls,) = (
                calls for told, (calls, _) in known.items() if json.dumps(told, ensure_ascii=False)[1:-1] in text
            )
            kind, content = answer(body, said(body, calls))
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content.encode())))
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def rewards_of_verifiers(pack: Path) -> dict[str, float]:
    (traces,) = pack.glob("outputs/*/traces.jsonl")
    episodes = [json.loads(line) for line in traces.read_text().splitlines()]
    return {
        trace["task"]["data"]["name"]: trace["rewards"]["reward"]["score"]
        for episode in episodes for trace in episode["traces"]
    }  # fmt: skip


def rewards_of_inspect(pack: Path) -> dict[str, float]:
    logs = [json.loads(log.read_text()) for log in pack.glob("logs/*.json")]
    return {sample["id"]: sample["scores"]["end_state"]["value"] for log in logs for sample in log["samples"]}


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(("target", "rewards"), [("verifiers", rewards_of_verifiers), ("inspect", rewards_of_inspect)])
def test_the_command_that_plays_a_model_gives_the_reference_its_rewards(
    target: str, rewards: Any, tmp_path: Path
) -> None:
    pack = readmes.world_pack(target, Cache(tmp_path / "store"), tmp_path)
    blocks = readmes.blocks_of(pack / "README.md")
    expected = {
        line["task"]: line["reward"]
        for line in map(json.loads, (pack / "panel.jsonl").read_text().splitlines()) if line["label"] == "reference"
    }  # fmt: skip
    with readmes.stranger(target, pack, tmp_path, tmp_path / "cache") as reader, model_of(pack) as address:
        reader.variables |= {
            "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"http://{address}/v1", "INSPECT_LOG_FORMAT": "json",
            # The model here speaks chat completions only.
            "INSPECT_EVAL_MODEL_ARGS": "responses_api=false",
        }  # fmt: skip
        reader.run(blocks[0]._replace(text="pip install .\n"), tmp_path / "install.log")
        (block,) = (block for block in blocks if block.lack == "a model")
        filled = block.text.replace("HOST:PORT", address).replace("MODEL", "scripted")
        printed = reader.run(block._replace(text=filled), tmp_path / "model.log")
    assert rewards(pack) == expected, printed
    assert set(expected.values()) == {1.0}
