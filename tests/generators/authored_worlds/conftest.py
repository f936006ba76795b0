"""Makes what reads the scripts importable."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def _import(path: Path) -> None:
    """Import a module that lies beside the tests, as tests that are imported by their path cannot do themselves."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)


_import(Path(__file__).with_name("authored_scripts.py"))
