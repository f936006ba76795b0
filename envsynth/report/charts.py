"""Plots: Vega-Lite documents of `charts/`, filled with rows and drawn as SVG.

Colours are CSS variables of the page, so that one drawing fits light, dark and paper.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from envsynth.errors import ConfigError

__all__ = ["draw", "require_drawing"]

_FOLDER = Path(__file__).with_name("charts")
_VERSION = "6.1"
"""Of Vega-Lite."""


def require_drawing() -> None:
    """See that what the report is drawn with is installed.

    Raises:
        ConfigError: it is not.
    """
    try:
        import jinja2  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as exc:
        raise ConfigError(
            f"the report needs {exc.name}, which is not installed", where="envsynth report",
            next_step='pip install "envsynth[report]"',
        ) from None  # fmt: skip


def draw(name: str, rows: Sequence[Mapping[str, Any]], **changes: Any) -> str:
    """One plot as an SVG element.

    Args:
        name: of its document in `charts/`.
        rows: what is drawn.
        changes: replace top-level parts of the document, such as `height`.
    """
    import vl_convert

    document = {**_document(name), "datasets": {"rows": list(rows)}, "config": _document("config"), **changes}
    return str(vl_convert.vegalite_to_svg(document, vl_version=_VERSION))


@cache
def _document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return found
