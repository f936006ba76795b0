"""What an endpoint understands, found out once and remembered: the form of structured answers, the name of a limit."""

from __future__ import annotations

import threading
from typing import Any, Literal, get_args

from pydantic import ValidationError

from envsynth.cache import Cache
from envsynth.llm._transport import AttemptFailed
from envsynth.models.base import Model, digest_of

__all__ = ["LADDER", "Dialect", "Form", "Known", "response_format"]

Form = Literal["json_schema", "json_object", "plain"]
"""How a structured answer is asked for, the surest first."""
LADDER: tuple[Form, ...] = get_args(Form)
_KIND = "llm-dialects"
_BOUNDS = frozenset({"minLength", "maxLength", "pattern", "minItems", "maxItems"})
_NAMED = frozenset({"properties", "$defs"})
"""Keywords whose keys are names."""


class Known(Model):
    """What is known of one endpoint and model."""

    form: Form = "json_schema"
    """The surest form that is not known to be refused."""
    proven: bool = False
    """Whether an answer came in that form."""
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The parameter that limits an answer's tokens."""


class Dialect:
    """Remembers in the cache, for all processes, what one endpoint and model understand."""

    def __init__(self, cache: Cache, base_url: str, model: str) -> None:
        self._cache = cache
        self._key = digest_of([base_url, model])
        self._lock = threading.Lock()
        self._known = self._recalled()

    @property
    def known(self) -> Known:
        """What is known so far."""
        with self._lock:
            return self._known

    def proved(self, form: Form) -> None:
        """An answer came in this form; a surer one that once worked stays the first to be tried."""
        if not self.known.proven:
            self._learn(form=form, proven=True)

    def renames_limit(self, failure: AttemptFailed) -> bool:
        """Whether a request was rejected for the name of its token limit; the other name is used from then on."""
        known = self.known
        if failure.kind != "rejected" or known.limit not in failure.cause:
            return False
        if known.limit == "max_completion_tokens" or "max_completion_tokens" not in failure.cause:
            return False
        self._learn(limit="max_completion_tokens")
        return True

    def _learn(self, **fields: Any) -> None:
        with self._lock:
            known = self._known.model_copy(update=fields)
            if known != self._known:
                self._known = known
                self._cache.keep(_KIND, self._key, known.to_json())

    def _recalled(self) -> Known:
        text = self._cache.recall(_KIND, self._key)
        try:
            return Known() if text is None else Known.from_json(text)
        except ValidationError:
            return Known()


def response_format(form: Form, name: str, schema: dict[str, Any]) -> dict[str, Any] | None:
    """The parameter `response_format` of a form; None: it has none."""
    if form == "json_schema":
        # Not `strict`: that takes a subset of JSON Schema only, and what comes is validated here in any case.
        return {"type": "json_schema", "json_schema": {"name": name[:64], "schema": schema}}
    if form == "json_object":
        return {"type": "json_object", "schema": _unbounded(schema)}
    return None


def _unbounded(schema: Any) -> Any:
    """A schema without bounds of sizes, which the prompt has and which are checked here in any case.

    Servers that take this form make a grammar of the schema, where a bound of n characters becomes n rules; there are
    some that such a grammar ends.
    """
    if isinstance(schema, list):
        return [_unbounded(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may be called as a keyword is: names of properties are no keywords.
    return {
        key: {name: _unbounded(part) for name, part in value.items()} if key in _NAMED else _unbounded(value)
        for key, value in schema.items()
        if key not in _BOUNDS
    }
