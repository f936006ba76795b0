"""The endpoint that a harness is pointed at: chat completions and the list of models, and nothing else."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from envsynth.errors import EnvsynthError, ModelEndpointError, boundary
from envsynth.proxy.asking import Refused, asked_of
from envsynth.proxy.record import ProxiedCall, Record, plain
from envsynth.proxy.upstream import Came, Upstream

__all__ = ["Proxy"]

_MOST_BYTES = 16 << 20
_MOST_CONNECTIONS = 64
_SHOWN_BYTES = 16 << 10
"""Kept of a body that is not forwarded."""
_IDLE_S = 600.0
_POLL_S = 0.05
_SETTLE_S = 30.0
"""A call waits so long for others that were answered, but are not written down yet."""

Address = tuple[str, int] | Path
"""Host and port, or the path of a UNIX socket."""


class Proxy:
    """Serves harnesses from entering the `with` to leaving it, which waits for calls that are under way.

    Args:
        upstream: where calls go.
        record: where they are written.
        address: where it listens; port 0: any that is free.
        admits: asked before a call is forwarded; raises `Refused` where there are to be no more.
        patience: seconds that leaving waits for calls that are under way.
    """

    def __init__(
        self,
        upstream: Upstream,
        record: Record,
        address: Address,
        *,
        admits: Callable[[], None] = lambda: None,
        patience: float = 60.0,
    ) -> None:
        self.upstream = upstream
        self.record = record
        self._admits = admits
        self._patience = patience
        self._lock = threading.Condition()
        self._underway: dict[int, tuple[ProxiedCall, _Answer]] = {}
        self._closing = False
        self._server = _server(address, self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": _POLL_S}, name="envsynth-proxy", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The port that it listens on; 0 for a UNIX socket."""
        address = self._server.server_address
        return int(address[1]) if isinstance(address, tuple) else 0

    def close(self) -> None:
        """Take no more calls, wait for those under way, and write down what did not end; safe to call twice.

        A second interrupt ends the wait.
        """
        with self._lock:
            if self._closing:
                return
            self._closing = True
        try:
            self._server.shutdown()
            with self._lock:
                self._lock.wait_for(lambda: not self._underway, self._patience)
        finally:
            with self._lock:
                for call, _ in self._underway.values():
                    self.record.keep(call.model_copy(update={"ending": "interrupted", "note": "the proxy was stopped"}))
                self._underway.clear()
            self._server.hang_up()
            self._server.server_close()
            self._thread.join()

    def call(self, content: bytes, sink: _Answer) -> None:
        """One call of a harness, from its body to its line in the record."""
        number, began = self.record.arrived(), time.monotonic()
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        shown = plain(content, _SHOWN_BYTES)
        call = ProxiedCall(number=number, at=at, seconds=0, request=shown, status=0, ending="refused")
        try:
            asked = asked_of(content, self.upstream.settings, self.upstream.limit_name)
            call = call.model_copy(
                update={"request": asked.body, "left_out": asked.left_out, "stream": asked.stream}
            )  # fmt: skip
            self._begin(call, sink)
            with boundary(ModelEndpointError, "the call could not be forwarded"):
                came = self.upstream.exchange(asked, sink)
        except Refused as refused:
            came = self.upstream.turned_away(refused, sink)
        except EnvsynthError as error:
            came = self.upstream.turned_away(Refused(500, "proxy_failed", str(error)), sink, "failed")
        self._end(call, came, time.monotonic() - began, heard=sink.heard)

    def _begin(self, call: ProxiedCall, sink: _Answer) -> None:
        """Let a call pass, once every call that was answered before it is written down: budgets reckon with them.

        Raises:
            Refused: there are to be no more.
        """
        with self._lock:
            self._lock.wait_for(lambda: not any(other.closes for _, other in self._underway.values()), _SETTLE_S)
            if self._closing:
                raise Refused(503, "closing", "the proxy is being stopped")
            if self.record.full:
                raise Refused(403, "record_full", "the record has grown to its limit")
            self._admits()
            self._underway[call.number] = call, sink

    def _end(self, call: ProxiedCall, came: Came, seconds: float, *, heard: bool) -> None:
        update = {**came._asdict(), "seconds": round(seconds, 3), "heard": heard}
        with self._lock:
            begun = self._underway.pop(call.number, None)
            if begun is not None or came.ending == "refused":  # else it was given up, and written down as such
                self.record.keep(call.model_copy(update=update))
            self._lock.notify_all()


