"""The command line with a fault in it: one call of one function ends its process, or goes wrong.

Usage: `faulty.py ARGUMENTS...`, as `envsynth ARGUMENTS...`. `$FAULT` is JSON with

- `module`, `attribute`: the function, such as `envsynth.catalog.store` and `Catalog.record`;
- `when`: `before` or `after` its body;
- `number`: which call of a process that fits, 1-based;
- `match`: a part of the arguments' text that a call must have to be counted;
- `mark`: a file; the fault happens only while it is not there, and makes it;
- `action`: `kill`, or the name of an errno such as `ENOSPC`.

Worker processes import this file again, so that the fault is in them too.
"""

from __future__ import annotations

import errno
import functools
import importlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from light import interruptible, lighten


def _strike(fault: dict[str, Any]) -> None:
    try:
        os.close(os.open(fault["mark"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    if fault["action"] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    number = getattr(errno, fault["action"])
    raise OSError(number, os.strerror(number), "a file")


def _with_fault(function: Callable[..., Any], fault: dict[str, Any]) -> Callable[..., Any]:
    calls = 0

    @functools.wraps(function)
    def faulty(*positional: Any, **named: Any) -> Any:
        nonlocal calls
        fits = fault["match"] in f"{positional} {named}"
        calls += fits
        strikes = fits and calls == fault["number"]
        if strikes and fault["when"] == "before":
            _strike(fault)
        result = function(*positional, **named)
        if strikes and fault["when"] == "after":
            _strike(fault)
        return result

    return faulty


def install() -> None:
    """Put the fault in place."""
    fault = json.loads(os.environ["FAULT"])
    if Path(fault["mark"]).exists():
        return
    place: Any = importlib.import_module(fault["module"])
    *path, name = fault["attribute"].split(".")
    for part in path:
        place = getattr(place, part)
    setattr(place, name, _with_fault(getattr(place, name), fault))


lighten()
install()

if __name__ == "__main__":
    from envsynth.cli.main import main

    interruptible()
    main()
