"""Whether the models of a configuration answer."""

from __future__ import annotations

from pathlib import Path

from envsynth.cache import Cache
from envsynth.cli._diagnosis import Diagnosis
from envsynth.config import BuildConfig, load_config
from envsynth.errors import EnvsynthError
from envsynth.llm import ROLES, Client, Ledger, Reply, Role, RoleSettings

_PATIENCE_S = 30.0
_MOST_TOKENS = 16
"""Fewer are refused by some endpoints."""


def endpoints(config: BuildConfig) -> list[Diagnosis]:
    """Ask each configured role's model for a few tokens.

    A list of models would be cheaper, but many endpoints give it to anybody; only an answer shows that key, model and
    credit are good. It is entered in the ledger, as any call.
    """
    roles = {role: settings for role in ROLES if (settings := config.llm.role(role)) is not None}
    asked: dict[tuple[str, str, str], Diagnosis] = {}
    found = []
    for role, settings in roles.items():
        key = (settings.model, settings.base_url, settings.api_key_env)
        if key not in asked:
            asked[key] = _asked(role, settings, config)
        found.append(asked[key]._replace(what=f"model {role}"))
    return found


def _asked(role: Role, settings: RoleSettings, config: BuildConfig) -> Diagnosis:
    sampling = settings.sampling.model_copy(update={"max_tokens": _MOST_TOKENS})
    once = {"retries": 0, "timeout": min(settings.timeout, _PATIENCE_S), "sampling": sampling}
    try:
        ledger = Ledger(config.ledger, config.llm.budget)
        with Client(role, settings.model_copy(update=once), Cache(config.cache), ledger) as client:
            return Diagnosis("ok", role, _told(settings, client.ping()))
    except EnvsynthError as error:
        return Diagnosis("fails", role, str(error))


def _told(settings: RoleSettings, reply: Reply) -> str:
    cost = "" if reply.cost_usd is None else f", for ${reply.cost_usd:.6f}"
    unpriced = "" if settings.prices is not None else "; its prices are not known, so that --budget cannot be kept"
    return f"{settings.model} at {settings.base_url} answers in {reply.seconds:.2f} s{cost}{unpriced}"


def configured(file: Path | None, llm: list[str]) -> BuildConfig | Diagnosis:
    """The configuration that a build would have, or what is wrong with it."""
    try:
        return load_config(file, llm=llm)
    except EnvsynthError as error:
        return Diagnosis("fails", "settings", str(error))
