"""`world_static`: what can be seen of a world task without playing it."""

from envsynth.validators.world_static.validator import WorldStatic

__all__ = ["WorldStatic"]
