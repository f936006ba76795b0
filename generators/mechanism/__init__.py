"""Tasks from solved mechanisms."""

from envsynth.generators.mechanism.generator import Mechanism

__all__ = ["Mechanism"]
