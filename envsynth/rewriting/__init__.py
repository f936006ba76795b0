"""An instruction in other words, as vague as is wanted, with every fact that its checks need."""

from envsynth.rewriting.levels import LEVELS
from envsynth.rewriting.literals import literals, states

__all__ = ["LEVELS", "literals", "states"]
