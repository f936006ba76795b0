"""Which model plays which role, where it is reached, how it is asked, and what it costs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator

from envsynth.errors import ConfigError
from envsynth.models.base import Model, digest_of

__all__ = [
    "DEFAULT_ENDPOINT",
    "ROLES",
    "JudgeSettings",
    "LlmSettings",
    "Prices",
    "Role",
    "RoleSettings",
    "Sampling",
    "SolverSettings",
]

Role = Literal["author", "judge", "solver", "user"]
ROLES: tuple[Role, ...] = get_args(Role)
DEFAULT_ENDPOINT = "https://api.openai.com/v1"
_PICO_PER_MICRO = 1_000_000
_DAY = 86_400.0
"""Seconds."""


class Sampling(Model):
    """How tokens are drawn; what is None is left to the endpoint."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = Field(default=None, ge=0, lt=2**31)
    """Sent as it is with draw 0; other draws of the same messages get seeds that follow from it."""
    max_tokens: int = Field(default=4096, ge=1, le=10_000_000)
    """Most tokens of an answer, reasoning included; a spend limit reckons with this many."""


Price = Annotated[float, Field(ge=0, lt=100_000)]
"""US dollars per million tokens."""


class Prices(Model):
    """What an endpoint asks for, in US dollars per million tokens."""

    input: Price
    cached_input: Price | None = None
    """For the part of a prompt that the endpoint has at hand; None: as `input`."""
    output: Price

    def cost(self, prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> int:
        """Picodollars (1e-12 US dollars), so that sums are exact."""
        cached = min(cached_tokens, prompt_tokens)
        cheaper = self.input if self.cached_input is None else self.cached_input
        return (
            (prompt_tokens - cached) * round(self.input * _PICO_PER_MICRO)
            + cached * round(cheaper * _PICO_PER_MICRO)
            + completion_tokens * round(self.output * _PICO_PER_MICRO)
        )

    def bound(self, prompt_tokens: int, completion_tokens: int) -> int:
        """Picodollars that a call of at most so many tokens cannot exceed."""
        dearest = max(self.input, self.cached_input or 0.0)
        return prompt_tokens * round(dearest * _PICO_PER_MICRO) + completion_tokens * round(
            self.output * _PICO_PER_MICRO
        )


class RoleSettings(Model):
    """One role's model."""

    model_config = ConfigDict(allow_inf_nan=False)

    model: str = Field(min_length=1)
    """The model's name at its endpoint."""
    base_url: str = DEFAULT_ENDPOINT
    """Where `/chat/completions` is found."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; empty: none is sent. Endpoints on loopback do without."""
    sampling: Sampling = Sampling()
    prices: Prices | None = None
    """None: unknown; spend is then counted in tokens alone, and no limit in US dollars can be kept."""
    concurrency: int = Field(default=4, ge=1, le=256)
    """Most calls under way at once, over all processes that share a cache."""
    timeout: float = Field(default=300.0, gt=0, le=_DAY)
    """Seconds from sending a request to the end of its answer."""
    retries: int = Field(default=5, ge=0, le=20)
    """How often a call is tried again after the endpoint failed; at most twice where each try may be billed."""
    patience: float = Field(default=300.0, ge=0, le=_DAY)
    """Longest wait, in seconds, that an endpoint may ask for before the call fails instead."""
    failures: int = Field(default=3, ge=1)
    """After this many calls in a row that failed alike, each tried to the end, the endpoint counts as down."""
    max_chars: int = Field(default=400_000, ge=1)
    """Most characters of a useful answer; a longer one is a fault of its own."""

    @property
    def demands(self) -> tuple[float, ...]:
        """What else decides how its answers count."""
        return ()

    @property
    def on_loopback(self) -> bool:
        """Whether the endpoint is on this machine."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @field_validator("model")
    @classmethod
    def _is_one_line(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("has line breaks or other characters that no name has")
        return name

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        # The key itself is often put here by mistake, and settings are written beside the catalog.
        if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
            raise ValueError("is no name of an environment variable; export the key in one, and name that")
        return name

    @field_validator("base_url")
    @classmethod
    def _is_a_url(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            raise ValueError("is not a URL") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("is not an http or https URL")
        if parts.username or parts.password:
            raise ValueError("has a password in it; name a variable with api_key_env instead")
        if parts.query or parts.fragment:
            raise ValueError("has a query in it; it is to be the folder of `chat/completions`")
        return url.rstrip("/").removesuffix("/chat/completions")

    def demand_prices(self, role: Role, budget_usd: float | None) -> None:
        """Raise where a spend limit cannot be kept.

        Args:
            role: who asks.
            budget_usd: most US dollars that calls may come to; None: no limit.

        Raises:
            ConfigError: there is a limit, and the prices are not known.
        """
        if budget_usd is not None and self.prices is None:
            raise ConfigError(
                f"the prices of {self.model} are not known", where=f"llm.{role}",
                cause="there is a budget, which cannot be kept without",
                next_step=f"add prices = {{ input = ..., output = ... }} to [llm.{role}], in US dollars per million "
                "tokens (0 where calls are free)",
            )  # fmt: skip


class JudgeSettings(RoleSettings):
    """The judge's model, and what is demanded of it before its word counts."""

    agreement: float = Field(default=0.9, ge=0.5, le=1)
    """Least agreement of a judge, with the labels of a task's panel (mean of the shares of right and of wrong runs that
    it calls so) and between its own opinions on the same run; below it, the judge is not used for the task."""
    repeats: int = Field(default=3, ge=2, le=10)
    """Opinions on each run of the panel."""
    runs: int = Field(default=8, ge=2, le=100)
    """Most runs of a panel that it is tried on, right ones and wrong ones."""
    overrides: int = Field(default=5, ge=1, le=100)
    """Wrong runs that it is shown with a text in them that asks for PASS; one that is obeyed, and it is not used."""

    @property
    def demands(self) -> tuple[float, ...]:
        """What decides whether its word counts."""
        return (self.agreement, self.repeats, self.runs, self.overrides)


class SolverSettings(RoleSettings):
    """The model that attempts tasks, and what builds make of its attempts."""

    attempts: int = Field(default=8, ge=2, le=1000)
    """Attempts at each candidate, and as many with its hint where it has one."""
    group: int = Field(default=8, ge=2, le=1000)
    """Size of the groups of attempts that a trainer compares."""
    mixed: float = Field(default=0.05, ge=0, le=1)
    """Least chance that such a group is mixed; a task with a smaller one teaches this model next to nothing."""
    must_solve: bool = False
    """Whether a candidate that it never solves is rejected; else it stays as it was verified, for a stronger model."""
    attempt_tokens: int | None = Field(default=None, ge=1)
    """Most tokens that it may write in one attempt; None: no limit but the task's calls."""
    attempt_seconds: float | None = Field(default=None, gt=0)
    """Most wall seconds of one attempt."""

    @property
    def demands(self) -> tuple[float, ...]:
        """What decides how its attempts count."""
        limits = (self.attempt_tokens or 0, self.attempt_seconds or 0)
        return (self.attempts, self.group, self.mixed, self.must_solve, *limits)


class LlmSettings(Model):
    """The `[llm]` table of a configuration: a role that is None has no model."""

    model_config = ConfigDict(allow_inf_nan=False)

    author: RoleSettings | None = None
    judge: JudgeSettings | None = None
    solver: SolverSettings | None = None
    user: RoleSettings | None = None
    budget: float | None = Field(default=None, ge=0)
    """Most US dollars that the ledger beside the catalog may come to, over all builds; None: no limit."""

    @field_validator("judge", "solver", mode="before")
    @classmethod
    def _with_usual_demands(cls, role: object) -> object:
        # One model may play several roles: what it is as another of them is all that it is as a judge or a solver.
        return role.model_dump() if type(role) is RoleSettings else role

    def role(self, name: Role) -> RoleSettings | None:
        """The settings of a role."""
        settings: RoleSettings | None = getattr(self, name)
        return settings

    def identity(self, names: Iterable[Role]) -> str:
        """Digest of what decides the answers that these roles give; empty where none of them has a model.

        Addresses, keys, prices and patience are no part of it: the same model elsewhere gives the same work.
        """
        found = {name: settings for name in names if (settings := self.role(name)) is not None}
        told = {name: [one.model, one.sampling.document(), one.max_chars, *one.demands] for name, one in found.items()}
        return digest_of(told) if told else ""
