"""YAML that remembers its lines, so that every fault of a document can be named by file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Fault(NamedTuple):
    """What is wrong with a document."""

    where: str
    """`file:line`."""
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class BadYaml(Exception):
    """A file is no YAML at all, or says a key twice."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Lines:
    """Where the parts of one YAML file stand."""

    def __init__(self, path: Path, node: Any) -> None:
        self.path = path
        self._node = node

    def at(self, *place: str | int) -> str:
        """`file:line` of a part.

        Args:
            place: keys from the root; a number counts the entries of a mapping as well as of a list. What is not there
                counts as the nearest part around it.
        """
        node, line = self._node, 1
        for step in place:
            found = _child(node, step)
            if found is None:
                break
            node, line = found
        return f"{self.path}:{line}"


def read_yaml(path: Path) -> tuple[Any, Lines]:
    """The value of a file, and where its parts stand.

    Raises:
        BadYaml: it cannot be read.
    """
    try:
        loader = _Loader(path.read_text("utf-8"))
        try:
            node = loader.get_single_node()
            for key in _repeated(node):
                line = key.start_mark.line + 1
                raise BadYaml(Fault(f"{path}:{line}", f"{key.value!r} stands there twice"))
            return (None if node is None else loader.construct_document(node)), Lines(path, node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise BadYaml(Fault(f"{path}:{line}", f"no YAML: {exc.problem or exc.context}")) from exc
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
        raise BadYaml(Fault(f"{path}:1", f"cannot be read: {exc}".replace("\n", " "))) from exc


def _repeated(node: Any) -> Iterator[Any]:
    """Keys of a mapping that an earlier one of it has already."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield key
            seen.add(key.value)
            yield from _repeated(value)
    elif isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _repeated(child)


def _child(node: Any, step: str | int) -> tuple[Any, int] | None:
    pairs: Sequence[tuple[Any, Any]]
    if isinstance(node, yaml.MappingNode):
        pairs = node.value
        if isinstance(step, int):
            return _placed(pairs[step]) if 0 <= step < len(pairs) else _of_key(pairs, str(step))
        return _of_key(pairs, step)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
        child = node.value[step]
        return child, child.start_mark.line + 1
    return None


def _of_key(pairs: Sequence[tuple[Any, Any]], wanted: str) -> tuple[Any, int] | None:
    return next((_placed(pair) for pair in pairs if pair[0].value == wanted), None)


def _placed(pair: tuple[Any, Any]) -> tuple[Any, int]:
    return pair[1], pair[0].start_mark.line + 1
