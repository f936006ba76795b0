"""Console scripts of an environment that is mounted elsewhere than it was built."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable
from pathlib import Path

LAUNCHER = """#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")"/python "$0" "$@"
' '''
"""
"""Shell and Python at once: finds the interpreter beside the script."""


def entry_point_scripts(site: Path, programs: Path, metadata_folders: Iterable[str]) -> None:
    """Write the console scripts that the given `*.dist-info` folders of `site` declare."""
    for folder in sorted(metadata_folders):
        declared = site / folder / "entry_points.txt"
        if not folder.endswith(".dist-info") or not declared.is_file():
            continue
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        try:
            parser.read_string(declared.read_text("utf-8", "replace"))
        except configparser.Error:
            continue
        for name, target in parser.items("console_scripts") if parser.has_section("console_scripts") else ():
            match = re.fullmatch(r"([\w.]+)\s*:\s*([\w.]+)\s*(\[.*\])?", target.strip())
            if match is None or not re.fullmatch(r"[\w.+-]+", name) or (programs / name).exists():
                continue
            module, function = match[1], match[2]
            body = f"import sys\n\nfrom {module} import {function.partition('.')[0]}\n\nsys.exit({function}())\n"
            (programs / name).write_text(LAUNCHER + body)
            (programs / name).chmod(0o755)


def make_relocatable(programs: Path) -> None:
    """Replace absolute interpreter lines by the launcher, where the build tool did not."""
    for script in programs.iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        content = script.read_bytes()
        first, _, rest = content.partition(b"\n")
        if re.match(rb"#!/\S*/python[\d.]*\s*$", first) and not first.startswith(b"#!/usr/bin/"):
            script.write_bytes(LAUNCHER.encode() + rest)
