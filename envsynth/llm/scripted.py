"""A model that says what a script says: a real HTTP server on loopback that speaks the chat-completions protocol.

    with ScriptedModel([text("hello"), rate_limited(2), answer_json({"price": 3})]) as model:
        client = Client("author", model.settings(), cache, ledger)

A script is a list, used up one answer a request, or a function from the request to its answer. Whatever can happen to a
client on the way to a model is an answer too: see `envsynth.llm.scripted_answers`.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from pydantic import JsonValue

from envsynth.llm.scripted_answers import Answer, failure
from envsynth.llm.settings import Prices, RoleSettings, Sampling

__all__ = ["Received", "Script", "ScriptedModel"]

FORMATS = ("json_schema", "json_object")


class Received(NamedTuple):
    """One request as it came."""

    number: int
    """0, 1, ... in the order of arrival."""
    body: dict[str, Any]
    """The JSON body."""
    headers: dict[str, str]
    """Names in lower case."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation."""
        messages: list[dict[str, Any]] = self.body.get("messages", [])
        return messages

    @property
    def prompt(self) -> str:
        """The text of the last message."""
        return str(self.messages[-1].get("content") or "") if self.messages else ""

    @property
    def format(self) -> str:
        """How a structured answer is asked for: `json_schema`, `json_object`, or empty."""
        return str((self.body.get("response_format") or {}).get("type", ""))


Script = Sequence[Answer] | Callable[[Received], Answer]


class ScriptedModel:
    """The server; runs from entering the `with` to leaving it.

    Args:
        script: a list of answers, or a function, called from several threads at once. A list that is used up answers
            HTTP 400 `script_exhausted`.
        name: of the model; `/v1/models` lists it.
        formats: values of `response_format.type` that it understands; others get HTTP `refuses`, and use up nothing.
        refuses: that status.
        key: where not empty, requests without this key get HTTP 401.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        formats: Sequence[str] = FORMATS,
        refuses: int = 400,
        key: str = "",
    ) -> None:
        self.name = name
        self.requests: list[Received] = []
        """Every request to `/v1/chat/completions`, in the order of arrival."""
        self._script = script
        self._formats = tuple(formats)
        self._refuses = refuses
        self._key = key
        self._used = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="scripted-model", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._closing.set()  # answers that hang end here
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        """Where it is reached, `/v1` included."""
        assert self._server is not None, "it is not running: use it in a `with`"
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def settings(
        self,
        *,
        max_tokens: int = 1000,
        prices: Prices | None = Prices(input=1.0, cached_input=0.5, output=2.0),  # noqa: B008  frozen
        timeout: float = 10.0,
        **more: Any,
    ) -> RoleSettings:
        """A role's settings that lead here."""
        sampling = more.pop("sampling", Sampling(max_tokens=max_tokens))
        return RoleSettings(
            model=self.name, base_url=self.base_url, api_key_env=more.pop("api_key_env", ""), sampling=sampling,
            prices=prices, timeout=timeout, **more,
        )  # fmt: skip

    def reply(self, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        """The answer to a request, which is recorded."""
        with self._lock:
            received = Received(len(self.requests), body, headers)
            self.requests.append(received)
            if self._key and headers.get("authorization") != f"Bearer {self._key}":
                return failure(401, "the key is wrong")
            if received.format and received.format not in self._formats:
                return failure(self._refuses, f"response_format {received.format} is not supported")
            if not callable(self._script):
                if self._used >= len(self._script):
                    return failure(400, "the script is exhausted", code="script_exhausted")
                self._used += 1
                return self._script[self._used - 1]
        return self._script(received)

    def wait_for_the_end(self, seconds: float) -> None:
        """Hang so long, or until the server closes."""
        self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Keep the connection in mind: clients keep theirs open, and their threads would outlive the server."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Break every connection that is still open."""
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing where a client hung up: tests have it do so."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        """List the models."""
        if self.path.rstrip("/") != "/v1/models":
            self._send(failure(404, f"there is no {self.path}"))
            return
        model: dict[str, JsonValue] = {
            "id": self.server.model.name,
            "object": "model",
            "created": 0,
            "owned_by": "script",
        }
        self._send(Answer(body=json.dumps({"object": "list", "data": [model]}).encode()))

    def do_POST(self) -> None:
        """Answer from the script."""
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._send(failure(404, f"there is no {self.path}"))
            return
        try:
            body = json.loads(content)
        except ValueError:
            self._send(failure(400, "the body is not JSON"))
            return
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or "model" not in body:
            self._send(failure(400, "model and messages are wanted"))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.model.reply(body, headers)
        if answer.delay:
            self.server.model.wait_for_the_end(answer.delay)
        self._send(answer, asked=body)

    def _send(self, answer: Answer, asked: dict[str, Any] | None = None) -> None:
        streams = bool(asked and asked.get("stream")) and answer.status == 200
        body = (answer.streamed if streams else answer.rendered)(asked or {}, self.server.model.name)
        self.send_response(answer.status)
        self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        if answer.cut_at is None:
            self.wfile.write(body)
            return
        self.wfile.write(body[: answer.cut_at])
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
