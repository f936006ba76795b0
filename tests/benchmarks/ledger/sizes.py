"""Microseconds of a world's reset, fork, grade and state hash, and of what the first calls after a reset pay for it.

Usage: python sizes.py      (a JSON object of medians and minima a world)
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from players.envsynth_world import ledger, task_of
from script import SCRIPT, Call

from envsynth.runtime.worlds.episode import WorldEpisode, WorldTask

TABLES, ROWS = 10, 200
REPEATS = 300


def wide() -> WorldTask:
    """A world of 2,000 rows in ten tables, a read and a write tool for each."""
    tables: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    tools: dict[str, Any] = {}
    for number in range(TABLES):
        name = f"stock_{number}"
        tables[name] = {
            "columns": {
                "id": {"type": "integer", "role": "key"}, "item": {"type": "text"}, "place": {"type": "text"},
                "count": {"type": "integer"}, "weight": {"type": "real", "decimals": 2},
            }
        }  # fmt: skip
        rows[name] = [
            [line, f"item {number}-{line}", f"shelf {line % 17}", line * 7 % 90, line / 8]
            for line in range(1, ROWS + 1)
        ]
        which = {"id": {"type": "integer", "minimum": 1, "maximum": ROWS}}
        tools[f"look_{number}"] = {
            "kind": "read", "parameters": which, "result": f"SELECT * FROM {name} WHERE id = :id", "shape": "row",
        }  # fmt: skip
        tools[f"take_{number}"] = {
            "kind": "write", "parameters": which, "shape": "row",
            "guards": [{"sql": f"SELECT count > 0 FROM {name} WHERE id = :id", "error": "none left"}],
            "effects": [f"UPDATE {name} SET count = count - 1 WHERE id = :id"],
            "result": f"SELECT count FROM {name} WHERE id = :id",
        }  # fmt: skip
    world = {
        "id": "stock-2000", "clock": "2026-03-10T09:00:00", "tables": tables, "rows": rows, "tools": tools,
        "invariants": [{"id": "no_debt", "sql": "SELECT id FROM stock_0 WHERE count < 0"}],
    }  # fmt: skip
    changed = {"stock_3": {"changed": {5: {"count": 34}}}}
    checks = [{"id": "end_state", "kind": "diff", "expect": changed}, {"id": "invariants", "kind": "invariants"}]
    task = {"instruction": "Take item 5 of stock 3.", "budget": {"turns": 100}, "verifier": {"checks": checks}}
    return task_of(world, task)


WIDE_CALLS = tuple(Call(f"{verb}_{number}", {"id": 5}) for number in range(TABLES) for verb in ("look", "take"))


Calls = tuple[Call, ...]


def measured(task: WorldTask, calls: Calls, write: Call, solving: Calls) -> dict[str, list[float]]:
    """Median and least microseconds of each operation.

    Args:
        task: what is played.
        calls: one of each tool.
        write: what is called on a fork.
        solving: what must be graded 1.0.
    """
    episode = WorldEpisode(task)
    episode.reset()

    def play(lines: Calls) -> None:
        for call in lines:
            episode.call(call.tool, call.arguments)

    def fork_and_write() -> None:
        fork = episode.fork()
        fork.call(write.tool, write.arguments)
        fork.close()

    def new_episode() -> None:
        other = WorldEpisode(task)
        other.reset()
        other.close()

    def solve() -> None:
        episode.reset()
        play(solving)

    def reset() -> None:
        episode.reset()

    def first_calls() -> None:
        episode.reset()
        play(calls)

    found = {
        "reset": _microseconds(reset, lambda: play(calls)),
        f"reset and {len(calls)} calls": _microseconds(first_calls, reset),
        f"the same {len(calls)} calls again": _microseconds(lambda: play(calls), first_calls),
    }
    solve()
    assert episode.grade().reward == 1.0, "the solved world fails"
    found["fork"] = _microseconds(lambda: episode.fork().close())
    found["fork, not closed"] = _microseconds(episode.fork)
    found["fork, then a write"] = _microseconds(fork_and_write)
    found["new episode"] = _microseconds(new_episode)
    found["grade"] = _microseconds(episode.grade)
    found["state hash"] = _microseconds(episode.state_hash)
    found["image"] = [len(task.model.image)] * 2
    return found


def _microseconds(work: Callable[[], Any], before: Callable[[], Any] | None = None) -> list[float]:
    taken = []
    for _ in range(REPEATS):
        if before:
            before()
        began = time.process_time()
        work()
        taken.append((time.process_time() - began) * 1e6)
    return [round(statistics.median(taken), 1), round(min(taken), 1)]


def main() -> int:
    """Measure both worlds."""
    small, solving = ledger(), (Call("take_3", {"id": 5}),)
    worlds = {
        "three-account ledger": measured(small, SCRIPT, SCRIPT[3], SCRIPT),
        "2,000 rows in ten tables": measured(wide(), WIDE_CALLS, solving[0], solving),
    }
    print(json.dumps(worlds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
