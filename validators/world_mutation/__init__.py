"""`world_mutation`: trajectories one step away from the reference; whatever ends elsewhere must not pass."""

from envsynth.validators.world_mutation.validator import WorldMutation

__all__ = ["WorldMutation"]
