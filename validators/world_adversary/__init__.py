"""`world_adversary`: attacks that follow from the world alone; none may get the full outcome."""

from envsynth.validators.world_adversary.validator import WorldAdversary

__all__ = ["WorldAdversary"]
