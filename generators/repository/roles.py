"""What a path is to a solution, decided by the language's rules."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envsynth.models import Role, RoleRule


class RoleBook:
    """The ordered rules of a language, compiled; the first pattern found in a path decides."""

    def __init__(self, rules: Iterable[RoleRule]) -> None:
        self.rules = tuple(rules)
        self._compiled = [(re.compile(rule.pattern), rule.role) for rule in self.rules]
        self._known: dict[str, Role] = {}

    def __call__(self, path: str) -> Role:
        """The role of a relative POSIX path."""
        role = self._known.get(path)
        if role is None:
            role = next((role for pattern, role in self._compiled if pattern.search(path)), Role.OTHER)
            self._known[path] = role
        return role

    def graded(self, path: str) -> bool:
        """Whether the grader lays its own copy of a path: tests, and whatever decides how they run."""
        return self(path) in (Role.TEST, Role.CONFIG)
