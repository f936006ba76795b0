"""Which configuration file pytest uses, and which of the project's options are left out of a measured run."""

# ruff: noqa: PTH100, PTH112, PTH113, PTH118, PTH120, PTH123
# Paths are plain strings: runners and interpreters of every age take them.

from __future__ import annotations

import os
import re

FLAGS = frozenset((
    "-x", "--exitfirst", "--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--sw", "--stepwise",
    "--sw-skip", "--stepwise-skip", "--cache-clear", "-f", "--looponfail", "--pdb", "--trace", "--no-cov",
    "--cov-append", "--cov-branch", "--no-cov-on-fail", "--cov-reset", "--random-order",
))  # fmt: skip
"""Options without a value that end a run early, order it by an earlier one, or belong to plug-ins left out."""

VALUED = frozenset((
    "-n", "--numprocesses", "--maxprocesses", "--dist", "--tx", "--rsyncdir", "--maxfail", "--last-failed-no-failures",
    "--lfnf", "--cov-report", "--cov-config", "--cov-fail-under", "--cov-context", "--junitxml", "--junit-xml",
    "--junit-prefix", "--html", "--css", "--report-log", "--random-order-bucket", "--random-order-seed",
    "--randomly-seed", "--max-worker-restart",
))  # fmt: skip
"""Options with a value, given as `--name value` or `--name=value`."""

PLUGINS = frozenset(("xdist", "pytest_cov", "pytest-cov", "cov", "randomly", "random_order", "cacheprovider"))

SECTIONS = (
    ("pytest.toml", None),
    (".pytest.toml", None),
    ("pytest.ini", None),
    (".pytest.ini", None),
    ("pyproject.toml", re.compile(r"^\s*\[\s*tool\s*\.\s*pytest\b", re.M)),
    ("tox.ini", re.compile(r"^\[pytest\]", re.M)),
    ("setup.cfg", re.compile(r"^\[tool:pytest\]", re.M)),
)
"""pytest's order of preference, with the section that makes a shared file count."""


def config_file(workspace: str, targets: list[str]) -> str:
    """The file pytest itself would choose between the targets' common folder and the workspace.

    Pinned, so that nothing outside the workspace can be found; an empty file of ours where there is none.
    """
    paths = [os.path.normpath(os.path.join(workspace, target.partition("::")[0])) for target in targets]
    folder = os.path.commonpath(paths) if paths else workspace
    if not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    while True:
        for name, section in SECTIONS:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (section is None or section.search(_text(path))):
                return path
        if folder == workspace or not folder.startswith(workspace + os.sep):
            return os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytest_empty.ini")
        folder = os.path.dirname(folder)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def arguments_without(arguments: list[str]) -> list[str]:
    """The arguments less those of FLAGS, VALUED and plug-ins that are left out. Order is kept."""
    kept = []
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        following = arguments[position + 1] if position + 1 < len(arguments) else ""
        step = _dropped(argument, following)
        if not step:
            kept.append(argument)
        position += step or 1
    return kept


def _dropped(argument: str, following: str) -> int:
    """How many arguments to drop here: none, this one, or this one and its value."""
    name, equals, _ = argument.partition("=")
    if argument in FLAGS:
        return 1
    if name in VALUED:
        return 1 if equals else 2
    if name == "--cov":
        return 1 if equals or not following or following.startswith("-") else 2
    if re.match(r"^-n(\d+|auto|logical)$", argument):
        return 1
    if argument == "-p" and following in PLUGINS:
        return 2
    return 1 if argument.startswith("-p") and argument[2:] in PLUGINS else 0
