"""Plays a pack's panel and compares rewards: with the recorded ones, or every component through a trainer's runtime."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ..errors import EnvsynthError
from .contract import JSON
from .pack import Pack
from .play import play
from .rewards import reward_vector

Through = Callable[[str, Sequence[JSON]], Mapping[str, float] | None]
"""Plays a task's calls through a trainer's own runtime; gives every component of the reward that arrives there.

None: the trainer cannot tell these calls from others, so there is nothing to compare. An attribute `unseen` names the
beginnings of components that it cannot know, or is a function that names them for a task's id.
"""


class Replayed(NamedTuple):
    """One trajectory played again."""

    task: str
    label: str
    expected: float
    got: float | None
    """None where the environment failed; `error` says how."""
    error: str = ""
    differs: bool = False
    """Whether another component than the reward differs; `error` says which."""

    @property
    def verdict(self) -> str:
        """`same`, `differs` or `error`."""
        if self.differs:
            return "differs"
        if self.got is None:
            return "error"
        return "same" if self.got == self.expected else "differs"


def replay(pack: Pack, *, sandbox: str = "", only: str = "", through: Through | None = None) -> Iterable[Replayed]:
    """Play each trajectory of the panel, in order.

    Args:
        pack: what to play.
        sandbox: as for `Pack.open`.
        only: a task's id; empty: all.
        through: a trainer's runtime; each trajectory is then played here and there, and all components compared.
    """
    for task_id, lines in groupby(pack.panel(), key=lambda line: str(line["task"])):
        if not only or only == task_id:
            yield from _replay_task(pack, task_id, list(lines), sandbox, through)


def _replay_task(
    pack: Pack, task_id: str, lines: list[JSON], sandbox: str, through: Through | None
) -> Iterable[Replayed]:
    try:
        episode = pack.open(task_id, sandbox=sandbox)
    except EnvsynthError as exc:
        yield from (Replayed(task_id, line["label"], line["reward"], None, str(exc)) for line in lines)
        return
    try:
        for line in lines:
            try:
                grade = play(episode, line["calls"])
                if through is None or grade.reward != line["reward"]:
                    yield Replayed(task_id, line["label"], line["reward"], grade.reward)
                    continue
                there = through(task_id, line["calls"])
                if there is None:
                    yield Replayed(task_id, line["label"], line["reward"], grade.reward, "not played through it")
                    continue
                unseen = _unseen(through, task_id)
                here = {name: value for name, value in reward_vector(grade).items() if not name.startswith(unseen)}
                yield _compared(task_id, line, here, there)
            except EnvsynthError as exc:
                yield Replayed(task_id, line["label"], line["reward"], None, str(exc))
    finally:
        episode.close()


def _unseen(through: Through, task_id: str) -> tuple[str, ...]:
    unseen = getattr(through, "unseen", ())
    return tuple(unseen(task_id) if callable(unseen) else unseen)


def _compared(task_id: str, line: JSON, here: Mapping[str, float], there: Mapping[str, float]) -> Replayed:
    """Both vectors; where a component differs, the first one's values, and its name as the reason."""
    differing = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    if not differing:
        return Replayed(task_id, line["label"], here["reward"], there["reward"])
    shown = ", ".join(f"{name} {here.get(name)} here, {there.get(name)} there" for name in differing[:5])
    return Replayed(task_id, line["label"], here["reward"], there.get("reward"), shown, differs=True)


def main(
    pack: Pack,
    arguments: list[str],
    write: Callable[[str], object] = print,
    load_through: Callable[[], Through] | None = None,
) -> int:
    """Replay from the command line: `[--json] [--sandbox NAME] [--through] [TASK]`, a line a trajectory.

    Args:
        pack: what to play.
        arguments: of the command line.
        write: takes each line.
        load_through: imports the trainer's runtime, where `--through` asks for it.

    Returns:
        0: every reward is the same. 1: one differs. 2: wrong usage. 3: the environment failed, which is no difference.
    """
    import argparse

    parser = argparse.ArgumentParser(prog=f"python -m {pack.name}.replay", description=__doc__)
    parser.add_argument("task", nargs="?", default="", help="play this task only")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.add_argument("--sandbox", default="", help="auto, bubblewrap, docker, docker:RUNTIME or local")
    if load_through is not None:
        parser.add_argument(
            "--through", action="store_true", help="play through the trainer's runtime too, and compare"
        )
    options = parser.parse_args(arguments)
    verdicts = []
    try:
        if options.task:
            pack.require(options.task)
        through = load_through() if load_through is not None and options.through else None
        for found in replay(pack, sandbox=options.sandbox, only=options.task, through=through):
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
    got = found.error if found.got is None else f"{found.got:g}" + (f" ({found.error})" if found.error else "")
    return f"{found.verdict:8}{found.task}  {found.label}  expected {found.expected:g}, got {got}"
