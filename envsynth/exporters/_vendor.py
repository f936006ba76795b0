"""The files of envsynth that every pack holds, and the templates it is written from."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template

import envsynth

_LEFT_OUT = ("sandbox/conformance", "sandbox/_docker_images")
"""Need more than the standard library, or are no use in a pack."""
_TEMPLATES = Path(__file__).parent / "templates"


def vendored() -> Iterator[tuple[str, bytes]]:
    """Relative path and content of each runtime file, sorted."""
    root = Path(envsynth.__file__).parent
    yield "errors.py", (root / "errors.py").read_bytes()
    for part in ("runtime", "sandbox"):
        for path in sorted((root / part).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and path.suffix != ".pyc" and not name.startswith(_LEFT_OUT):
                yield name, path.read_bytes()


def rendered(template: str, /, **values: str) -> bytes:
    """A template with its values filled in; a name without value is an error."""
    return Template(_TEMPLATES.joinpath(f"{template}.tmpl").read_text("utf-8")).substitute(values).encode()


def closure(module: str) -> Iterator[tuple[str, bytes]]:
    """Relative path and content of each runtime file that a module is imported with, sorted.

    What a function imports when it is called does not count; tables of words do.

    Args:
        module: inside `envsynth`, such as `runtime.record`.
    """
    root, found, left = Path(envsynth.__file__).parent, {"__init__.py": b""}, [module]
    while left:
        name = left.pop()
        place = root.joinpath(*name.split("."))
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        path = file.relative_to(root).as_posix()
        if path in found or not file.is_file():
            continue
        found[path] = file.read_bytes()
        package = name.split(".") if place.is_dir() else name.split(".")[:-1]
        left += [*_imported(found[path], package), *filter(None, [name.rpartition(".")[0]])]
    tables = {path: content for path, content in vendored() if path.startswith("runtime/words/")}
    yield from sorted((found | tables).items())


def _imported(source: bytes, package: Sequence[str]) -> Iterator[str]:
    """Modules of ours that a module imports when it is imported."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[: len(package) - node.level + 1], *filter(None, [node.module])]
            yield ".".join(base)
            yield from (".".join([*base, name.name]) for name in node.names)
