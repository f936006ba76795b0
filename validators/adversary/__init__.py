"""`adversary`: attacks on the grader, played as an agent would play them; each must get outcome 0."""

from envsynth.validators.adversary.validator import Adversary

__all__ = ["Adversary"]
