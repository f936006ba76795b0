"""Makes the small world of `tests/worldkit.py` importable; the tests are no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

if "worldkit" not in sys.modules:
    spec = importlib.util.spec_from_file_location("worldkit", Path(__file__).parents[2] / "worldkit.py")
    assert spec
    assert spec.loader
    sys.modules["worldkit"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["worldkit"])
