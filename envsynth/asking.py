"""What plug-ins ask of models: which roles, what that makes of the identity of their work, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from envsynth.errors import (
    ConfigError,
    ModelBadToolCall,
    ModelEmpty,
    ModelMalformed,
    ModelOutputError,
    ModelOverlong,
    ModelRefused,
    ModelTruncated,
)
from envsynth.llm import ROLES, LlmSettings, Role
from envsynth.models import Lead, Source
from envsynth.protocols import Generator, Validator

__all__ = ["asked_for", "fault_reason", "roles_of", "version_of"]

_FAULTS: Mapping[type[ModelOutputError], str] = MappingProxyType(
    {
        ModelRefused: "model_refused",
        ModelTruncated: "model_truncated",
        ModelEmpty: "model_empty",
        ModelOverlong: "model_overlong",
        ModelMalformed: "model_malformed",
        ModelBadToolCall: "model_bad_tool_call",
    }
)
"""What is wrong with a model's output, for the funnel."""
_IDENTITY_DIGITS = 12


def roles_of(asking: Iterable[Generator | Validator]) -> tuple[Role, ...]:
    """Roles of models that plug-ins say they ask: their class attribute `models`.

    Raises:
        ConfigError: there is no such role.
    """
    named = {role: plugin.name for plugin in asking for role in getattr(plugin, "models", ())}
    return _known(named)


def asked_for(generator: Generator, lead: Lead, source: Source) -> tuple[Role, ...]:
    """Roles of models that a generator asks for one lead: what its method `asks` says, else its `models`.

    Raises:
        ConfigError: there is no such role.
    """
    asks = getattr(generator, "asks", None)
    roles: Sequence[str] = getattr(generator, "models", ()) if asks is None else asks(lead, source)
    return _known(dict.fromkeys(roles, generator.name))


def _known(named: Mapping[str, str]) -> tuple[Role, ...]:
    """Roles in their order, of names and who named them."""
    for role in named.keys() - set(ROLES):
        raise ConfigError(
            f"there is no role {role!r} for a model", where=f"plug-in {named[role]}",
            next_step=f"correct its class attribute models; roles: {', '.join(ROLES)}",
        )  # fmt: skip
    return tuple(role for role in ROLES if role in named)


def version_of(validator: Validator, llm: LlmSettings) -> str:
    """The version under which a validator judges: its own and, where it asks a model, what decides the answers."""
    models = llm.identity(roles_of([validator]))
    return f"{validator.version}+{models[:_IDENTITY_DIGITS]}" if models else validator.version


def fault_reason(error: ModelOutputError) -> str:
    """What is wrong with a model's output, in a word for the funnel."""
    return next((rule for kind, rule in _FAULTS.items() if isinstance(error, kind)), "model_output")
