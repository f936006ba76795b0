"""Tasks from git repositories."""

from envsynth.generators.repository.generator import Repository

__all__ = ["Repository"]
