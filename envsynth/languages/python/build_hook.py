"""Calls a project's build back-end (PEP 517); runs inside the sandbox, in an environment of its own.

Reads JSON from standard input: `backend`, `backend_path` (relative folders), `out` (an existing folder). Writes the
wheel into `out`, or `requires.json` there when the back-end asks for distributions that are not installed.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any


def missing(requirements: list[str]) -> list[str]:
    """The requirements whose distribution is not installed, whatever its version."""
    found = []
    for line in requirements:
        match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line.strip())
        try:
            metadata.version(match.group(0) if match else line)
        except metadata.PackageNotFoundError:
            found.append(line)
    return found


def main() -> None:
    """Ask for requirements, then build."""
    config = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    out = Path(config["out"])
    here = Path.cwd()
    # A `setup.py` may import what lies beside it; back-ends in the tree are named by `backend-path`.
    sys.path[:0] = [str(here / folder) for folder in config["backend_path"]]
    module, _, attribute = config["backend"].partition(":")
    backend: Any = importlib.import_module(module)
    for part in filter(None, attribute.split(".")):
        backend = getattr(backend, part)
    ask = getattr(backend, "get_requires_for_build_wheel", None)
    wanted = missing(list(ask({}) if ask else []))
    if wanted:
        (out / "requires.json").write_text(json.dumps(wanted), "utf-8")
        return
    os.umask(0o022)
    backend.build_wheel(str(out), {})


if __name__ == "__main__":
    main()
