"""One request to an endpoint, by the `openai` library, without retries; what failed, sorted by what to do about it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from envsynth.errors import ConfigError, ModelEndpointError, boundary
from envsynth.llm.pacing import Clock, retry_after
from envsynth.llm.settings import RoleSettings

if TYPE_CHECKING:
    import openai

__all__ = ["Answered", "AttemptFailed", "Transport", "key_of"]

Kind = Literal["limited", "server", "connection", "garbled", "rejected", "closed"]
_GATEWAY = frozenset({502, 504, 524})
"""Answers of a gateway whose upstream may have done, and billed, the work."""
_CLOSED = frozenset({401, 402, 403, 404})
_AGAIN = frozenset({408, 409, 425})
_UNSENT = frozenset({"ConnectTimeout", "ConnectError", "PoolTimeout", "ProxyError", "UnsupportedProtocol"})
"""Failures of the library's transport before anything was sent."""


class Answered(NamedTuple):
    """A response with status 200."""

    body: bytes
    headers: Mapping[str, str]
    """Names in lower case."""


class AttemptFailed(ModelEndpointError):
    """One request that was not answered; never seen outside this package.

    Args:
        kind: `limited`: the endpoint asks for patience; `server`: it failed; `connection`: it was not reached, or hung
            up; `garbled`: it sent something else than an answer; `rejected`: it does not take this request; `closed`:
            it takes none of ours (key, model, address, credit).
        what: in the same words for the same failure.
        detail: the endpoint's own words.
        billed: whether it may be billed all the same.
        wait: seconds that the endpoint asks to wait, where it does.
        headers: of the response, where there was one.
    """

    def __init__(
        self,
        kind: Kind,
        what: str,
        detail: str = "",
        *,
        billed: bool = False,
        wait: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what, cause=" ".join(detail.split())[:300])
        self.kind: Kind = kind
        self.billed = billed
        self.wait = wait
        self.headers = headers or {}


class Transport:
    """Requests to one endpoint; connections are kept, and made anew in a forked process."""

    def __init__(self, settings: RoleSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None
        self._pid = 0
        self._key = key_of(settings)
        self._most_bytes = (1 << 20) + 64 * settings.sampling.max_tokens

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._lock:
            if self._client is not None and self._pid == os.getpid():
                self._client.close()
            self._client = None

    def send(self, payload: Mapping[str, Any]) -> Answered:
        """Send one request and read its answer whole.

        Raises:
            AttemptFailed: there was no answer with status 200 within the timeout.
        """
        client = self._opened()
        end = self._clock.now() + self._settings.timeout
        with self._sorted(), client.chat.completions.with_streaming_response.create(**cast(Any, payload)) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            parts: list[bytes] = []
            size = 0
            # A server may trickle blanks for ever, and each would start the library's own timeout anew.
            for part in response.iter_bytes():
                size += len(part)
                parts.append(part)
                if self._clock.now() > end:
                    raise AttemptFailed("connection", self._late(), billed=True, headers=headers)
                if size > self._most_bytes:
                    raise AttemptFailed("garbled", "its answer has no end", billed=True, headers=headers)
            return Answered(b"".join(parts), headers)

    def _opened(self) -> openai.OpenAI:
        import openai

        with self._lock:
            if self._client is None or self._pid != os.getpid():
                timeout = openai.Timeout(self._settings.timeout, connect=min(15.0, self._settings.timeout))
                self._client = openai.OpenAI(
                    api_key=self._key or "none",  # the library wants one
                    base_url=self._settings.base_url,
                    timeout=timeout,
                    max_retries=0,
                    http_client=openai.DefaultHttpxClient(
                        timeout=timeout,
                        trust_env=not self._settings.on_loopback,  # a proxy has no way to this machine's loopback
                    ),
                )
                self._pid = os.getpid()
            return self._client

    @contextmanager
    def _sorted(self) -> Iterator[None]:
        """Sort what the library raises; what it lets through while a body is read counts as a broken connection."""
        import openai

        try:
            with boundary(_BrokeOff, "the connection broke during the answer"):
                try:
                    yield
                except openai.APIStatusError as exc:
                    raise self._by_status(exc) from exc
                except openai.APIConnectionError as exc:
                    raise self._unreached(exc) from exc
        except _BrokeOff as error:
            what = self._late() if "Timeout" in error.cause else error.what
            raise AttemptFailed("connection", what, error.cause, billed=True) from error

    def _unreached(self, exc: openai.APIConnectionError) -> AttemptFailed:
        reason = exc.__cause__
        name = type(reason).__name__
        detail = f"{name}: {reason}" if reason is not None else ""
        if name in _UNSENT:
            return AttemptFailed("connection", "it cannot be reached", detail)
        what = self._late() if "Timeout" in name else "the connection broke before the answer"
        return AttemptFailed("connection", what, detail, billed=True)

    def _by_status(self, exc: openai.APIStatusError) -> AttemptFailed:
        status = exc.status_code
        headers = {name.lower(): value for name, value in exc.response.headers.items()}
        body = exc.body if isinstance(exc.body, dict) else {}
        # Some servers repeat the key that they were sent, and what is said here is shown and kept.
        detail = str(body.get("message") or exc.body or "")
        detail = detail.replace(self._key, "***") if self._key else detail
        wait = retry_after(headers, self._clock.today())
        what = f"HTTP {status}"
        if status == 429:
            if exc.code == "insufficient_quota":
                return AttemptFailed("closed", f"{what}, the account has no credit left", detail)
            return AttemptFailed("limited", f"{what}, too many requests", detail, wait=wait, headers=headers)
        if status >= 500 or status in _AGAIN:
            billed = status in _GATEWAY
            return AttemptFailed("server", what, detail, billed=billed, wait=wait, headers=headers)
        return AttemptFailed("closed" if status in _CLOSED else "rejected", what, detail, headers=headers)

    def _late(self) -> str:
        return f"no answer in {self._settings.timeout:g} s"


class _BrokeOff(ModelEndpointError):
    """What the library lets through while a body is read."""


def key_of(settings: RoleSettings) -> str:
    """The key to send; empty where there is none.

    Raises:
        ConfigError: the variable that is to hold it is not set, or holds what cannot be sent.
    """
    if not settings.api_key_env:
        return ""
    key = os.environ.get(settings.api_key_env, "").strip()
    if not key and not settings.on_loopback:
        raise ConfigError(
            f"${settings.api_key_env} is not set", where=settings.base_url,
            cause=f"the endpoint of {settings.model} wants a key",
            next_step=f"export {settings.api_key_env}=..., or name another variable as api_key_env in [llm]",
        )  # fmt: skip
    if not (key.isascii() and key.isprintable()):
        # The transport would repeat it, whole, in the error that it raises.
        raise ConfigError(
            f"${settings.api_key_env} holds no key", where=settings.base_url,
            cause="it has line breaks or other characters that no header can carry",
            next_step=f"export {settings.api_key_env}=..., with the key alone in one line",
        )  # fmt: skip
    return key
