"""The one way to a language model: cached by content, paid from a ledger, patient with endpoints, typed in errors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ValidationError

from envsynth.cache import Cache
from envsynth.errors import ModelMalformed, ModelOutputError
from envsynth.llm._calls import Calls
from envsynth.llm._dialect import LADDER, Dialect, Form
from envsynth.llm._faults import fault
from envsynth.llm._repair import findings, parsed
from envsynth.llm._request import Asked, Shape, key_of, payload_of, repair_text
from envsynth.llm._transport import AttemptFailed
from envsynth.llm.ledger import Ledger
from envsynth.llm.messages import Message, Reply, Tool, Usage, user
from envsynth.llm.pacing import Clock
from envsynth.llm.settings import LlmSettings, Role, RoleSettings
from envsynth.models.base import Model
from envsynth.underway import UNDERWAY

__all__ = ["Client", "Structured", "Tally", "open_client"]

M = TypeVar("M", bound=BaseModel)
_KIND = "llm-replies"
_UNKEPT = "ping"
"""The request of a call whose answer nobody needs again."""
_REAL = Clock()


class Structured(NamedTuple, Generic[M]):
    """A typed answer, and what it took."""

    value: M
    replies: tuple[Reply, ...]
    """The answers that were asked for, repairs included; the last one holds the value."""


class Tally(Model):
    """What one client did so far."""

    calls: int = 0
    """Answers that were paid for."""
    cached: int = 0
    """Answers that came from the cache."""
    usage: Usage = Usage()
    """Tokens of the answers that were paid for, where the endpoint tells."""
    cost_usd: float = 0.0
    """US dollars, where prices are known."""


class Client:
    """One role's model. Safe to share between threads.

    Args:
        role: who asks; part of what replies are cached by.
        settings: the model, its endpoint and limits.
        cache: where replies are kept; a hit is no call and no spend.
        ledger: what pays.
        clock: time and chance.
        offline: whether a call to another machine ends the build; what is in the cache is answered all the same.

    Raises:
        ConfigError: the key is not set, or there is a spend limit and no prices.
    """

    def __init__(
        self,
        role: Role,
        settings: RoleSettings,
        cache: Cache,
        ledger: Ledger,
        clock: Clock = _REAL,
        *,
        offline: bool = False,
    ) -> None:
        settings.demand_prices(role, ledger.budget_usd)
        self.role: Role = role
        self.settings = settings
        self._cache = cache
        self._dialect = Dialect(cache, settings.base_url, settings.model)
        self._calls = Calls(role, settings, cache, ledger, clock, offline=offline)
        self._lock = threading.Lock()
        self._tally = Tally()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._calls.close()

    @property
    def tally(self) -> Tally:
        """What this client did so far."""
        with self._lock:
            return self._tally

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        tool_choice: str = "auto",
        prompt_version: str = "",
        draw: int = 0,
        check: bool = True,
    ) -> Reply:
        """The model's answer to a conversation.

        Args:
            messages: the conversation.
            tools: what the model may call.
            tool_choice: `auto`, `none`, `required`, or the name of a tool that must be called.
            prompt_version: version of the prompt behind the messages; part of the cache's key.
            draw: other answers to the same messages have other numbers.
            check: whether a fault of the answer is raised; without, the reply comes as it is, and `fault` tells.

        Raises:
            ModelOutputError: the answer is no use: refused, truncated, empty, over-long, or with a bad tool call.
            ModelEndpointError: there was no answer; `EndpointDown` where no other call would fare better.
            BudgetSpent: the spend limit leaves no room.
        """
        reply = self._answered(Asked(tuple(messages), tuple(tools), tool_choice, prompt_version, draw))
        error = fault(reply, tools, self.settings) if check else None
        if error is not None:
            raise error
        return reply

    def ping(self) -> Reply:
        """An answer past the cache, whatever it says: address, key, model and credit are good.

        Raises:
            ModelEndpointError: there was no answer.
            BudgetSpent: the spend limit leaves no room.
        """
        return self._sent(Asked((user("Answer with one word."),)), _UNKEPT, None)

    def fault(self, reply: Reply, tools: Sequence[Tool] = ()) -> ModelOutputError | None:
        """The error that `complete` would raise for a reply, or None."""
        return fault(reply, tools, self.settings)

    def structured(
        self,
        messages: Sequence[Message],
        kind: type[M],
        *,
        prompt_version: str = "",
        draw: int = 0,
        repairs: int = 1,
    ) -> M:
        """The model's answer as a value of a type. Arguments and errors as for `structured_reply`."""
        found = self.structured_reply(messages, kind, prompt_version=prompt_version, draw=draw, repairs=repairs)
        return found.value

    def structured_reply(
        self,
        messages: Sequence[Message],
        kind: type[M],
        *,
        prompt_version: str = "",
        draw: int = 0,
        repairs: int = 1,
    ) -> Structured[M]:
        """The model's answer as a value of a type, with the replies that led to it.

        Args:
            messages: the conversation; the schema need not be in it.
            kind: a pydantic model.
            prompt_version: as for `complete`.
            draw: as for `complete`.
            repairs: how often the model is told what does not fit, and asked again.

        Raises:
            ModelMalformed: the answer does not fit after all repairs; `output` has the last one.
            ModelError: as for `complete`.
        """
        shape = Shape(kind.__name__, kind.model_json_schema())
        asked = Asked(tuple(messages), prompt_version=prompt_version, draw=draw, shape=shape)
        replies: list[Reply] = []
        while True:
            reply = self._answered(asked)
            replies.append(reply)
            error = fault(reply, (), self.settings)
            if error is not None:
                raise error
            try:
                return Structured(parsed(reply.text, kind), tuple(replies))
            except ValueError as exc:
                wrong = findings(exc)
            if len(replies) > repairs:
                error = ModelMalformed(
                    f"the answer is no {kind.__name__}", where=self.settings.model, cause="; ".join(wrong)
                )
                error.output = reply.output
                raise error
            asked = asked._replace(messages=(*asked.messages, reply.message, user(repair_text(wrong, shape))))

    def _answered(self, asked: Asked) -> Reply:
        """The reply to a question, from the cache or from the endpoint; the same question is under way once."""
        key = key_of(asked, self.role, self.settings)
        reply = self._recalled(key)
        if reply is None:
            with self._cache.lock(f"{_KIND}-{key}"):
                reply = self._recalled(key)
                if reply is None:
                    with UNDERWAY.call():
                        reply = self._climbed(asked, key)
        self._count(reply)
        return reply

    def _recalled(self, key: str) -> Reply | None:
        text = self._cache.recall(_KIND, key)
        try:
            reply = None if text is None else Reply.from_json(text)
        except ValidationError:
            return None
        return None if reply is None else reply.model_copy(update={"cached": True, "cost_usd": 0.0})

    def _climbed(self, asked: Asked, key: str) -> Reply:
        """The reply, by the surest form that the endpoint understands."""
        if asked.shape is None:
            return self._sent(asked, key, None)
        known = self._dialect.known
        for form in LADDER[LADDER.index(known.form) : -1]:
            # One that rejects a form may dislike this schema alone; one that fails may know no form, until it did.
            probe = ("rejected",) if known.proven and known.form == form else ("rejected", "server")
            try:
                reply = self._sent(asked, key, form, probe)
            except AttemptFailed:
                continue
            self._dialect.proved(form)
            return reply
        reply = self._sent(asked, key, LADDER[-1])
        self._dialect.proved(LADDER[-1])
        return reply

    def _sent(self, asked: Asked, key: str, form: Form | None, probe: tuple[str, ...] = ()) -> Reply:
        """The endpoint's answer to a question in one form.

        Raises:
            AttemptFailed: of a kind in `probe`: it seems not to understand the form.
            ModelError: as for `complete`.
        """

        def keep(reply: Reply) -> None:
            if key != _UNKEPT:
                self._cache.keep(_KIND, key, reply.to_json())

        for _ in range(2):
            payload = payload_of(asked, self.settings, self._dialect.known, form)
            try:
                return self._calls.make(payload, key, {*probe, "rejected"}, keep)
            except AttemptFailed as exc:
                failure = exc
                if not self._dialect.renames_limit(failure):
                    break
        if failure.kind in probe:
            raise failure
        raise self._calls.given_up(failure)

    def _count(self, reply: Reply) -> None:
        with self._lock:
            old = self._tally
            if reply.cached:
                self._tally = old.model_copy(update={"cached": old.cached + 1})
                return
            new = reply.usage or Usage()
            usage = {name: getattr(old.usage, name) + getattr(new, name) for name in Usage.model_fields}
            cost = old.cost_usd + (reply.cost_usd or 0.0)
            self._tally = Tally(calls=old.calls + 1, cached=old.cached, usage=Usage(**usage), cost_usd=cost)


def open_client(role: Role, llm: LlmSettings, cache: Cache, ledger: Ledger, *, offline: bool = False) -> Client | None:
    """The client of a role; None: the role has no model. `offline` as for `Client`.

    Raises:
        ConfigError: its key is not set, or there is a spend limit and no prices.
    """
    settings = llm.role(role)
    return None if settings is None else Client(role, settings, cache, ledger, offline=offline)
