"""The Python language plug-in."""

from envsynth.languages.python.language import Python

__all__ = ["Python"]
