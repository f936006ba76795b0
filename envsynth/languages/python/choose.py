"""Which of the installed interpreters fits a project at a date."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envsynth.errors import NoInterpreter
from envsynth.runtime.interpreters import Interpreter, installed_interpreters, version_tuple

OLDEST = (3, 8)
"""Below this the runners of the day no longer work with what is installed elsewhere."""


@cache
def releases() -> dict[str, str]:
    """Release date of x.y.0, by version."""
    table: dict[str, str] = json.loads(files(__package__).joinpath("python_releases.json").read_text("utf-8"))
    return table


def fitting_interpreters(
    requires: str, *, newest: str, cap: str, where: str, installed: tuple[Interpreter, ...] | None = None
) -> list[Interpreter]:
    """Installed interpreters that may be used, best first.

    Best is the newest one that had been released by `newest` and does not exceed `cap`; then the others that the
    project allows, the older ones first, since what came after the project's time is less likely to work.

    Args:
        requires: the project's own demand, such as `>=3.8`; empty: none.
        newest: ISO 8601 date of the tree.
        cap: highest version that the project's classifiers name; empty: none.
        where: names the project in the error.
        installed: for tests; None: what is on this machine.

    Raises:
        NoInterpreter: nothing installed satisfies `requires`.
    """
    known = installed_interpreters() if installed is None else installed
    try:
        demand = SpecifierSet(requires)
    except InvalidSpecifier:
        demand = SpecifierSet()
    allowed = [
        one
        for one in known
        if version_tuple(one.version) >= OLDEST and demand.contains(f"{one.version}.{one.patch}", prereleases=True)
    ]
    if not allowed:
        have = ", ".join(f"{one.version}.{one.patch}" for one in known) or "none"
        raise NoInterpreter(
            "no installed Python fits this project", where=where,
            cause=f"it requires Python {requires or '>=3.8'}; installed: {have}",
            next_step=_advice(demand, newest),
        )  # fmt: skip
    day = newest[:10]

    def timely(one: Interpreter) -> bool:
        within = not cap or version_tuple(one.version) <= version_tuple(cap)
        return within and releases().get(one.version, "9999") <= day

    early = sorted(filter(timely, allowed), key=lambda one: version_tuple(one.version), reverse=True)
    late = sorted((one for one in allowed if not timely(one)), key=lambda one: version_tuple(one.version))
    return early + late


def usable_versions() -> list[str]:
    """Versions of the installed interpreters on which tests can be run, oldest first."""
    return [one.version for one in installed_interpreters() if version_tuple(one.version) >= OLDEST]


def _advice(demand: SpecifierSet, newest: str) -> str:
    """What to install: the newest release of the project's time that it allows, else the oldest later one."""
    known = [version for version in releases() if version_tuple(version) >= OLDEST]
    # A demand such as >=3.11.4 is met by a patch release of 3.11, though not by its first.
    fit = [one for one in known if any(demand.contains(f"{one}.{patch}") for patch in (0, 99))]
    if not fit:
        return f"leave the source out: no Python from {OLDEST[0]}.{OLDEST[1]} on satisfies it"
    timely = [one for one in fit if releases()[one] <= newest[:10]]
    best = max(timely, key=version_tuple) if timely else min(fit, key=version_tuple)
    return f"install one that fits (`uv python install {best}`, pyenv or the system's package)"
