"""The same three-account ledger in envsynth and in its peers, in process, on one core, in the same minute.

Usage: python tests/benchmarks/ledger/run.py [--peers] [--rounds N] [--core N] [--cache DIR]

Without `--peers`: envsynth, its gymnasium adapter, and a gymnasium environment of its own. With it also OpenEnv,
verifiers and skyrl-gym, each in a virtual environment that uv makes once under `--cache` (versions in `peers.toml`;
without optional dependencies such as torch, gradio and the hubs' clients; 35 to 190 MB each).

Every player is a process pinned to the same core; one works at a time. A round has each player once, in an order that
turns; a rate is operations a second of processor time, the median over the rounds of medians over chunks of 4 ms.
Before that each player must give the script's answers and grades. Then the sizes: microseconds of reset, fork, grade
and state hash of a small world and of one with 2,000 rows in ten tables. Exit code 1 when an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OWN = ("envsynth", "envsynth gym", "gymnasium")
COLUMNS = ("reset", "read", "write", "refused", "fork", "grade", "episode")
FRAMEWORKS = ("OpenEnv", "verifiers MCP", "skyrl-gym")
"""Whose calls are the aim: those that find a tool by its name and check or parse its arguments."""
SIZE_AIMS = {
    ("three-account ledger", "reset"): 100,
    ("three-account ledger", "fork"): 100,
    ("three-account ledger", "grade"): 2000,
    ("2,000 rows in ten tables", "reset"): 500,
    ("2,000 rows in ten tables", "fork"): 500,
    ("2,000 rows in ten tables", "grade"): 2000,
}
"""Most microseconds."""


class PlayerProcess:
    """A player that waits for rounds."""

    def __init__(self, name: str, python: Path, core: int) -> None:
        self.name = name
        self.rounds: list[dict[str, float]] = []
        self._process = subprocess.Popen(
            [python, HERE / "measure.py", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE
        )
        os.sched_setaffinity(self._process.pid, {core})
        self.about: dict[str, Any] = self._read()

    def play(self) -> None:
        """One round."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self.rounds.append(self._read())

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()

    def rates(self, what: str) -> list[float]:
        """Operations a second, by round."""
        return [found[what] for found in self.rounds if what in found]

    def _read(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} does not play the ledger as it should; see above")
        return json.loads(line)


def peers(cache: Path) -> dict[str, Path]:
    """The interpreter of each peer's players; missing environments are made."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    found: dict[str, Path] = {}
    for name, peer in tomllib.loads(HERE.joinpath("peers.toml").read_text("utf-8")).items():
        folder = cache / name
        python, done = folder / "bin" / "python", folder / "ledger.json"
        if not done.is_file() or json.loads(done.read_text("utf-8")) != peer:
            print(f"making the environment of {name} …", file=sys.stderr)
            subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True)
            install = [uv, "pip", "install", "--quiet", "--python", str(python)]
            subprocess.run([*install, "--no-deps", peer["wheel"]], check=True)
            subprocess.run([*install, *peer["needs"]], check=True)
            done.write_text(json.dumps(peer), "utf-8")
        found |= dict.fromkeys(peer["players"], python)
    return found


def play_rounds(players: Sequence[PlayerProcess], rounds: int) -> None:
    """Each player once a round; who begins turns."""
    for number in range(rounds):
        for place in range(len(players)):
            players[(number + place) % len(players)].play()
        print(f"round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)


def show(players: Sequence[PlayerProcess]) -> None:
    """The table of rates, with their spread, and what is to be known of each player."""
    print(f"\n{'a CPU second':15}" + "".join(f"{what:>18}" for what in COLUMNS))
    for player in players:
        print(f"{player.name:15}" + "".join(f"{_cell(player.rates(what)):>18}" for what in COLUMNS))
    print("\nmedian over rounds ± half the distance of the quartiles, in %; a reset undoes the script, an episode is a")
    print("reset, the script's eight calls (two of them refused) and the end with its reward")
    for player in players:
        about = player.about
        told = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
        print(f"{player.name:15}{told}" + "".join(f"; {note}" for note in about["notes"]))


def _cell(rates: Sequence[float]) -> str:
    if not rates:
        return "-"
    low, middle, high = statistics.quantiles(rates, n=4) if len(rates) > 1 else (*rates, *rates, *rates)
    return f"{middle:,.0f} ±{50 * (high - low) / middle:.0f}%"


def ratios(players: Iterable[PlayerProcess]) -> list[str]:
    """Calls of envsynth against the fastest of the peers' frameworks, within rounds; which aims are missed."""
    named = {player.name: player for player in players}
    peers = [named[name] for name in FRAMEWORKS if name in named]
    missed = []
    for what in ("read", "write", "refused") if peers else ():
        fastest = max(peers, key=lambda peer: statistics.median(peer.rates(what)))
        pairs = zip(named["envsynth"].rates(what), fastest.rates(what), strict=True)
        ratio = statistics.median(own / other for own, other in pairs)
        print(f"{what}: envsynth makes {ratio:.2f} times the calls of {fastest.name}")
        if ratio < 1:
            missed.append(f"{what} calls: {ratio:.2f} of {fastest.name}")
    return missed


def sizes(core: int) -> list[str]:
    """The table of microseconds; which aims are missed."""
    os.sched_setaffinity(0, {core})
    command = [sys.executable, str(HERE / "sizes.py")]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE).stdout
    missed = []
    for world, rows in json.loads(told).items():
        print(f"\n{world:42}{'median':>10}{'least':>10}{'aim':>8}")
        for what, (median, least) in rows.items():
            aim = SIZE_AIMS.get((world, what))
            print(f"  {what:40}{median:10,.1f}{least:10,.1f}{aim or '':>8}")
            if aim and median > aim:
                missed.append(f"{world}: {what} takes {median:,.0f} µs, aim {aim}")
    return missed


def main() -> int:
    """Measure; 1 when an aim is missed."""
    arguments = _arguments()
    began, load = time.monotonic(), os.getloadavg()[0]
    interpreters = dict.fromkeys(OWN, Path(sys.executable))
    if arguments.peers:
        interpreters |= peers(arguments.cache)
    players = [PlayerProcess(name, python, arguments.core) for name, python in interpreters.items()]
    play_rounds(players, arguments.rounds)
    for player in players:
        player.close()
    show(players)
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after; core {arguments.core}; {arguments.rounds} rounds")
    missed = ratios(players) + sizes(arguments.core)
    print(f"\n{time.monotonic() - began:.0f} s")
    for line in missed:
        print(f"missed: {line}")
    return int(bool(missed))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="also OpenEnv, verifiers and skyrl-gym")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "envsynth-benchmark-peers")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
