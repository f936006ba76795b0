"""What a mechanism family supplies: a sampler, an exact solver, reference policies, and a world in neutral names.

A family is solved before any text exists. Its world is written with plain words of its own (tables, columns, tools,
parameters); a skin renames every one of them and brings the story, so no family-specific code runs at play time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from envsynth.models import World

LEVELS = (1, 2, 3, 4, 5)
"""Difficulty: how large, how noisy, how misleading."""


class Presentation(StrEnum):
    """How much of one mechanism the agent is told."""

    WRITTEN = "written"
    """The whole problem is stated; one `submit` call hands in a plan."""
    REVEALED = "revealed"
    """Stateful tools; the parameters can be read, the tape cannot."""
    HIDDEN = "hidden"
    """Stateful tools; the parameters must be found out, at the price of acting."""


class Look(NamedTuple):
    """What a world may depend on besides parameters and tape."""

    presentation: Presentation
    labels: tuple[str, ...]
    """Names for the family's things (arms, boxes, stops, jobs), as many as `Family.labels` asked for."""
    clock: str
    """Virtual time at reset."""


class Refused(Exception):
    """A tool answered a policy's call with an error."""


class Player(Protocol):
    """Plays one episode through the generated tools, in the family's neutral names."""

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""

    def call(self, tool: str, **arguments: Any) -> Any:
        """The tool's result, its keys in neutral names.

        Raises:
            Refused: the tool answered with an error; a reference policy lets this pass, for it is a fault.
        """


Policy = Callable[[Player], None]
"""Plays until it stops by itself or `over`; calls nothing afterwards."""


class Grid(NamedTuple):
    """Numbers as a table in an instruction; the headings are neutral names, or words of the skin in braces."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int | float | str, ...], ...]


Fact = int | float | str | Grid

P = TypeVar("P")
"""Parameters: a frozen dataclass of plain values."""
T = TypeVar("T")
"""Tape: every stochastic draw of an episode, realised from the seed; a frozen dataclass of plain values."""


class Family(ABC, Generic[P, T]):
    """One kind of solved decision problem. Money is an integer number of minor units; larger utilities are better."""

    name: ClassVar[str]
    version: ClassVar[str]
    title: ClassVar[str]
    """A few words for people."""
    kin: ClassVar[str]
    """`control`, `search`, `planning` or `negotiation`: families of one kin are near, others far."""
    sources: ClassVar[tuple[str, ...]]
    """Where the solution methods are from: author, year, title."""
    band: ClassVar[tuple[float, float]] = (0.1, 0.85)
    """Where `(u_default - u_idle) / (u_reference - u_idle)` must lie: neither near idle nor near the optimum."""

    @abstractmethod
    def sample(self, level: int, rng: Random, unit: int) -> P:
        """Draw parameters.

        Args:
            level: 1 to 5.
            rng: the only source of randomness.
            unit: minor units that one abstract unit of money is worth in the skin; every amount is a multiple of it
                or scales with it, and no decision depends on it.
        """

    @abstractmethod
    def tape(self, parameters: P, rng: Random) -> T:
        """Draw everything random that an episode can meet, whatever the agent does."""

    @abstractmethod
    def labels(self, parameters: P) -> int:
        """How many names of things the world shows."""

    @abstractmethod
    def world(self, parameters: P, tape: T, look: Look) -> World:
        """The mechanism as a world in neutral names. Texts (docs, errors) may hold `{words}` of the skin."""

    @abstractmethod
    def utility(self, parameters: P) -> str:
        """One SELECT in neutral names over the final state: the realised utility."""

    @abstractmethod
    def policies(self, parameters: P, presentation: Presentation) -> Mapping[str, Policy]:
        """The reference policies, by name.

        `oracle` knows the parameters, not the tape. `default` believes the readable sticker values and splits evenly.
        `bayes`, for `hidden` and where it is computable, is the best that an uninformed player can do.

        In `written` each makes one call of `submit`; the oracle's plan then realises what its interactive play does.
        """

    @abstractmethod
    def attacks(self, parameters: P, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Policies that try to score without solving: `no_probing`, `constant`, `greedy` on stickers, and the like."""

    @abstractmethod
    def solved(self, parameters: P, tape: T) -> float:
        """Utility of the oracle's policy on this tape by the model's own arithmetic, without any world."""

    @abstractmethod
    def expected(self, parameters: P) -> Mapping[str, float]:
        """Expected utility over tapes by policy (`oracle`, `bayes`, `default`, `idle`), where it is computable."""

    def hindsight(self, parameters: P, tape: T) -> float | None:
        """The most that anyone could get on this tape, or a bound that nobody exceeds; None where neither is known."""
        return None

    @abstractmethod
    def facts(self, parameters: P, presentation: Presentation) -> Mapping[str, Fact]:
        """Numbers for the texts, by name: those that everybody is told, and in `written` all of them."""

    def variant(self, parameters: P) -> str:
        """Which of the family's texts hold: a text `KEY.VARIANT` (`rules.rank`, `tool.look.rank`) stands before `KEY`.

        Empty where the family has one wording for all its levels.
        """
        return ""

    @abstractmethod
    def turns(self, parameters: P, presentation: Presentation) -> int:
        """Calls that an episode may have: generous for any sensible play."""


@dataclass(frozen=True)
class Skin:
    """A domain: every word that an agent reads."""

    name: str
    unit: int
    """Minor units of money that one abstract unit is worth, so that amounts are plausible in the domain."""
    words: Mapping[str, str]
    """For braces in texts."""
    names: Mapping[str, str]
    """Neutral name of a table, column, tool, parameter or result column → the domain's; one to one."""
    labels: Sequence[str]
    """Names of things; enough for the largest level."""
    texts: Mapping[str, str]
    """`opening`, `rules`, `goal`, `hidden`, `revealed`, `written`: parts of the instruction; `tool.NAME` and
    `parameter.NAME`: descriptions by neutral name. The family's own stand where a skin has none, and any of them
    may be said apart for a `Family.variant`, as `rules.VARIANT`."""