class _Answer:
    """An answer on its way to the harness; once the harness is gone, it goes nowhere."""

    def __init__(self, handler: _Handler) -> None:
        self._handler = handler
        self._chunked = False
        self._begun = False
        self.heard = True
        self.closes = False
        """Whether the harness may have all that it waits for."""

    def begin(self, status: int, headers: Mapping[str, str], length: int | None) -> None:
        """Send status and headers; what would be a second answer breaks the connection."""
        if self._begun:
            self.heard = False
            self.cut()
            return
        self._begun = True
        self.closes = length is not None
        self._chunked = length is None
        own = {"transfer-encoding": "chunked"} if length is None else {"content-length": str(length)}

        def send() -> None:
            self._handler.send_response(status)
            for name, value in {**headers, **own}.items():
                self._handler.send_header(name, value)
            self._handler.end_headers()

        self._try(send)

    def write(self, part: bytes) -> None:
        """Send a part of the body."""
        framed = b"%x\r\n%s\r\n" % (len(part), part) if self._chunked else part
        self._try(lambda: self._handler.wfile.write(framed))

    def closing(self) -> None:
        """What is written next may be all that the harness waits for."""
        self.closes = True

    def end(self) -> None:
        """The body is whole."""
        self.closes = True
        if self._chunked:
            self._try(lambda: self._handler.wfile.write(b"0\r\n\r\n"))

    def cut(self) -> None:
        """Have the harness see a connection that broke."""
        self.closes = True
        self._handler.close_connection = True

    def _try(self, send: Callable[[], Any]) -> None:
        if not self.heard:
            return
        try:
            send()
            self._handler.wfile.flush()
        except OSError:
            self.heard = False
            self._handler.close_connection = True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    server: _Tcp | _Unix

    def do_GET(self) -> None:
        """List the one model."""
        proxy = self.server.proxy
        if self.path.partition("?")[0].rstrip("/") != "/v1/models":
            self._turn_away(Refused(404, "not_found", f"there is no {self.path[:100]}"))
            return
        model = {"id": proxy.upstream.settings.model, "object": "model", "created": 0, "owned_by": "envsynth"}
        body = json.dumps({"object": "list", "data": [model]}).encode()
        answer = _Answer(self)
        answer.begin(200, {"content-type": "application/json"}, len(body))
        answer.write(body)

    def do_POST(self) -> None:
        """Forward a chat completion."""
        try:
            content = self._content()
        except Refused as refused:
            self.close_connection = True  # what follows may be the rest of a body
            self._turn_away(refused)
            return
        self.server.proxy.call(content, _Answer(self))

    def _content(self) -> bytes:
        if self.path.partition("?")[0].rstrip("/") != "/v1/chat/completions":
            raise Refused(404, "not_found", f"there is no {self.path[:100]}; only /v1/chat/completions is forwarded")
        # A page in a browser can post to this machine, but not as JSON, and never without saying where it is from.
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" or self.headers.get("origin") is not None:
            raise Refused(415, "bad_request", "a body of type application/json is wanted, from no page in a browser")
        length = self.headers.get("content-length", "")
        if not length.isascii() or not length.isdigit():
            raise Refused(411, "bad_request", "the request does not tell the length of its body")
        if int(length) > _MOST_BYTES:
            raise Refused(413, "bad_request", f"the body is longer than {_MOST_BYTES} bytes")
        content = self.rfile.read(int(length))
        if len(content) < int(length):
            raise Refused(400, "bad_request", "the body is cut")
        return content

    def _turn_away(self, refused: Refused) -> None:
        self.server.proxy.upstream.turned_away(refused, _Answer(self))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the record has every call."""


class _Serving(socketserver.ThreadingMixIn, socketserver.BaseServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    proxy: Proxy

    def __init__(self, address: Any, proxy: Proxy) -> None:
        self._open: set[socket.socket] = set()
        self.proxy = proxy
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self._open) >= _MOST_CONNECTIONS:  # an agent in a sandbox must not exhaust the host's threads
            self.shutdown_request(request)
            return
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Break every connection that is still open: harnesses keep theirs."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing where a harness hung up."""


class _Tcp(_Serving, socketserver.TCPServer):
    allow_reuse_address = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().server_bind()


class _Unix(_Serving, socketserver.UnixStreamServer):
    pass


def _server(address: Address, proxy: Proxy) -> _Tcp | _Unix:
    if not isinstance(address, Path):
        return _Tcp(address, proxy)
    server = _Unix(str(address), proxy)
    address.chmod(0o777)  # inside a sandbox the user is another one; the folder decides who gets here
    return server
