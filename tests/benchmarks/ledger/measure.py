"""One player in one process: checks it against the script, then times a round for every line on standard input.

Usage: python measure.py PLAYER [--check]     (`--check`: no timing; exit code 1 when an answer is not the script's)

Prints a JSON line with versions, then one with the rates (operations a second of processor time,
medians over chunks) of each round.
"""

from __future__ import annotations

import importlib
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from players.base import Player
from script import ANSWERS, SCRIPT, TIMED, Call

PLAYERS = {
    "envsynth": "envsynth_world:EnvsynthPlayer",
    "envsynth gym": "envsynth_world:AdapterPlayer",
    "gymnasium": "plain_gym:GymnasiumPlayer",
    "OpenEnv": "openenv_env:OpenEnvPlayer",
    "verifiers": "verifiers_env:VerifiersPlayer",
    "verifiers MCP": "verifiers_env:McpPlayer",
    "skyrl-gym": "skyrl_env:SkyrlPlayer",
}
"""Module and class by the name that tables have."""
CHUNK_S = 0.004
CHUNKS = 11
SINGLES = 101
"""Chunks of what is timed one by one."""
PAIRS = 100
"""Most pairs of calls of an episode, so that no framework's history grows without end."""

Timed = tuple[Callable[[], Any], Callable[[int], Any], int, int]
"""What is done before a chunk, the work of n turns, operations a turn, most turns of a chunk."""


def player_of(name: str) -> Player:
    """The player of a name.

    Raises:
        ImportError: its framework is not installed.
    """
    module, _, kind = PLAYERS[name].partition(":")
    player: Player = getattr(importlib.import_module(f"players.{module}"), kind)()
    return player


def check(player: Player) -> None:
    """Play the script.

    Raises:
        AssertionError: an answer, a grade or the independence of a fork is not as it must be.
    """
    player.reset()
    assert not player.grades or player.grade() == 0.0, "an untouched ledger passes"
    for call, wanted in zip(SCRIPT, ANSWERS, strict=True):
        got = player.answer(player.act(player.action(call)))
        assert got == wanted, f"{call.tool}: {got!r} where {wanted!r} is expected"
    if player.forks:
        _check_fork(player)
    if player.grades:
        assert player.grade() == 1.0, "the solved ledger fails"
    assert player.finish() == 1.0, "the solved ledger gets no reward"


def _check_fork(player: Player) -> None:
    read = player.action(Call("balance", {"account": 1}))
    twin = player.fork()
    paid = twin.answer(twin.act(twin.action(Call("deposit", {"account": 1, "amount": 1}))))
    kept = player.answer(player.act(read))
    assert (paid["balance"], kept["balance"]) == (7501, 7500), "a call on a fork changes what it was forked from"


def timings(player: Player) -> dict[str, Timed]:
    """What is timed of a player."""
    script = [player.action(call) for call in SCRIPT]

    def solve() -> None:
        player.reset()
        for action in script:
            player.act(action)

    # One by one: what a reset takes depends on what there is to be undone.
    found: dict[str, Timed] = {"reset": (solve, lambda count: player.reset(), 1, 1)}
    for name, calls in TIMED.items():
        actions = [player.action(call) for call in calls]

        def begin(actions: list[Any] = actions) -> None:
            player.reset()
            player.acts(actions, 1)

        found[name] = (begin, partial(player.acts, actions), 2, PAIRS)
    if player.forks:
        found["fork"] = (solve, player.forks_made, 1, 10_000)
    if player.grades:
        found["grade"] = (solve, player.grades_made, 1, 10_000)
    found["episode"] = (player.reset, partial(player.episodes, script), 1, 10_000)
    return found


def rate(timed: Timed) -> float:
    """Operations a second, the median over chunks."""
    begin, work, each, most = timed
    begin()
    count = 1
    while count < most and _seconds(work, count) < CHUNK_S / 2:
        count = min(most, count * 2)
        begin()
    seconds = []
    for _ in range(CHUNKS if most > 1 else SINGLES):
        begin()
        seconds.append(_seconds(work, count))
    return each * count / statistics.median(seconds)


def _seconds(work: Callable[[int], Any], count: int) -> float:
    # Processor time: on a shared machine the wall clock also counts what others do.
    began = time.process_time()
    work(count)
    return time.process_time() - began


def main() -> int:
    """Check, then time rounds until standard input ends."""
    name = sys.argv[1]
    player = player_of(name)
    notes = []
    try:
        check(player)
    except AssertionError as wrong:
        if "--check" in sys.argv or "fork" not in str(wrong):
            print(f"{name}: {wrong}", file=sys.stderr)
            return 1
        player.forks = False
        check(player)
        notes = [f"no forks: {wrong}"]
    if "--check" in sys.argv:
        return 0
    notes += [player.note] if player.note else []
    versions = {"Python": platform.python_version(), **player.versions()}
    print(json.dumps({"versions": versions, "notes": notes}), flush=True)
    timed = timings(player)
    for _ in sys.stdin:
        print(json.dumps({what: rate(found) for what, found in timed.items()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
