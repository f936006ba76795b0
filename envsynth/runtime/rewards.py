"""How the components of a grade combine: small pure functions.

Outcome and process stay separate numbers, because a sum lets one pay for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .contract import JSON, Grade


def gate(conditions: Mapping[str, bool]) -> float:
    """1.0 when every condition on the transcript holds, else 0.0.

    A malformed call ends the rollout with reward 0: GLM-4.5 (arXiv:2508.06471), agentic RL section.
    """
    return float(all(conditions.values()))


def outcome(checks: Mapping[str, bool]) -> float:
    """1.0 when every check holds, else 0.0: all or nothing, as in SWE-bench (arXiv:2310.06770).

    Raises:
        ValueError: there is no check; without one anything would pass.
    """
    if not checks:
        raise ValueError("a verifier without checks would pass anything")
    return float(all(checks.values()))


def process(criteria: Iterable[tuple[str, bool | None]]) -> float | None:
    """Share of the applicable criteria that were met.

    Args:
        criteria: class (`essential`, `important`, `optional`, `pitfall`) and verdict of each criterion, where True is
            good (met, or a pitfall avoided) and None is not applicable.

    Returns:
        0.0 when an essential criterion failed; None when nothing applies.
    """
    verdicts = [(kind, met) for kind, met in criteria if met is not None]
    if not verdicts:
        return None
    if any(kind == "essential" and not met for kind, met in verdicts):
        return 0.0
    return sum(met for _, met in verdicts) / len(verdicts)


def normalised(utility: float, scale: Mapping[str, float]) -> float:
    """A realised utility between the default policy's (0) and the reference policy's (1), clipped.

    Args:
        utility: what the episode realised.
        scale: `default` and `reference`, as in `models.Utility`; the reference is larger.

    Returns:
        Rounded to 12 digits, so that every platform gives the same.
    """
    share = (utility - scale["default"]) / (scale["reference"] - scale["default"])
    return round(min(1.0, max(0.0, share)), 12)


class Combined(NamedTuple):
    """What the components of an episode come to."""

    reward: float
    gate: float
    penalties: dict[str, float]


def combined(spec: JSON, conditions: Mapping[str, bool], outcome: float) -> Combined:
    """`reward = gate × outcome`, plus the penalties.

    Args:
        spec: the document of a `models.RewardSpec`.
        conditions: what the gate may ask for, by name.
        outcome: of the end state.
    """
    passage = gate({name: conditions[name] for name in spec["gate"]})
    # A negative reward for who does not end in time: Kimi K3's agentic RL.
    overdrawn = spec.get("overdrawn", 0)
    penalties = {"overdrawn": float(overdrawn)} if overdrawn and not conditions["within_budget"] else {}
    return Combined(passage * outcome + sum(penalties.values()), passage, penalties)


_GATE_WORDS = {
    "valid_transcript": "every action was a tool call",
    "within_budget": "the budget of calls was not overdrawn",
}


def in_words(spec: JSON) -> str:
    """What a `models.RewardSpec` says, in sentences."""
    conditions = " and ".join(_GATE_WORDS[name] for name in spec["gate"])
    told = [
        "The reward is gate × outcome.",
        f"The gate is 1 where {conditions}, else 0." if conditions else "The gate is always 1.",
        "The outcome is 1 where every check holds, else 0; a utility grades it where the task has one.",
        "The process score is reported beside them and is no part of the reward.",
    ]
    if spec.get("overdrawn"):
        told.append(f"An episode that overdraws its budget of calls has the reward {spec['overdrawn']}.")
    group = spec.get("group") or {}
    weights = group.get("weights", {"reward": 1.0})
    if weights != {"reward": 1.0}:
        shares = ", ".join(f"{name} {weight:g}" for name, weight in sorted(weights.items()))
        told.append(
            f"In a group of attempts each of these is normalised on its own before they are summed: {shares}. "
            "The others count as far as no wrong attempt comes out above a right one."
        )
    if group.get("tokens"):
        told.append(f"An attempt that writes more than {group['tokens']} tokens has the reward -1.")
    if group.get("length"):
        told.append(
            f"Right and short attempts of a group have up to {group['length'] / 2:g} more, long ones as much less."
        )
    if group.get("ranked_by"):
        by = {"process": "of the better process", "short": "that are shorter"}[group["ranked_by"]]
        told.append(f"Among attempts that passed, those {by} have more of the advantage, whose sum stays.")
    return " ".join(told)


def reward_vector(grade: Grade) -> dict[str, float]:
    """Every component of a grade as a flat mapping of finite numbers, the same for every trainer.

    `reward`, `outcome`, `gate`, `gate.CONDITION`, `process` where the task has a rubric that applies, `check.ID`,
    `criterion.ID` where it applies, and `penalty.ID`.
    """
    parts = {"reward": grade.reward, "outcome": grade.outcome, "gate": grade.gate}
    parts |= {f"gate.{name}": float(held) for name, held in grade.conditions.items()}
    if grade.process is not None:
        parts["process"] = grade.process
    parts |= {f"check.{name}": float(held) for name, held in grade.checks.items()}
    parts |= {f"criterion.{name}": float(met) for name, met in grade.criteria.items() if met is not None}
    return parts | {f"penalty.{name}": value for name, value in grade.penalties.items()}
