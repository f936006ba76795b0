"""What gymnasium's adapter adds to a call in a world: CPU microseconds a step, text and structured actions.

Run as a script. The three are timed in turns, batch by batch, so that a busy machine slows all alike.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

import tiny_worlds as worlds

from envsynth.runtime.gym import ToolEnv
from envsynth.runtime.gym_actions import StructuredActions

BATCH = 50
BATCHES = 100
CALLS = (
    ("two-armed", "view", {}),
    ("returns-desk-refund", "list_orders", {"customer": 1}),
    ("returns-desk-refund", "find_customers", {"text": "Ito"}),
)


def cpu_us(step: Callable[[], object]) -> float:
    begun = time.process_time()
    for _ in range(BATCH):
        step()
    return (time.process_time() - begun) / BATCH * 1e6


def main() -> None:
    print(f"{'world and call':40}{'call':>8}{'text':>8}{'struct.':>8}   added: text, structured")
    for task, tool, arguments in CALLS:
        episode = worlds.episode_of(task)
        episode.task.turns = BATCH * BATCHES * 4
        tools = episode.tools()
        number = [found["name"] for found in tools].index(tool)
        text = ToolEnv(lambda episode=episode: episode, task_id=task, max_turns=10**6)
        structured = ToolEnv(
            lambda episode=episode: episode, task_id=task, max_turns=10**6, actions=StructuredActions(tools)
        )
        spelt = json.dumps({"tool": tool, "arguments": arguments})
        steps = (
            lambda episode=episode, tool=tool, arguments=arguments: episode.call(tool, arguments),
            lambda env=text, spelt=spelt: env.step(spelt),
            lambda env=structured, number=number, arguments=arguments: env.step((number, arguments)),
        )
        measured: list[list[float]] = [[], [], []]
        for _ in range(BATCHES):
            for env in (text, structured):
                env.reset(seed=0)
            for found, step in zip(measured, steps, strict=True):
                found.append(cpu_us(step))
        call, by_text, by_values = (quantiles(found, n=4)[0] for found in measured)
        added = f"{by_text - call:.1f}, {by_values - call:.1f}"
        print(f"{f'{task} {tool}':40}{call:8.1f}{by_text:8.1f}{by_values:8.1f}   {added}")


if __name__ == "__main__":
    main()
