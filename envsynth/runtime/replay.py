"""Plays a pack's panel and compares every reward with the recorded one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import NamedTuple

from ..errors import EnvsynthError
from .contract import JSON
from .pack import Pack
from .play import play


class Replayed(NamedTuple):
    """One trajectory played again."""

    task: str
    label: str
    expected: float
    got: float | None
    """None where the environment failed; `error` says how."""
    error: str = ""

    @property
    def verdict(self) -> str:
        """`same`, `differs` or `error`."""
        if self.got is None:
            return "error"
        return "same" if self.got == self.expected else "differs"


def replay(pack: Pack, *, sandbox: str = "", only: str = "") -> Iterable[Replayed]:
    """Play each trajectory of the panel, in order.

    Args:
        pack: what to play.
        sandbox: as for `Pack.open`.
        only: a task's id; empty: all.
    """
    for task_id, lines in groupby(pack.panel(), key=lambda line: str(line["task"])):
        if not only or only == task_id:
            yield from _replay_task(pack, task_id, list(lines), sandbox)


def _replay_task(pack: Pack, task_id: str, lines: list[JSON], sandbox: str) -> Iterable[Replayed]:
    try:
        episode = pack.open(task_id, sandbox=sandbox)
    except EnvsynthError as exc:
        yield from (Replayed(task_id, line["label"], line["reward"], None, str(exc)) for line in lines)
        return
    try:
        for line in lines:
            try:
                yield Replayed(task_id, line["label"], line["reward"], play(episode, line["calls"]).reward)
            except EnvsynthError as exc:
                yield Replayed(task_id, line["label"], line["reward"], None, str(exc))
    finally:
        episode.close()


def main(pack: Pack, arguments: list[str], write: Callable[[str], object] = print) -> int:
    """Replay from the command line: `[--json] [--sandbox NAME] [TASK]`, a line a trajectory.

    Returns:
        0: every reward is the same. 1: one differs. 2: wrong usage. 3: the environment failed, which is no difference.
    """
    import argparse

    parser = argparse.ArgumentParser(prog=f"python -m {pack.name}.replay", description=__doc__)
    parser.add_argument("task", nargs="?", default="", help="play this task only")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.add_argument("--sandbox", default="", help="auto, bubblewrap, docker, docker:RUNTIME or local")
    options = parser.parse_args(arguments)
    verdicts = []
    try:
        if options.task:
            pack.require(options.task)
        for found in replay(pack, sandbox=options.sandbox, only=options.task):
            verdicts.append(found.verdict)
            write(_as_json(found) if options.json else _as_text(found))
    except EnvsynthError as exc:
        write(json.dumps({"trouble": str(exc)}) if options.json else f"error: {exc}")
        return exc.exit_code
    if "differs" in verdicts:
        return 1
    return 3 if "error" in verdicts or not verdicts else 0


def _as_json(found: Replayed) -> str:
    return json.dumps({**found._asdict(), "verdict": found.verdict})


def _as_text(found: Replayed) -> str:
    got = found.error if found.got is None else f"{found.got:g}"
    return f"{found.verdict:8}{found.task}  {found.label}  expected {found.expected:g}, got {got}"
