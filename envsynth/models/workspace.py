"""Workspace: an environment that is a directory of files plus a shell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import ClassVar, Literal

from pydantic import Field

from envsynth.models.base import Digest, Model, digest_of


class Role(StrEnum):
    """What a file is to a solution."""

    SOURCE = "source"
    TEST = "test"
    CONFIG = "config"
    """Runner configuration, start-up hooks, packaging: whatever could change how tests run."""
    OTHER = "other"


class RoleRule(Model):
    """The first rule whose pattern is found in a path decides its role; no rule: `other`."""

    pattern: str
    """Regular expression (Python `re`), searched in the relative POSIX path."""
    role: Role


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def role_of(path: str, rules: Sequence[RoleRule]) -> Role:
    """The role of a relative path: the first rule whose pattern is found in it, else `other`."""
    return next((rule.role for rule in rules if _compiled(rule.pattern).search(path)), Role.OTHER)


class Recipe(Model):
    """How to rebuild the interpreter environment anywhere; its digest is the environment's identity."""

    language: str
    """Name of the language plug-in."""
    interpreter: str
    """Version the environment was built with, such as `3.11`."""
    requires: str = ""
    """What the project itself demands, such as `>=3.8`."""
    requirements: tuple[str, ...]
    """Every installed distribution, pinned: `name==version`, sorted."""
    newest: str
    """Nothing published after this moment was installed (ISO 8601 date)."""
    site: Digest | None = None
    """Tree blob of files laid into the environment's library folder: the project's own metadata."""

    def digest(self) -> str:
        """Identity of the environment: what it is made of, and not what was asked for to arrive there."""
        return digest_of(self.model_dump(mode="json", exclude={"requires", "newest"}))


class TestCommand(Model):
    """How the project's tests are run."""

    __test__: ClassVar[bool] = False

    runner: Literal["pytest", "unittest"]
    targets: tuple[str, ...]
    """Relative paths to collect from, never empty."""
    arguments: tuple[str, ...] = ()
    """Further arguments of the runner."""
    roots: tuple[str, ...] = (".",)
    """Relative folders that hold the importable source, in the order of the import path."""
    modules: tuple[str, ...] = ()
    """Top-level import names that the project provides although the environment or the standard library has them
    too: imported from the project. Any other name that the environment has never comes from the workspace."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables."""
    timeout_s: float = Field(default=300.0, gt=0)
    """Wall seconds for the whole run."""
    test_timeout_s: float = Field(default=60.0, gt=0)
    """Wall seconds for one test; it then counts as failed and the others go on."""
    memory_bytes: int = Field(default=4 * 2**30, gt=0)
    """Memory limit of the run."""


class Workspace(Model):
    """The environment of a code task."""

    kind: Literal["workspace"] = "workspace"
    tree: Digest
    """Tree blob of the start tree."""
    hidden: Digest
    """Tree blob of the pristine test and configuration files that grading lays over the start tree.
    Every path of role test or config that is absent here is absent when tests run."""
    recipe: Recipe
    command: TestCommand
    roles: tuple[RoleRule, ...]
    allowed: tuple[str, ...] = ()
    """Paths of role test or config that a solution may change all the same, because the reference does."""
