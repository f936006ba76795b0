"""The solver's endpoint: the only place that a harness's calls go to, each paid from the ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from envsynth.cache import Cache
from envsynth.errors import BudgetSpent, ModelEndpointError, boundary
from envsynth.llm._dialect import Dialect
from envsynth.llm._transport import key_of
from envsynth.llm._wire import parse_reply
from envsynth.llm.ledger import PICO, Ask, Ledger
from envsynth.llm.messages import Usage
from envsynth.llm.settings import RoleSettings
from envsynth.llm.slots import Slots
from envsynth.models import digest_of
from envsynth.proxy.asking import Asked, Refused
from envsynth.proxy.record import Ending, plain
from envsynth.proxy.streams import Assembly, events

if TYPE_CHECKING:
    import openai

__all__ = ["Came", "Sink", "Upstream"]

_TEMPLATE_TOKENS = 512
"""More than a chat template adds of its own."""
_BYTES_A_TOKEN = 4096
"""More than an event of a stream has for each token."""
_GATEWAY = frozenset({502, 504, 524})
"""Answers of a gateway whose upstream may have done, and billed, the work."""
_ENDPOINT = frozenset({401, 402, 403, 404, 408, 409, 425, 429})
"""Statuses that say nothing of the request."""
_UNSENT = frozenset({"ConnectTimeout", "ConnectError", "PoolTimeout", "ProxyError", "UnsupportedProtocol"})
_PASSED = (
    "content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "openai-processing-ms",
)  # fmt: skip
_LIMITS = "x-ratelimit-"


class Sink(Protocol):
    """Where an answer goes. It swallows what goes wrong on the harness's side: the answer is paid for all the same."""

    def begin(self, status: int, headers: Mapping[str, str], length: int | None) -> None:
        """Status and headers; `length` of the body in bytes, None where it comes in pieces."""

    def write(self, part: bytes) -> None:
        """A part of the body."""

    def closing(self) -> None:
        """What is written next may be all that the harness waits for: it may go on before the body has ended."""

    def end(self) -> None:
        """The body is whole."""

    def cut(self) -> None:
        """The rest never comes: the harness is to see a connection that broke."""


class Came(NamedTuple):
    """What came of a call."""

    status: int
    response: Any
    ending: Ending
    note: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None


class _Broke(ModelEndpointError):
    """What the transport raised."""


