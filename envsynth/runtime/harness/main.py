"""Entry point inside the sandbox; reads its configuration, one JSON document, from standard input.

Nothing of the workspace has run, and none of its folders is on the import path, until the line `envsynth-ready`
is printed. That line is therefore the border between an environment that failed (ours) and a run that says
something about the code under test. Started with `-s` and a scrubbed environment instead of `-I`, because `-I`
would also ignore PYTHONHASHSEED and make set order differ between identical runs.
"""

# ruff: noqa: PTH100, PTH119, PTH120
# Paths are plain strings: runners and interpreters of every age take them.

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys


def main() -> None:
    """Run the tests that standard input asks for, and leave without `atexit` handlers.

    A handler registered by the code under test could otherwise rewrite the report after it was finished.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[0] = os.path.dirname(here)
    package = os.path.basename(here)
    run = importlib.import_module(package + ".run").run
    del sys.path[0]
    config = json.loads(sys.stdin.buffer.read().decode("ascii"))
    status = run(config, package)
    for stream in (sys.stdout, sys.stderr):
        # The code under test may have closed or replaced it; the report does not depend on it.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
