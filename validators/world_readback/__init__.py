"""`world_readback`: the task's read-back agrees with the outcome of every trajectory of its panel."""

from envsynth.validators.world_readback.validator import WorldReadback

__all__ = ["WorldReadback"]