class Upstream:
    """Forwards calls to one endpoint; safe to share between threads.

    Args:
        settings: the solver's.
        cache: where what is known of the endpoint is kept, and its places.
        ledger: what pays.

    Raises:
        ConfigError: the key is not set, or there is a spend limit and no prices.
    """

    def __init__(self, settings: RoleSettings, cache: Cache, ledger: Ledger) -> None:
        import openai

        settings.demand_prices("solver", ledger.budget_usd)
        self.settings = settings
        self.limit_name: str = Dialect(cache, settings.base_url, settings.model).known.limit
        self.spent: BudgetSpent | None = None
        """The last time the spend limit left no room."""
        self._ledger = ledger
        self._key = key_of(settings)
        self._slots = Slots(cache.folder("llm-slots", digest_of(settings.base_url)[:16]), settings.concurrency)
        timeout = openai.Timeout(settings.timeout, connect=min(15.0, settings.timeout))
        self._client: openai.DefaultHttpxClient = openai.DefaultHttpxClient(
            timeout=timeout, trust_env=not settings.on_loopback, follow_redirects=False
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def masked(self, content: bytes) -> bytes:
        """Without the key, which some servers repeat."""
        return content.replace(self._key.encode(), b"***") if self._key else content

    def exchange(self, asked: Asked, sink: Sink) -> Came:
        """Forward a call, and its answer as it comes."""
        with self._slots.hold():
            try:
                number = self._ledger.reserve(self._ask(asked))
            except BudgetSpent as error:
                self.spent = error
                return self.turned_away(Refused(402, "budget_spent", f"{error.what} ({error.cause})"), sink, "budget")
            try:
                came, billed = self._sent(asked, sink)
            except BaseException as exc:
                self._ledger.doubt(number, type(exc).__name__)
                raise
            return self._settled(number, came, billed)

    def turned_away(self, refused: Refused, sink: Sink, ending: Ending = "refused") -> Came:
        """Answer a call that is not forwarded."""
        body = refused.body()
        sink.begin(refused.status, {"content-type": "application/json"}, len(body))
        sink.write(body)
        sink.end()
        return Came(refused.status, plain(body), ending, refused.message)

    def _ask(self, asked: Asked) -> Ask:
        settings, content = self.settings, asked.content
        prices = settings.prices
        bound = None if prices is None else prices.bound(len(content) + _TEMPLATE_TOKENS, asked.most_tokens)
        return Ask("solver", settings.model, settings.base_url, digest_of(["proxy", asked.body]), bound)

    def _settled(self, number: int, came: Came, billed: bool) -> Came:
        """Enter in the ledger what a call cost."""
        if came.usage is None:
            why = came.note or "the endpoint does not tell the usage"
            close = self._ledger.doubt if billed else self._ledger.release
            close(number, why)
            return came
        usage, prices = came.usage, self.settings.prices
        cost = None
        if prices is not None:
            cost = prices.cost(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        self._ledger.settle(number, usage, cost)
        return came._replace(cost_usd=None if cost is None else cost / PICO)

    def _sent(self, asked: Asked, sink: Sink) -> tuple[Came, bool]:
        """What came, and whether it may be billed."""
        begun: list[int] = []
        try:
            with boundary(_Broke, "the connection to the endpoint broke"):
                return self._streamed(asked, sink, begun)
        except _Broke as error:
            name = error.cause.partition(":")[0]
            late = "Timeout" in name
            note = f"no answer in {self.settings.timeout:g} s" if late else f"{error.what} ({error.cause})"
            if begun:
                sink.cut()
                return Came(begun[0], None, "failed", note), True
            refused = Refused(504 if late else 502, "endpoint_failed", note)
            return self.turned_away(refused, sink, "failed"), name not in _UNSENT

    def _streamed(self, asked: Asked, sink: Sink, begun: list[int]) -> tuple[Came, bool]:
        end = time.monotonic() + self.settings.timeout
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        headers |= {"authorization": f"Bearer {self._key}"} if self._key else {}
        url = f"{self.settings.base_url}/chat/completions"
        with self._client.stream("POST", url, content=asked.content, headers=headers) as response:
            status = response.status_code
            found = {name.lower(): value for name, value in response.headers.items()}
            passed = {name: value for name, value in found.items() if name in _PASSED or name.startswith(_LIMITS)}
            most = (1 << 20) + _BYTES_A_TOKEN * asked.most_tokens
            parts = _in_time(response.iter_bytes(), end, most)
            if status == 200 and "text/event-stream" in found.get("content-type", ""):
                begun.append(status)
                sink.begin(status, passed, None)
                return self._passed_on(asked, parts, sink), True
            body = self.masked(b"".join(parts))
            sink.begin(status, passed, len(body))
            sink.write(body)
            sink.end()
            if status != 200:
                fails = status >= 500 or status in _ENDPOINT or status < 400
                ending: Ending = "failed" if fails else "rejected"
                return Came(status, plain(body), ending, f"HTTP {status}"), status in _GATEWAY
            return _read(body), True

    def _passed_on(self, asked: Asked, parts: Iterator[bytes], sink: Sink) -> Came:
        """The events of a stream, one by one."""
        assembly = Assembly()
        for event in events(parts):
            event = self.masked(event)  # noqa: PLW2901
            hides = assembly.take(event) and not asked.told_usage
            if assembly.ended:
                sink.closing()
            if not hides:
                sink.write(event)
        if not (assembly.whole or assembly.ended):
            sink.cut()
            cut = plain(json.dumps(assembly.completion()).encode())
            return Came(200, cut, "failed", "the stream ended too early")
        sink.end()
        return _read(json.dumps(assembly.completion()).encode())


def _read(body: bytes) -> Came:
    """What an answer with status 200 says."""
    shown = plain(body)
    try:
        reply = parse_reply(body)
    except ValueError as exc:
        return Came(200, shown, "failed", f"what the endpoint sends is no chat completion: {exc}")
    if not isinstance(shown, dict):
        return Came(200, shown, "failed", "what the endpoint sends cannot be written down: it is nested too deep")
    return Came(200, shown, "answered", "", reply.usage)


def _in_time(parts: Iterator[bytes], end: float, most: int) -> Iterator[bytes]:
    """Parts of a body that comes in time and has an end: a server may trickle for ever.

    Raises:
        TimeoutError: it takes too long.
        ValueError: it is too long.
    """
    size = 0
    for part in parts:
        size += len(part)
        if size > most:
            raise ValueError("its answer has no end")
        yield part
        if time.monotonic() > end:
            raise TimeoutError("it trickles")
