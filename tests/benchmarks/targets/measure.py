"""One player in one process: checks it against the script, then times a round for every line on standard input.

Usage: python measure.py PLAYER      (with the ledger's folder and the pack on the import path)

Prints a JSON line with versions, then one with the rates of each round: operations a second of processor time, of this
process and of the server that it may have, and of wall time; medians over chunks.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

# The ledger's module of this one's name, and not this one.
_SPEC = importlib.util.spec_from_file_location("ledger_measure", Path(__file__).parents[1] / "ledger" / "measure.py")
assert _SPEC is not None
assert _SPEC.loader is not None
ledger: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(ledger)

PLAYERS = {
    "gymnasium": "players.plain_gym:GymnasiumPlayer",
    "gymnasium texts": "gym_players:TextsPlayer",
    "gymnasium emitted": "gym_players:EmittedPlayer",
    "OpenEnv": "players.openenv_env:OpenEnvPlayer",
    "OpenEnv emitted": "openenv_players:EmittedPlayer",
    "OpenEnv served": "openenv_players:ServedPlayer",
    "OpenEnv emitted, served": "openenv_players:EmittedServedPlayer",
    "verifiers MCP": "players.verifiers_env:McpPlayer",
    "verifiers emitted": "verifiers_players:EmittedPlayer",
}
"""Module and class by the name that tables have."""
CHUNK_S = 0.01
CHUNKS = 11
SINGLES = 51
"""Chunks of what is timed one by one."""


def process_clock(pid: int) -> int:
    """The clock of another process's processor time, as clock_getcpuclockid(3) makes it."""
    return (~pid << 3) | 2


def rates(timed: Any, clocks: list[int]) -> list[float]:
    """Operations a second of processor time and of wall time, medians over chunks."""
    begin, work, each, most = timed

    def seconds(count: int) -> tuple[float, float]:
        cpu, wall = sum(map(time.clock_gettime, clocks)), time.perf_counter()
        work(count)
        return sum(map(time.clock_gettime, clocks)) - cpu, time.perf_counter() - wall

    begin()
    count = 1
    while count < most and seconds(count)[1] < CHUNK_S / 2:
        count = min(most, count * 2)
        begin()
    measured = []
    for _ in range(CHUNKS if most > 1 else SINGLES):
        begin()
        measured.append(seconds(count))
    return [each * count / statistics.median(values) for values in zip(*measured, strict=True)]


def main() -> int:
    """Check, then time rounds until standard input ends."""
    name = sys.argv[1]
    module, _, kind = PLAYERS[name].partition(":")
    player = getattr(importlib.import_module(module), kind)()
    player.forks = False
    try:
        ledger.check(player)
        versions = {"Python": platform.python_version(), **player.versions()}
        print(json.dumps({"versions": versions, "notes": [player.note] if player.note else []}), flush=True)
        server = getattr(player, "server", None)
        clocks = [time.CLOCK_PROCESS_CPUTIME_ID, *([process_clock(server)] if server else [])]
        timed = ledger.timings(player)
        for _ in sys.stdin:
            print(json.dumps({what: rates(found, clocks) for what, found in timed.items()}), flush=True)
    finally:
        player.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
