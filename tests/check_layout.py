"""Check what no linter does: the sizes of files and functions."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

MAX_FILE, MAX_FUNCTION = 500, 60
ROOT = Path(__file__).parent.parent
FOLDERS = ("envsynth", "generators", "validators", "tests")


def findings() -> list[str]:
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT)
            if name.parts[:2] in (("envsynth", "generators"), ("envsynth", "validators")):
                continue
            text = path.read_text("utf-8")
            lines = text.count("\n")
            if lines > MAX_FILE:
                found.append(f"{name}: {lines} lines, more than {MAX_FILE}")
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    size = (node.end_lineno or 0) - node.lineno + 1
                    if size > MAX_FUNCTION:
                        found.append(f"{name}:{node.lineno}: {node.name} has {size} lines, more than {MAX_FUNCTION}")
    return found


if __name__ == "__main__":
    found = findings()
    print("\n".join(found) or "layout: fine")
    sys.exit(1 if found else 0)
