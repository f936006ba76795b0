"""One run of the tests: start record, imports from the environment alone, border, then the project."""

# ruff: noqa: PTH109, PTH118
# Paths are plain strings: runners and interpreters of every age take them.

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from .channel import Channel
from .imports import install


def run(config: dict[str, Any], package: str) -> int:
    """Run the tests and write the report.

    Args:
        config: `nonce`, `report` (path), `runner`, `targets`, `arguments`, `roots`, `modules`, `collect_only`,
            `select`, `skip`, `test_s`, `compiled` (folder that pytest's byte code is kept in; empty: nowhere).
        package: name this package was imported under; it is taken out of `sys.modules` again.

    Returns:
        The runner's exit status.
    """
    channel = Channel(str(config["report"]), str(config["nonce"]))
    channel.send("start", python=list(sys.version_info[:3]))
    runner = importlib.import_module(f"{package}.{config['runner']}_report")
    workspace = os.getcwd()
    roots = [os.path.normpath(os.path.join(workspace, root)) for root in config["roots"]]
    if workspace not in roots:
        roots.append(workspace)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    os.environ.setdefault("PYTHONPATH", os.pathsep.join(roots))
    channel.send("ready")
    os.write(1, f"envsynth-ready {config['nonce']}\n".encode("ascii"))
    install(roots, list(config["modules"]))
    status = int(runner.run(config, channel, workspace))
    channel.send("finish", status=status)
    return status
