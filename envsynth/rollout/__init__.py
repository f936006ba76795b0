"""Rollouts: attempts of policies at tasks, stored, counted and judged with intervals."""

from envsynth.rollout.attempting import attempted
from envsynth.rollout.failures import MECHANISM_SUCCESS, failure_of, is_success, threshold_of
from envsynth.rollout.playable import Measured, Playable, Playables
from envsynth.rollout.statistics import (
    Interval,
    clustered,
    mixed_chance,
    mixed_chance_of_rate,
    pass_at_k,
    wilson,
)

__all__ = [
    "MECHANISM_SUCCESS",
    "Interval",
    "Measured",
    "Playable",
    "Playables",
    "attempted",
    "clustered",
    "failure_of",
    "is_success",
    "mixed_chance",
    "mixed_chance_of_rate",
    "pass_at_k",
    "threshold_of",
    "wilson",
]
