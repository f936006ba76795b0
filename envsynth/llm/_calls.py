"""A call from the first attempt to the last: paid from the ledger, paced by the endpoint, given up in the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from envsynth.cache import Cache
from envsynth.errors import EndpointDown, ModelEndpointError, ModelRateLimited, ModelRequestRejected
from envsynth.llm._transport import Answered, AttemptFailed, Transport
from envsynth.llm._wire import parse_reply
from envsynth.llm.ledger import PICO, Ask, Ledger
from envsynth.llm.messages import Reply
from envsynth.llm.pacing import Clock, Health, Pace, backoff
from envsynth.llm.settings import Role, RoleSettings
from envsynth.llm.slots import Slots
from envsynth.models.base import digest_of
from envsynth.underway import UNDERWAY

__all__ = ["Calls"]

_TEMPLATE_TOKENS = 512
"""More than a chat template adds of its own: marks of turns, a default system turn, how tools are to be called."""


class Calls:
    """Makes the calls of one role.

    Args:
        role: who asks.
        settings: the model and its endpoint.
        cache: whose folder has the endpoint's slots.
        ledger: what pays.
        clock: time and chance.
        offline: whether calls to an endpoint on another machine are refused.
    """

    def __init__(
        self, role: Role, settings: RoleSettings, cache: Cache, ledger: Ledger, clock: Clock, *, offline: bool = False
    ) -> None:
        self._role = role
        self._settings = settings
        self._ledger = ledger
        self._clock = clock
        self._refused = offline and not settings.on_loopback
        self._transport = Transport(settings, clock)
        self._pace = Pace(clock)
        self._health = Health(f"{settings.base_url} ({settings.model}, llm.{role})", settings.failures)
        name = digest_of(settings.base_url)[:16]
        self._slots = Slots(cache.folder("llm-slots", name), settings.concurrency)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def make(
        self,
        payload: Mapping[str, Any],
        request: str,
        probe: Collection[str] = (),
        keep: Callable[[Reply], object] = lambda _: None,
    ) -> Reply:
        """The answer to a payload, tried again while that may help.

        Args:
            payload: the request's body.
            request: digest of what is asked, for the ledger.
            probe: kinds of failures that the caller wants to see; they are tried once more, not to the end.
            keep: takes the answer before it is settled: whoever is killed in between has it, and an uncertain call,
                and not a settled call whose answer must be paid again.

        Raises:
            AttemptFailed: of a kind in `probe`.
            ModelEndpointError: there was no answer; `EndpointDown` where it must not be asked.
            BudgetSpent: the spend limit leaves no room.
        """
        attempt = 0
        if self._refused:
            raise self._offline()
        while True:
            self._health.check()
            with self._slots.hold():
                with UNDERWAY.idle():
                    self._pace.wait(self._settings.patience)
                try:
                    reply = self._attempt(payload, request, keep)
                except AttemptFailed as exc:
                    failure = exc
                else:
                    self._health.succeeded()
                    return reply
            if attempt >= self._most_retries(failure, probe):
                break
            self._wait(failure, attempt)
            attempt += 1
        if failure.kind in probe:
            raise failure
        raise self.given_up(failure)

    def _offline(self) -> EndpointDown:
        return EndpointDown(
            "a model would be asked that is not on this machine", where=self._settings.base_url,
            cause=f"--offline is given; llm.{self._role} is {self._settings.model}",
            next_step="leave --offline out, or name a model on 127.0.0.1; what it answered before is in the cache",
        )  # fmt: skip

    def _attempt(self, payload: Mapping[str, Any], request: str, keep: Callable[[Reply], object]) -> Reply:
        """One request, from reservation to settlement."""
        bound = self._bound(payload)
        ask = Ask(self._role, self._settings.model, self._settings.base_url, request, bound)
        number = self._ledger.reserve(ask)
        start = self._clock.now()
        try:
            answered = self._transport.send(payload)
            self._pace.heard(answered.headers)
            reply = self._read(answered)
        except AttemptFailed as failure:
            self._pace.heard(failure.headers)
            close = self._ledger.doubt if failure.billed else self._ledger.release
            close(number, failure.what)
            raise
        except BaseException as exc:
            self._ledger.doubt(number, type(exc).__name__)
            raise
        usage, prices = reply.usage, self._settings.prices
        cost = None
        if usage is not None and prices is not None:
            cost = prices.cost(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        seconds = round(self._clock.now() - start, 3)
        reply = reply.model_copy(update={"seconds": seconds, "cost_usd": None if cost is None else cost / PICO})
        try:
            keep(reply)
        finally:
            if usage is None:
                self._ledger.doubt(number, "the endpoint does not tell the usage")
            else:
                self._ledger.settle(number, usage, cost)
        return reply

    def _read(self, answered: Answered) -> Reply:
        try:
            return parse_reply(answered.body)
        except ValueError as exc:
            what = "what it sends is no chat completion"
            raise AttemptFailed("garbled", what, str(exc), billed=True, headers=answered.headers) from exc

    def _bound(self, payload: Mapping[str, Any]) -> int | None:
        """Picodollars that a request cannot exceed: no token is shorter than a byte."""
        prices = self._settings.prices
        if prices is None:
            return None
        size = len(json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace"))
        return prices.bound(size + _TEMPLATE_TOKENS, self._settings.sampling.max_tokens)

    def _most_retries(self, failure: AttemptFailed, probe: Collection[str]) -> int:
        """How often a call is tried again after such a failure."""
        if failure.kind in ("rejected", "closed"):
            return 0
        few = 1 if failure.kind in probe else 2 if failure.billed else self._settings.retries
        return min(few, self._settings.retries)

    def _wait(self, failure: AttemptFailed, attempt: int) -> None:
        """Wait as the endpoint asks, all threads with this one; else longer each time.

        A wait is no call: a process that is to end leaves here.

        Raises:
            ModelRateLimited: it asks for more patience than there is.
        """
        if failure.wait is None:
            with UNDERWAY.idle():
                self._clock.sleep(backoff(attempt, self._clock.chance()))
        elif failure.wait > self._settings.patience:
            raise ModelRateLimited(
                f"the endpoint asks to wait {failure.wait:.0f} s", where=self._settings.base_url,
                cause=failure.cause or failure.what,
                next_step="run the same command again later, or raise patience in [llm]: paid answers are kept",
            )  # fmt: skip
        else:
            self._pace.pause(failure.wait)

    def given_up(self, failure: AttemptFailed) -> ModelEndpointError:
        """The typed error of a call that failed to the end.

        Raises:
            EndpointDown: where no other call would fare better.
        """
        if failure.kind == "closed":
            self._health.give_up(failure.what, failure.cause or _CLOSED_CAUSE)
        self._health.failed(f"{failure.what}, {failure.cause}" if failure.kind == "rejected" else failure.what)
        kind = _ERRORS.get(failure.kind, ModelEndpointError)
        step = "" if kind is ModelRequestRejected else "run the same command again: finished work is kept"
        return kind(
            f"the model endpoint gave no answer: {failure.what}", where=self._settings.base_url,
            cause=failure.cause, next_step=step,
        )  # fmt: skip


_ERRORS: Mapping[str, Callable[..., ModelEndpointError]] = {
    "limited": ModelRateLimited,
    "rejected": ModelRequestRejected,
}
_CLOSED_CAUSE = "the key, the model's name or the address is wrong"
