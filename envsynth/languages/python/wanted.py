"""A recipe as it is asked for, before anything is resolved: what a model proposes, or a file names."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import Field, ValidationError

from envsynth.errors import ConfigError
from envsynth.models import Finding, Model, Source

__all__ = ["WantedRecipe", "unfit_parts", "wanted_by"]

_MAX_REQUIREMENTS = 200
_MAX_VARIABLES = 50
"""So many fit a command's environment; one that does not would count as the sandbox's failure."""
_MAX_LINE = 300
_MAX_VALUE = 500
_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_RESERVED = re.compile(
    r"(?:PYTHON|PYTEST|COV|LD_|DYLD_|UV_|PIP_|GIT_|SSL_|BASH)\w*|PATH|HOME|USER|LOGNAME|SHELL|ENV|IFS|TMPDIR|TEMP|TMP|"
    r"VIRTUAL_ENV|PS\d|\w*(?:PROXY|PRELOAD|STARTUP)\w*",
    re.I,
)
"""Variables that decide what is run, or how tests are judged."""


class WantedRecipe(Model):
    """The environment of a Python project, as it is asked for."""

    python: str = Field(max_length=10)
    """Version of the interpreter: `3.11`. One of those that are installed."""
    requirements: tuple[str, ...] = Field(default=(), max_length=_MAX_REQUIREMENTS)
    """Everything that the tests need but the project itself, one PEP 508 requirement each: names, extras and version
    limits, such as `attrs[tests]>=22,<23`. No URLs, paths or options of installers."""
    newest: str = Field(default="", max_length=40)
    """Day as YYYY-MM-DD: nothing that was published later is installed. Empty: the day of the project's commit."""
    build: bool = True
    """Whether the project is built, for its metadata and for files that its build makes; false: its source is used as
    it stands."""
    variables: dict[str, str] = Field(default_factory=dict, max_length=_MAX_VARIABLES)
    """Environment variables that the tests need, with plain values."""


def unfit_parts(wanted: WantedRecipe, interpreters: Sequence[str], own: Container[str] = ()) -> Iterator[Finding]:
    """What speaks against a recipe before it is tried.

    Args:
        wanted: the recipe.
        interpreters: versions that are installed.
        own: what the project itself may be called, normalised; a release of it would hold what tasks ask for.
    """
    if wanted.python not in interpreters:
        message = f"Python {wanted.python[:20]!r} is not installed; installed: {', '.join(interpreters)}"
        yield Finding(rule="recipe_unfit", where="python", message=message)
    for line in wanted.requirements:
        if wrong := _wrong_requirement(line, own):
            yield Finding(rule="recipe_unfit", where="requirements", message=f"{line[:80]!r} {wrong}")
    if wanted.newest and not _is_past_day(wanted.newest):
        message = f"{wanted.newest!r} is no day of the past, written YYYY-MM-DD"
        yield Finding(rule="recipe_unfit", where="newest", message=message)
    for name, value in wanted.variables.items():
        if _VARIABLE.fullmatch(name) is None or _RESERVED.fullmatch(name):
            yield Finding(rule="recipe_unfit", where="variables", message=f"{name[:60]!r} may not be set")
        elif len(value) > _MAX_VALUE or not value.isprintable():
            yield Finding(rule="recipe_unfit", where="variables", message=f"the value of {name} is no short text")


def wanted_by(source: Source, interpreters: Sequence[str], own: Container[str]) -> WantedRecipe | None:
    """The recipe that a source's option `recipe=FILE` names; None: it names none.

    Args:
        source: with the option, or without.
        interpreters: versions that are installed.
        own: what the project itself may be called, normalised.

    Raises:
        ConfigError: the file cannot be read, or holds no recipe, or what no recipe may hold.
    """
    name = dict(source.extra).get("recipe")
    if not name:
        return None
    path = Path(name)
    try:
        wanted = WantedRecipe.model_validate_json(path.read_bytes())
    except OSError as exc:
        cause = exc.strerror or type(exc).__name__
    except ValidationError as exc:
        cause = str(exc.errors()[0]["msg"])
    else:
        unfit = next(unfit_parts(wanted, interpreters, own), None)
        if unfit is None:
            return wanted
        cause = f"{unfit.where}: {unfit.message}"
    raise ConfigError(
        "the recipe cannot be used", where=f"{source.origin}: {path}", cause=" ".join(cause.split())[:300],
        next_step="name a JSON file with python, requirements, newest, build and variables, as a repair keeps it",
    )  # fmt: skip


def _wrong_requirement(line: str, own: Container[str]) -> str:
    """What is wrong with a requirement line; nothing: it names distributions of the registry and no more."""
    if len(line) > _MAX_LINE or not line.isprintable():
        return "is no short line"
    if set("$\\`{}#") & set(line) or line.lstrip().startswith("-"):
        return "has signs that no requirement needs"
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return "is no PEP 508 requirement"
    if canonicalize_name(requirement.name) in own:
        return "is the project itself, which is not installed from the registry"
    return "names an address; only the registry may be used" if requirement.url is not None else ""


def _is_past_day(text: str) -> bool:
    try:
        return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None and date.fromisoformat(text) <= _today()
    except ValueError:
        return False


def _today() -> date:
    return datetime.now(UTC).date()
