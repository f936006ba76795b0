"""`leakage`: nothing of the fix or of the hidden tests is within an agent's reach."""

from envsynth.validators.leakage.validator import Leakage

__all__ = ["Leakage"]
