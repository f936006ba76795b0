"""The files of envsynth that every pack holds, and the templates it is written from."""

from __future__ import annotations

from collections.abc import Iterator
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
