"""How much an instruction says: four levels, what each asks of a text, and which one a lead gets.

| level | a text of it | named | values |
|---|---|---|---|
| 0 | specification | every function under test | every one that the tests demand and the repository does not give |
| 1 | good bug report (default) | one function under test | one of each failing test, the rest by the rule in words |
| 2 | description in words | a function or its module, no call written out | one of each changed or new function |
| 3 | what a user would report | nothing that exists already | one concrete case |

New names, chosen literals and kinds of errors are told at every level: nobody could guess them (`sufficiency`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from envsynth.generators.repository.interface import defined_names
from envsynth.generators.repository.stated import Stated
from envsynth.generators.repository.sufficiency import COMPLAINT, DESCRIPTION, SPECIFICATION, Needs
from envsynth.leaks import Secrets, leaks
from envsynth.models import Finding
from envsynth.seeds import stream

__all__ = ["LEVELS", "level_of", "misfit"]

LEVELS = (0, 1, 2, 3)


def level_of(levels: Sequence[int], seed: int, ref: str) -> int:
    """The level of a lead, of those that a source asks for.

    Drawn by what the lead points at and not by its place in the plan, so that a new commit changes no other lead.
    """
    return stream(f"{seed}/{ref}", "repository/vagueness").choice(tuple(levels))


def misfit(text: str, needs: Needs, level: int) -> list[Finding]:
    """What of a text is more, or less, than its level allows."""
    if level == COMPLAINT:
        return _too_precise(leaks(text, _existing(needs)), "it names what a user would not know")
    said = Stated(text)
    if level == DESCRIPTION:
        written = [name for name in needs.existing if re.search(rf"(?<!\w){re.escape(name)}\([^)\s]", text)]
        return [*_too_precise(written, "it writes out calls"), *_unnamed(said, [*needs.subjects, *_places(needs)])]
    if level == SPECIFICATION:
        firsts = [next((name for value in group.values for name in value.subjects if name in needs.subjects), "")
                  for group in needs.groups]  # fmt: skip
        missing = [name for name in dict.fromkeys(firsts) if name and not said.names(name)]
        return [Finding(rule="too_vague", message=f"it does not name {', '.join(missing[:5])}")] if missing else []
    return _unnamed(said, needs.subjects)


def _too_precise(names: Sequence[str], what: str) -> list[Finding]:
    return [Finding(rule="too_precise", message=f"{what}: {', '.join(names[:5])}")] if names else []


def _unnamed(said: Stated, names: Sequence[str]) -> list[Finding]:
    """Nothing, where one of some names is said."""
    if not names or any(said.names(name) for name in names):
        return []
    return [Finding(rule="too_vague", message=f"it does not say what it is about: none of {', '.join(names[:5])}")]


def _existing(needs: Needs) -> Secrets:
    """Names of what misbehaves, as far as the changed files define them, in the shape of what no text may say."""
    defined = defined_names(change.before for change in needs.facts.changes)
    changed = {part for name in needs.facts.functions for part in name.split(".")}
    names = {name for name in (*needs.existing, *changed) if name in defined}
    shaped = frozenset(name for name in names if re.search(r"_|[a-z][A-Z]|\d", name.strip("_")))
    return Secrets(shaped, frozenset(names) - shaped, frozenset(), frozenset())


def _places(needs: Needs) -> list[str]:
    """Names of the modules, packages and classes that the solution changes."""
    stems = [part for change in needs.facts.changes for part in change.path.removesuffix(".py").split(posixpath.sep)]
    classes = [name.split(".")[0] for name in needs.facts.functions if "." in name]
    return [
        name for name in dict.fromkeys([*classes, *stems]) if name not in ("src", "lib", "__init__", "core", "utils")
    ]
