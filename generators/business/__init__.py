"""Tasks from business scenarios."""

from envsynth.generators.business.generator import Business

__all__ = ["Business"]
