"""From the grades of a group of attempts at one task to what a trainer learns from: pure functions over plain numbers.

Each takes and gives sequences in the order of the attempts. Nothing here looks at an attempt whose environment failed:
`recovered` takes those out first.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from .contract import JSON

Attempt = TypeVar("Attempt")

_FLAT = 1e-9
"""Rewards that differ by no more than this say nothing."""
_RIGHT = 0.9
"""Of a graded outcome, what counts as right."""
_MAY_NOT_APPLY = ("process", "criterion.", "penalty.")
"""Beginnings of the components that a grade has only where they apply."""
_EVERYWHERE = ("reward", "outcome", "gate")


class Advantages(NamedTuple):
    """What each attempt is worth beside the others of its group."""

    values: tuple[float, ...]
    """Sum to zero."""
    flat: bool
    """All rewards were equal: there is nothing to learn, and every value is 0."""


class Step(NamedTuple):
    """One turn of an attempt, for `step_credit`."""

    tokens: int
    """Tokens that the policy wrote in it; at least 1."""
    weight: float
    """Its share of the credit, such as the number of rubric criteria that name it; not negative."""


class Rolled(NamedTuple):
    """An attempt, for `learned`."""

    rewards: Mapping[str, float]
    """Components: `runtime.rewards.reward_vector`; empty where the environment failed."""
    tokens: int = 0
    """That the policy wrote; where nobody counts, its turns."""
    failed: bool = False
    """Whether the environment failed: such an attempt says nothing of the policy, and neither does one without
    rewards."""


class Learned(NamedTuple):
    """What a trainer takes from a group, for `learned`; empty where too many environments failed."""

    places: tuple[int, ...]
    """Position in the group of each attempt that counts; those that stand for failed ones come twice or more."""
    rewards: tuple[float, ...]
    """Of each of them, after the budget of tokens and the bonus for being short."""
    advantages: tuple[float, ...]
    flat: bool
    """There is nothing to learn: every advantage is 0."""


def learned(spec: JSON, group: Sequence[Rolled]) -> Learned:
    """From a group of attempts at one task to advantages, as the task's own reward says.

    In this order: attempts whose environment failed are replaced, the bonus for being short is added, the budget of
    tokens overrides, components are normalised and summed, advantage is moved among those that passed. No wish lifts a
    wrong attempt (one that is over its budget of tokens is one) to a right one: the bonus, and the components beside
    `reward`, count as far as they do not.

    Args:
        spec: the document of a `models.RewardSpec`.
        group: attempts.

    Raises:
        ValueError: a component that is weighed is in no attempt although every grade has it, or is no finite number.
    """
    by = spec.get("group") or {}
    places = recovered(range(len(group)), [one.failed or not one.rewards for one in group])
    if not places:
        return Learned((), (), (), flat=True)
    attempts = [group[place] for place in places]
    tokens, rewards = [one.tokens for one in attempts], _component("reward", attempts)
    over = [bool(by.get("tokens")) and budget_override(0.0, count, by["tokens"]) < 0 for count in tokens]
    passed = [reward >= _RIGHT and not late for reward, late in zip(rewards, over, strict=True)]
    # Where all are wrong, being short is giving up early.
    if by.get("length") and any(passed):
        most = min(by["length"], _margin(rewards, passed))
        bonuses = length_bonus(passed, tokens)
        rewards = [reward + most * bonus for reward, bonus in zip(rewards, bonuses, strict=True)]
    rewards = [-1.0 if late else reward for reward, late in zip(rewards, over, strict=True)]
    advantages = _weighed(by, rewards, attempts, passed)
    values, merit = advantages.values, by.get("ranked_by")
    if merit:
        merits = _component("process", attempts) if merit == "process" else [-float(count) for count in tokens]
        values = ranked_advantages(values, passed, merits, by.get("spread", 0.5))
    return Learned(places, tuple(rewards), values, advantages.flat and not any(values))


def _weighed(by: JSON, rewards: list[float], attempts: Sequence[Rolled], passed: Sequence[bool]) -> Advantages:
    """The weighed sum of components; those beside `reward` are lessened together where they would invert the order."""
    weights, scaled = by.get("weights") or {"reward": 1.0}, by.get("scaled", True)
    parts = {name: _component(name, attempts) for name in weights if name != "reward"}
    first = decoupled_advantages({"reward": rewards}, {"reward": weights.get("reward", 0.0)}, scaled=scaled)
    if not parts:
        return first
    beside = decoupled_advantages(parts, {name: weights[name] for name in parts}, scaled=scaled)
    share = _share(first.values, beside.values, passed) if "reward" in weights else 1.0
    values = tuple(one + share * two for one, two in zip(first.values, beside.values, strict=True))
    return Advantages(values, flat=first.flat and (beside.flat or not share))


def _share(first: Sequence[float], beside: Sequence[float], passed: Sequence[bool]) -> float:
    """The most of `beside`, up to all, that takes no more than half of what `first` has between right and wrong."""
    pairs = [
        (first[one] - first[two], beside[two] - beside[one])
        for one in range(len(passed)) if passed[one]
        for two in range(len(passed)) if not passed[two]
    ]  # fmt: skip
    return min([1.0, *(max(0.0, apart) / (2 * against) for apart, against in pairs if against > 0)])


def _margin(values: Sequence[float], passed: Sequence[bool]) -> float:
    """By how much the least of those that passed is above the best of the others; infinite where there is but one kind.

    Not negative.
    """
    right = [value for value, one in zip(values, passed, strict=True) if one]
    wrong = [value for value, one in zip(values, passed, strict=True) if not one]
    return max(0.0, min(right) - max(wrong)) if right and wrong else math.inf


def _component(name: str, attempts: Sequence[Rolled]) -> list[float]:
    """A component of each attempt; where it does not apply, the mean of the others, which moves nothing."""
    found = [one.rewards[name] for one in attempts if name in one.rewards]
    if not found and not name.startswith(_MAY_NOT_APPLY):
        raise ValueError(f"no attempt has the component {name!r}")
    if name.startswith(_EVERYWHERE) and len(found) < len(attempts):
        raise ValueError(f"an attempt has no component {name!r}: say `failed` where the environment did")
    if not all(map(math.isfinite, found)):
        raise ValueError(f"the component {name!r} of an attempt is no finite number")
    without = statistics.fmean(found) if found and not name.startswith("penalty.") else 0.0
    return [one.rewards.get(name, without) for one in attempts]


def budget_override(reward: float, tokens: int, budget: int, slack: float = 1.0) -> float:
    """The reward, or -1 where an attempt took more than `slack` times its budget of tokens (Kimi K3's agentic RL).

    Args:
        reward: of the attempt.
        tokens: that it took.
        budget: that it had; at least 1.
        slack: how far it may go over; 1 is not at all.
    """
    return -1.0 if tokens > slack * budget else reward


def length_bonus(passed: Sequence[bool], lengths: Sequence[float]) -> tuple[float, ...]:
    """What is added to each reward for being short: from 0.5 (the shortest) to -0.5 (the longest of the group).

    An attempt that failed never gets more than 0. Kimi k1.5 (arXiv:2501.12599), section 2.3.3.

    Args:
        passed: whether each attempt was right.
        lengths: tokens or turns of each.
    """
    _same_length(passed, lengths)
    if not lengths or max(lengths) == min(lengths):
        return (0.0,) * len(lengths)
    span = max(lengths) - min(lengths)
    shares = (0.5 - (length - min(lengths)) / span for length in lengths)
    return tuple(share if right else min(0.0, share) for share, right in zip(shares, passed, strict=True))


def group_advantages(rewards: Sequence[float], *, scaled: bool = True) -> Advantages:
    """Rewards less their mean, by their standard deviation: GRPO (arXiv:2402.03300), equation 3.

    Args:
        rewards: of one group.
        scaled: False leaves the division out, as Dr. GRPO does (arXiv:2503.20783), so that easy and hard groups weigh
            the same.
    """
    if len(rewards) < 2 or max(rewards) - min(rewards) <= _FLAT:
        return Advantages((0.0,) * len(rewards), flat=True)
    mean = statistics.fmean(rewards)
    by = statistics.pstdev(rewards, mean) if scaled else 1.0
    return Advantages(tuple((reward - mean) / by for reward in rewards), flat=False)


def decoupled_advantages(
    rewards: Mapping[str, Sequence[float]], weights: Mapping[str, float], *, scaled: bool = True
) -> Advantages:
    """Each reward normalised in its group on its own, then their weighted sum: GDPO (arXiv:2601.05242).

    Summed before, rewards of other scales make different attempts look the same. The paper's last step, `whitened`, is
    over a whole batch.

    Args:
        rewards: of one group, by the reward's name.
        weights: of each reward; the same names.
        scaled: as for `group_advantages`.

    Raises:
        ValueError: the names or the numbers of attempts differ, or there is no reward.
    """
    if rewards.keys() != weights.keys() or not rewards:
        raise ValueError(f"rewards {sorted(rewards)}, weights {sorted(weights)}")
    parts = {name: group_advantages(values, scaled=scaled) for name, values in rewards.items()}
    _same_length(*(part.values for part in parts.values()))
    rows = zip(*(part.values for part in parts.values()), strict=True)
    shares = [weights[name] for name in parts]
    values = tuple(math.fsum(w * value for w, value in zip(shares, row, strict=True)) for row in rows)
    return Advantages(values, flat=all(part.flat for part in parts.values()))


def whitened(values: Sequence[float]) -> tuple[float, ...]:
    """Values of a batch with mean 0 and standard deviation 1; equal ones become 0."""
    return group_advantages(values).values


def ranked_advantages(
    advantages: Sequence[float], passed: Sequence[bool], merits: Sequence[float], spread: float = 0.5
) -> tuple[float, ...]:
    """Advantages moved among the attempts that passed, towards those of more merit; their sum stays (GAGAR).

    A second aim, such as a process score or being short, so changes who of the right ones is followed, and never
    whether right is better than wrong: none falls below one that did not pass, and with equal advantages all stay on
    their side of zero.

    Args:
        advantages: of one group.
        passed: whether each attempt was right; the others keep what they have.
        merits: larger is better; equal ones are treated alike.
        spread: from 0 (nothing moves) to 1 (the least of the passing gets nothing of the smallest passing advantage).

    Raises:
        ValueError: the numbers of attempts differ, or the spread is not in [0, 1].
    """
    _same_length(advantages, passed, merits)
    if not 0.0 <= spread <= 1.0:
        raise ValueError(f"a spread of {spread} is not in [0, 1]")
    places = [place for place, right in enumerate(passed) if right]
    if len(places) < 2:
        return tuple(advantages)
    unit = spread * min(_margin(advantages, passed), *(abs(advantages[place]) for place in places))
    moved = list(advantages)
    for place, rank in zip(places, _centred_ranks([merits[place] for place in places]), strict=True):
        moved[place] += unit * rank
    return tuple(moved)


def rubric_reward(verdicts: Sequence[bool | None]) -> float | None:
    """(passes - fails) / (passes + fails), from -1 to 1: DRACO's aggregate; None where nothing applies.

    Args:
        verdicts: of each criterion; None is not applicable.
    """
    applying = [verdict for verdict in verdicts if verdict is not None]
    return None if not applying else (2 * sum(applying) - len(applying)) / len(applying)


def telling_criteria(group: Sequence[Mapping[str, bool | None]]) -> frozenset[str]:
    """Criteria that at least one attempt of the group failed; the others tell no attempt from another (DRACO).

    Args:
        group: verdict by criterion, an attempt each.
    """
    return frozenset(name for verdicts in group for name, verdict in verdicts.items() if verdict is False)


def step_credit(advantage: float, steps: Sequence[Step]) -> tuple[float, ...]:
    """The advantage of every token of each step: a = A·N·w / (n·Σw), DRACO's credit to the steps that a rubric names.

    Summed over all tokens it is what the trajectory had, A·N; where no step has a weight, every token has A.

    Args:
        advantage: A, of the whole attempt.
        steps: n tokens and weight w of each; N is the sum of n.
    """
    total = math.fsum(step.weight for step in steps)
    if total <= 0:
        return (advantage,) * len(steps)
    tokens = sum(step.tokens for step in steps)
    return tuple(advantage * tokens * step.weight / (step.tokens * total) for step in steps)


def mixed(outcomes: Sequence[float]) -> bool:
    """Whether a group is worth training on: its outcomes differ (dynamic sampling, DAPO, arXiv:2503.14476)."""
    return len(outcomes) > 1 and max(outcomes) - min(outcomes) > _FLAT


def recovered(attempts: Sequence[Attempt], failed: Sequence[bool]) -> tuple[Attempt, ...]:
    """A group of the same size without the attempts whose environment failed; empty where too few are left.

    Where at least half are left, they are repeated in turn until the group is whole; else it is dropped (Solar Open 2).

    Args:
        attempts: of one group.
        failed: whether the environment of each failed.
    """
    _same_length(attempts, failed)
    left = [attempt for attempt, lost in zip(attempts, failed, strict=True) if not lost]
    if not left or 2 * len(left) < len(attempts):
        return ()
    return tuple(left[place % len(left)] for place in range(len(attempts)))


def chance_still_mixed(outcomes: Sequence[bool], size: int) -> float:
    """The chance that a group whose attempts have ended alike so far will be mixed when it is whole.

    1 - (m + 1) / (size + 1) after m >= 1 equal ones: the rule of succession. A trainer that stops a group below some
    chance saves the rest of all-or-nothing groups.

    Args:
        outcomes: of the attempts that have ended; 1.0 where they differ already.
        size: of the whole group; at least as many.

    Raises:
        ValueError: there are more outcomes than the group has attempts.
    """
    if len(outcomes) > size:
        raise ValueError(f"{len(outcomes)} outcomes of a group of {size}")
    return 1.0 if len(set(outcomes)) > 1 else 1.0 - (max(1, len(outcomes)) + 1) / (size + 1)


def _centred_ranks(merits: Sequence[float]) -> list[float]:
    """Ranks from -1 (the least) to 1, equal merits at their mean; they sum to 0."""
    order = sorted(merits)
    last = len(order) - 1
    first = {merit: place for place, merit in reversed(list(enumerate(order)))}
    final = {merit: place for place, merit in enumerate(order)}
    return [(first[merit] + final[merit] - last) / last for merit in merits]


def _same_length(*sequences: Sequence[object]) -> None:
    if len({len(one) for one in sequences}) > 1:
        raise ValueError(f"numbers of attempts differ: {', '.join(str(len(one)) for one in sequences)}")
