"""`consistency`: instruments that do not read the end-state checks judge the panel, and are held against its labels."""

from envsynth.validators.consistency.validator import Consistency

__all__ = ["Consistency"]
