"""Import order: what the environment and the standard library provide is never taken from the workspace.

Without this a `json.py`, `pytest.py` or `hypothesis.py` in the project's root would replace the real one as soon
as the runner puts that folder on the import path.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from typing import Any


class EnvironmentFirst:
    """Meta path finder that answers for top-level names before the usual search along `sys.path`.

    Args:
        base: import path of the environment alone.
        roots: folders of the project's source.
        own: names the project itself provides although the environment has them too; those come from `roots`.
    """

    def __init__(self, base: list[str], roots: list[str], own: list[str]) -> None:
        self._base = list(base)
        self._roots = list(roots)
        self._own = frozenset(own)

    def find_spec(self, name: Any, path: Any = None, target: Any = None) -> Any:
        """Spec of a top-level module of the environment (or an own one of the roots), else None."""
        if path is not None:
            return None
        if name in self._own:
            return PathFinder.find_spec(name, self._roots)
        spec = PathFinder.find_spec(name, self._base)
        # A namespace package of the environment may have parts in the workspace: leave it to the usual search.
        return spec if spec is not None and spec.loader is not None else None


def install(roots: list[str], own: list[str]) -> None:
    """Make the project importable behind the environment, and forget copies of it that are already loaded."""
    base = list(sys.path)
    finder = EnvironmentFirst(base, roots, own)
    place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
    sys.meta_path.insert(place, finder)
    sys.path.extend(root for root in roots if root not in base)
    for name in list(sys.modules):
        top = name.partition(".")[0]
        where = getattr(sys.modules[name], "__file__", None) or ""
        if top in own and top not in ("pytest", "_pytest") and "site-packages" in where:
            del sys.modules[name]
