"""Where the console script begins: what is imported takes a while, and Ctrl-C in it is no error either."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process."""
    try:
        from envsynth.cli.main import main as command_line
    except KeyboardInterrupt:
        sys.stderr.write("envsynth: interrupted; nothing was begun\n")
        sys.exit(130)
    command_line()
