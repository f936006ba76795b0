"""The ledger as envsynth emits it against the ledger written for the target itself, through the same runtime.

Usage: python tests/benchmarks/targets/run.py [--rounds N] [--cache DIR] [--only WORD]

Of gymnasium, OpenEnv (in process, and over a WebSocket to a server process) and verifiers (its MCP server in process):
resets, reads, writes, grades and whole episodes a second of processor time, of client and server together, and of wall
time, as a Markdown table with ratios. The environments of the targets are made under the cache where they are missing.

A round has every player once, in an order that turns; one works at a time. A rate is the median over the rounds of
medians over chunks. Before that each player must give the answers and grades of the ledger's script. Exit code 1 when
an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.exporters._target_env import interpreter_of
from envsynth.models import (
    Budget,
    Candidate,
    Lead,
    Provenance,
    Task,
    Tier,
    ToolCall,
    Trajectory,
    Verifier,
    World,
    WorldRef,
)

HERE = Path(__file__).parent
LEDGER = HERE.parent / "ledger"
COLUMNS = ("reset", "read", "write", "refused", "grade", "episode")
PACKAGE = "ledger_pack"


class Pair(NamedTuple):
    """Two players of one runtime."""

    title: str
    target: str
    """Whose environment both are played in."""
    native: str
    emitted: str
    aims: tuple[tuple[str, float], ...] = ()
    """Least rates of the emitted one: in process of processor time, served of wall time."""


PAIRS = (
    Pair("gymnasium", "gymnasium", "gymnasium texts", "gymnasium emitted", (("reset", 25_000), ("read", 100_000))),
    Pair("gymnasium, integers", "gymnasium", "gymnasium", "gymnasium emitted"),
    Pair("OpenEnv in process", "openenv", "OpenEnv", "OpenEnv emitted"),
    Pair("OpenEnv over WebSocket", "openenv", "OpenEnv served", "OpenEnv emitted, served", (("read", 1_300),)),
    Pair("verifiers in process", "verifiers", "verifiers MCP", "verifiers emitted"),
)


class PlayerProcess:
    """A player that waits for rounds."""

    def __init__(self, name: str, python: Path, pack: Path) -> None:
        self.name = name
        self.rounds: list[dict[str, list[float]]] = []
        self._process = subprocess.Popen(
            [python, HERE / "measure.py", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=LEDGER,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (LEDGER, pack))), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
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

    def rate(self, what: str, clock: int) -> float | None:
        """Operations a second: the median over rounds; clock 0 is processor time, 1 the wall's."""
        rates = [found[what][clock] for found in self.rounds if what in found]
        return statistics.median(rates) if rates else None

    def _read(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} does not play the ledger as it should; see above")
        return json.loads(line)


def ledger_task(store: Cache) -> Task:
    """The task of the ledger benchmark, admitted."""
    document = yaml.safe_load(LEDGER.joinpath("ledger.yaml").read_text("utf-8"))
    world = World.model_validate(document["world"])
    lead = Lead(
        generator="business", generator_version="1", source="scenario:ledger", name="ledger", revision="1",
        strategy="hidden", ref="a", index=0,
    )  # fmt: skip
    sys.path.insert(0, str(LEDGER))
    from script import SCRIPT

    calls = [ToolCall(tool=call.tool, arguments=call.arguments) for call in SCRIPT]
    panel = (Trajectory(label="reference", outcome=1.0, calls=(*calls, ToolCall(tool="submit", arguments={}))),)
    candidate = Candidate(
        instruction=document["task"]["instruction"],
        environment=WorldRef(world=store.put(world.to_json().encode())),
        verifier=Verifier.model_validate(document["task"]["verifier"]),
        panel=panel,
        # The rates are of calls within an episode, and not of its end.
        budget=Budget.model_validate(document["task"]["budget"]),
        provenance=Provenance(lead=lead),
    )
    return Task(candidate=candidate, tests=None, panel=panel, tier=Tier.VERIFIED, verdicts=())


def players_of(pairs: Sequence[Pair], folder: Path, cache: Path | None) -> dict[str, PlayerProcess]:
    """A process a player, each in its target's environment."""
    store, found = Cache(folder / "store"), {}
    task = ledger_task(store)
    for target in dict.fromkeys(pair.target for pair in pairs):
        pack = plugins.load("exporters", target)().export(
            [task], store, folder / target, {"name": PACKAGE.replace("_", "-")}
        )
        python = interpreter_of(target, cache)
        for pair in pairs:
            for name in (pair.native, pair.emitted) if pair.target == target else ():
                if name not in found:
                    found[name] = PlayerProcess(name, python, pack)
    return found


def play_rounds(players: Sequence[PlayerProcess], rounds: int) -> None:
    """Each player once a round; who begins turns."""
    for number in range(rounds):
        for place in range(len(players)):
            players[(number + place) % len(players)].play()
        print(f"round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)


def show(pairs: Sequence[Pair], players: dict[str, PlayerProcess]) -> list[str]:
    """Both tables; which aims are missed."""
    missed = []
    for clock, title in enumerate(("a CPU second, client and server together", "a second of wall time")):
        print(f"\n| {title} | {' | '.join(COLUMNS)} |")
        print("|---" * (len(COLUMNS) + 1) + "|")
        for pair in pairs:
            native, emitted = ([players[name].rate(what, clock) for what in COLUMNS] for name in pair[2:4])
            print(_row(f"{pair.title}: its own", native))
            print(_row(f"{pair.title}: emitted", emitted))
            ratios = [own and other and own / other for own, other in zip(emitted, native, strict=True)]
            print(_row("ratio", ratios, "{:.2f}"))
    for pair in pairs:
        for what, aim in pair.aims:
            rate = players[pair.emitted].rate(what, int("served" in pair.emitted))
            if rate is None or rate < aim:
                missed.append(f"{pair.title}: {rate or 0:,.0f} {what}s a second, aim {aim:,.0f}")
    print()
    for name, player in players.items():
        told = ", ".join(f"{name} {version}" for name, version in player.about["versions"].items())
        print(f"- {name}: {told}" + "".join(f"; {note}" for note in player.about["notes"]))
    return missed


def _row(title: str, rates: Sequence[float | None], form: str = "{:,.0f}") -> str:
    return f"| {title} | {' | '.join('-' if rate is None else form.format(rate) for rate in rates)} |"


def main() -> int:
    """Measure; 1 when an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cache", type=Path, default=None, help="of the targets' environments")
    parser.add_argument("--only", default="", help="pairs whose title has this word")
    options = parser.parse_args()
    pairs = [pair for pair in PAIRS if options.only.lower() in pair.title.lower()]
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        players = players_of(pairs, Path(folder), options.cache)
        play_rounds(list(players.values()), options.rounds)
        for player in players.values():
            player.close()
    missed = show(pairs, players)
    print(f"\nload {load:.1f} before, {os.getloadavg()[0]:.1f} after; {os.cpu_count()} cores; {options.rounds} rounds")
    for line in missed:
        print(f"missed: {line}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
