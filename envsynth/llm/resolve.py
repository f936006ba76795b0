"""The models of a run: `--llm` over the `[llm]` table of `envsynth.toml` over none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from envsynth.errors import ConfigError
from envsynth.llm.settings import ROLES, JudgeSettings, LlmSettings, Role, RoleSettings, SolverSettings
from envsynth.settings_file import DEFAULT_FILE, read_settings

__all__ = ["Override", "llm_settings", "load_llm", "parse_override"]

_OVERRIDE = re.compile(
    rf"(?!(?:{'|'.join(ROLES)})=$)(?:(?P<role>{'|'.join(ROLES)})=)?(?P<model>[^\s]+?)(?:@(?P<url>https?://\S+))?"
)


class Override(NamedTuple):
    """What one `--llm` says."""

    roles: tuple[Role, ...]
    model: str
    base_url: str | None


def parse_override(text: str) -> Override:
    """Read `[ROLE=]MODEL[@BASE_URL]`; without a role, all roles are meant.

    Raises:
        ConfigError: it is not of that form.
    """
    found = _OVERRIDE.fullmatch(text.strip())
    if found is None:
        raise ConfigError(
            f"--llm {text!r} names no model", where="command line", cause="it is not of the form [ROLE=]MODEL[@URL]",
            next_step=f"--llm my-model@http://127.0.0.1:8000/v1, or --llm judge=my-model; roles: {', '.join(ROLES)}",
        )  # fmt: skip
    roles: tuple[Role, ...] = tuple(role for role in ROLES if found["role"] in (None, role))
    return Override(roles, found["model"], found["url"])


def load_llm(
    file: Path | None = None, *, cwd: Path | None = None, overrides: Sequence[str] = (), budget: float | None = None
) -> LlmSettings:
    """The models of a run.

    Args:
        file: TOML, or JSON as a resolved configuration is written; None: `envsynth.toml` in `cwd` where there is one.
        cwd: what `file` is relative to; None: the current folder.
        overrides: each `--llm` of the command line, in order.
        budget: `--budget`, in US dollars.

    Raises:
        ConfigError: the file cannot be read, or a setting is unknown or has a wrong value.
    """
    here = Path.cwd() if cwd is None else cwd.absolute()
    if file is None and (here / DEFAULT_FILE).is_file():
        file = here / DEFAULT_FILE
    table = read_settings(here / file).get("llm") if file is not None else None
    return llm_settings(table, overrides, budget, where=str(here / file) if file is not None else "command line")


def llm_settings(
    table: JsonValue, overrides: Sequence[str] = (), budget: float | None = None, *, where: str = "envsynth.toml"
) -> LlmSettings:
    """The models that an `[llm]` table and a command line name.

    Args:
        table: the table as read; None or an empty text: there is none. A text is one `--llm`.
        overrides: each `--llm`, in order; a later one wins.
        budget: `--budget`.
        where: the file that the table is from.

    Raises:
        ConfigError: a setting is unknown or has a wrong value.
    """
    if isinstance(table, str):
        table, overrides = None, ([table] if table else []) + list(overrides)
    settings = _validated(table or {}, where)
    roles = {role: settings.role(role) for role in ROLES}
    known = [found for found in roles.values() if found is not None]
    for override in map(parse_override, overrides):
        for role in override.roles:
            roles[role] = _overridden(roles[role], override, known)
    document: dict[str, JsonValue] = {role: found.document() for role, found in roles.items() if found is not None}
    document["budget"] = settings.budget if budget is None else budget
    return _validated(document, "command line")


def _overridden(settings: RoleSettings | None, override: Override, known: Sequence[RoleSettings]) -> RoleSettings:
    """A role's settings with another model: sampling and limits stay, prices only where they are of that model."""
    document: dict[str, JsonValue] = {} if settings is None else settings.document()
    document["model"] = override.model
    if override.base_url is not None:
        document["base_url"] = override.base_url
    made = _role_settings(document, RoleSettings if settings is None else type(settings))
    twin = next((each for each in known if (each.model, each.base_url) == (made.model, made.base_url)), None)
    return made.model_copy(update={"prices": twin.prices if twin else None})


def _role_settings(document: Mapping[str, JsonValue], kind: type[RoleSettings]) -> RoleSettings:
    try:
        return kind.model_validate(document)
    except ValidationError as exc:
        raise _explained(exc, "--llm", "command line") from exc


def _validated(table: JsonValue, where: str) -> LlmSettings:
    try:
        return LlmSettings.model_validate(table)
    except ValidationError as exc:
        raise _explained(exc, "llm", where) from exc


def _explained(exc: ValidationError, prefix: str, where: str) -> ConfigError:
    first = exc.errors()[0]
    key = ".".join([prefix, *(str(part) for part in first["loc"])])
    kinds: dict[int | str, type[RoleSettings]] = {"judge": JudgeSettings, "solver": SolverSettings}
    fields = kinds.get(first["loc"][0] if first["loc"] else "", RoleSettings).model_fields
    if first["type"] == "extra_forbidden":
        return ConfigError(
            f"unknown setting {key!r}", where=where,
            next_step=f"[llm] has {', '.join(LlmSettings.model_fields)}; a role has "
            f"{', '.join(fields)}",
        )  # fmt: skip
    cause = "" if first["type"] in ("value_error", "missing") else f"it is {first['input']!r}"
    return ConfigError(f"{key}: {first['msg'].removeprefix('Value error, ')}", where=where, cause=cause)
