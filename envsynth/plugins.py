"""Plug-ins by entry point: listed without importing anything, loaded by name.

A plug-in package exports exactly one class in `__all__`; the class is made without arguments and follows the
group's protocol in `envsynth.protocols`.
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, overload

from envsynth.errors import ConfigError, boundary

if TYPE_CHECKING:
    from envsynth.protocols import Exporter, Generator, Language, Validator
    from envsynth.runtime.contract import Backend

__all__ = ["GROUPS", "Group", "Plugin", "listing", "load", "names"]

Group = Literal["generators", "validators", "exporters", "languages", "sandboxes"]
GROUPS: tuple[Group, ...] = get_args(Group)


class Plugin(NamedTuple):
    """One installed plug-in, not imported."""

    group: str
    name: str
    module: str
    """Dotted path of the package that exports the class."""
    distribution: str
    """Who ships it: distribution name and version."""


def listing(group: Group) -> list[Plugin]:
    """The group's plug-ins, by name. Imports none of them.

    Raises:
        ConfigError: there is no such group, or two distributions claim one name.
    """
    return list(_registry(group).values())


def names(group: Group) -> list[str]:
    """The group's plug-in names, sorted."""
    return sorted(_registry(group))


@overload
def load(group: Literal["generators"], name: str) -> type[Generator]: ...
@overload
def load(group: Literal["validators"], name: str) -> type[Validator]: ...
@overload
def load(group: Literal["exporters"], name: str) -> type[Exporter]: ...
@overload
def load(group: Literal["languages"], name: str) -> type[Language]: ...
@overload
def load(group: Literal["sandboxes"], name: str) -> type[Backend]: ...
def load(group: Group, name: str) -> Any:
    """The class that a plug-in exports.

    Raises:
        ConfigError: no plug-in of that name, its import failed, or it exports no class or several.
    """
    registry = _registry(group)
    if name not in registry:
        close = difflib.get_close_matches(name, registry, n=1)
        raise ConfigError(
            f"there is no {group[:-1] if group != 'sandboxes' else 'sandbox'} named {name!r}",
            cause=f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(registry)) or 'none'}",
            next_step="envsynth plugins",
        )
    return _exported(registry[name])


def _exported(plugin: Plugin) -> type:
    where = f"plug-in {plugin.name} ({plugin.module}, from {plugin.distribution})"
    what = f"the plug-in cannot be imported; python -c 'import {plugin.module}' shows the traceback"
    with boundary(ConfigError, what, where=where):
        module = import_module(plugin.module)
    exported = [getattr(module, name, None) for name in getattr(module, "__all__", ())]
    classes = [value for value in exported if isinstance(value, type)]
    if len(classes) != 1:
        found = ", ".join(value.__name__ for value in classes) or "none"
        raise ConfigError(
            f"the plug-in exports {len(classes) or 'no'} class{'es' if len(classes) > 1 else ''} in __all__, not one",
            where=where, cause=f"found: {found}", next_step=f"name exactly one class in __all__ of {plugin.module}",
        )  # fmt: skip
    return classes[0]


@cache
def _registry(group: str) -> dict[str, Plugin]:
    if group not in GROUPS:
        raise ConfigError(f"there is no plug-in group {group!r}", cause=f"known: {', '.join(GROUPS)}")
    found: dict[str, Plugin] = {}
    for entry in metadata.entry_points(group=f"envsynth.{group}"):
        owner = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "unknown distribution"
        plugin = Plugin(group, entry.name, entry.value, owner)
        other = found.get(entry.name)
        if other is not None and other.module != plugin.module:
            raise ConfigError(
                f"two plug-ins of group {group} are named {entry.name!r}",
                where=f"{other.distribution} and {owner}", next_step="uninstall one of them",
            )  # fmt: skip
        found[entry.name] = plugin
    return dict(sorted(found.items()))
