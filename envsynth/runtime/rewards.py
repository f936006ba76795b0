"""How the components of a grade combine: small pure functions.

Outcome and process stay separate numbers, because a sum lets one pay for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .contract import Grade


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


def combined(gate: float, outcome: float) -> float:
    """`reward = gate × outcome`."""
    return gate * outcome


def reward_vector(grade: Grade) -> dict[str, float]:
    """Every component of a grade as a flat mapping of finite numbers, the same for every trainer.

    `reward`, `outcome`, `gate`, `process` where the task has a rubric that applies, `check.ID`, `criterion.ID` where it
    applies, and `penalty.ID`.
    """
    parts = {"reward": grade.reward, "outcome": grade.outcome, "gate": grade.gate}
    if grade.process is not None:
        parts["process"] = grade.process
    parts |= {f"check.{name}": float(held) for name, held in grade.checks.items()}
    parts |= {f"criterion.{name}": float(met) for name, met in grade.criteria.items() if met is not None}
    return parts | {f"penalty.{name}": value for name, value in grade.penalties.items()}
