"""Drawing a mechanism from a seed, again and again until the default is neither lost nor nearly right."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from envsynth.generators.mechanism.contract import Family, Look, Policy, Presentation, Refused, Skin
from envsynth.generators.mechanism.dress import dress, dressed_sql, worded
from envsynth.generators.mechanism.players import Played, Stage, idle
from envsynth.models import Check, Utility, Verifier, World
from envsynth.seeds import stream

MAX_DRAWS = 32
"""Draws before a mechanism is given up."""
TAPES = 4
"""Tapes that are drawn for one set of parameters before others are. What a tape brings decides whether a draw stands,
and more often so for some truths than for others; with a single tape each, the truths that stand would not be as likely
as the texts say."""
_CLOCK = "2026-03-02T08:00:00"


class Draw(NamedTuple):
    """One sampled mechanism."""

    family: Family[Any, Any]
    skin: Skin
    parameters: Any
    tape: Any
    labels: tuple[str, ...]
    number: int
    """1 for the first draw."""


class Shown(NamedTuple):
    """A mechanism in one presentation and one skin, with its references played."""

    world: World
    played: Mapping[str, Played]
    """By policy: `oracle`, `default`, `idle`, and `bayes` where there is one."""

    @property
    def reference(self) -> str:
        """The policy that scores 1."""
        return "bayes" if "bayes" in self.played else "oracle"

    def place(self, reference: str) -> float:
        """Where the default stands between idling (0) and a reference (1)."""
        utility = {name: played.utility for name, played in self.played.items()}
        reach = utility[reference] - utility["idle"]
        return (utility["default"] - utility["idle"]) / reach if reach > 0 else float("inf")


def find(family: Family[Any, Any], skin: Skin, level: int, seed: str) -> int:
    """Number of the first draw that is fair when all is hidden; 0 where there is none.

    It depends on the arguments alone, and so is the same in every presentation.

    Raises:
        Refused: a reference policy made a call that is not possible.
    """
    tapes: list[Any] = []
    for number in range(1, MAX_DRAWS + 1):
        if number % TAPES == 1:
            tapes = []
        found = draw(family, skin, level, seed, number)
        if found.tape in tapes:
            # The labels alone would differ: so it is wherever tapes hold nothing random.
            continue
        if _is_fair(found, seed):
            return number
        tapes.append(found.tape)
    return 0


def draw(family: Family[Any, Any], skin: Skin, level: int, seed: str, number: int) -> Draw:
    """A draw by its number, from 1; depends on the arguments alone."""
    own = f"{seed}/{number}"
    parameters = _parameters(family, level, f"{seed}/{(number - 1) // TAPES}", skin.unit)
    labels = stream(own, "labels").sample(list(skin.labels), family.labels(parameters))
    told = worded(skin, family.variant(parameters))
    return Draw(family, told, parameters, family.tape(parameters, stream(own, "tape")), tuple(labels), number)


@lru_cache(maxsize=8)
def _parameters(family: Family[Any, Any], level: int, seed: str, unit: int) -> Any:
    return family.sample(level, stream(seed, "parameters"), unit)


def _is_fair(found: Draw, seed: str) -> bool:
    """Whether the default lies in the family's band and every attack stays below the references."""
    low, high = found.family.band
    shown = show(found, Presentation.HIDDEN)
    # In other presentations the oracle is the reference.
    references = {"oracle", shown.reference}
    best = min(shown.played[name].utility for name in references)
    if best <= shown.played["default"].utility or not all(low <= shown.place(name) <= high for name in references):
        return False
    # On a lucky tape a policy that solves nothing does as well as one that does; such a tape grades nobody.
    attacks = play_attacks(found, shown.world, Presentation.HIDDEN, stream(seed, "attacks"))
    return all(attack.utility < best for attack in attacks.values())


def show(found: Draw, presentation: Presentation) -> Shown:
    """The mechanism in a presentation, with every reference played through its tools.

    Raises:
        Refused: a reference policy made a call that is not possible.
    """
    family, skin = found.family, found.skin
    neutral = family.world(found.parameters, found.tape, Look(presentation, found.labels, _CLOCK))
    facts = family.facts(found.parameters, presentation)
    world = dress(neutral, skin, facts, f"{family.name}-{skin.name}".replace("_", "-"))
    policies = {**family.policies(found.parameters, presentation), "idle": idle}
    return Shown(world, play_all(found, world, policies, presentation))


def play_attacks(found: Draw, world: World, presentation: Presentation, rng: Random) -> dict[str, Played]:
    """Play the family's attacks; a refused call ends an attack, and is no fault."""
    attacks = found.family.attacks(found.parameters, presentation, rng)
    return play_all(found, world, {name: _forgiving(policy) for name, policy in attacks.items()}, presentation)


def play_all(
    found: Draw, world: World, policies: Mapping[str, Policy], presentation: Presentation
) -> dict[str, Played]:
    """Play policies on a dressed world, each from the start.

    Raises:
        Refused: a call is not possible.
    """
    # The scale is of no consequence here: utilities are read as they are.
    utility = Utility(sql=dressed_sql(found.family.utility(found.parameters), found.skin), default=0.0, reference=1.0)
    verifier = Verifier(checks=(Check(id="any", sql="SELECT 1"),), utility=utility)
    stage = Stage(world, found.skin, verifier, found.family.turns(found.parameters, presentation))
    try:
        return {name: stage.play(policy) for name, policy in policies.items()}
    finally:
        stage.close()


def _forgiving(policy: Policy) -> Policy:
    def play(player: Any) -> None:
        try:
            policy(player)
        except Refused:
            return

    return play
