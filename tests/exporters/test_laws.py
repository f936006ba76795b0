"""Laws of episodes, in every hand that holds them: a reset is a reset, episodes are apart, calls take turns."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tiny_worlds as worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from runners import RUNNERS, Runner, imported
from schema_calls import LAW, Made, calls

from envsynth.cache import Cache
from envsynth.errors import SandboxError
from envsynth.models import Budget, Check, Task, Tier, Trajectory, Verifier, World, WorldRef
from envsynth.runtime.pack import Pack

pytestmark = pytest.mark.slow
Packages = dict[str, Any]
ENDS = ("", "malformed", "overdrawn", "failed")
"""What becomes of an episode before it is begun again."""


def waiting(store: Cache) -> Task:
    """A task whose clock moves, whose tools cost, and that ends with an answer: all that a reset must put back."""
    hour = "strftime('%Y-%m-%dT%H:%M:%S', now, '+1 hour')"
    at = {"columns": {"id": {"type": "integer", "role": "key"}, "at": {"type": "text"}}}
    world = World.model_validate({
        "id": "waiting", "clock": "2026-03-10T09:00:00",
        "tables": {"clock": {"columns": {"now": {"type": "text"}}}, "visits": at},
        "rows": {"clock": [["2026-03-10T09:00:00"]], "visits": []},
        "tools": {
            "wait": {"kind": "clock", "doc": "Wait an hour.", "effects": [f"UPDATE clock SET now = {hour}"],
                     "result": "SELECT now FROM clock", "shape": "row", "cost": 1},
            "visit": {"kind": "write", "doc": "Come in.", "effects": ["INSERT INTO visits(at) VALUES (:now)"],
                      "result": "SELECT id, at FROM visits ORDER BY id", "cost": 1},
            "first": {"kind": "write", "doc": "Come in as the first, or undo everything.",
                      "effects": ["INSERT OR ROLLBACK INTO visits(id, at) VALUES (1, :now)"],
                      "result": "SELECT id, at FROM visits ORDER BY id"},
            "submit": {"kind": "submit", "doc": "Hand in.",
                       "parameters": {"visits": {"type": "integer", "doc": "How many.", "minimum": 0, "maximum": 9}}},
        },
    })  # fmt: skip
    made = worlds.make_candidate(store, worlds.TASKS[0])
    lead = made.provenance.lead.model_copy(update={"name": "waiting", "ref": "w", "source": "mechanism:waiting"})
    counted = "SELECT value = (SELECT count(*) FROM visits) FROM answer WHERE key = 'visits'"
    candidate = made.model_copy(update={
        "environment": WorldRef(world=store.put(world.to_json().encode())), "panel": (),
        "verifier": Verifier(checks=(Check(id="counted", sql=counted),)), "budget": Budget(turns=8, cost=5),
        "provenance": made.provenance.model_copy(update={"lead": lead}),
    })  # fmt: skip
    idle = (Trajectory(label="idle", outcome=0.0), Trajectory(label="reference", outcome=0.0))
    return Task(candidate=candidate, tests=None, panel=idle, tier=Tier.VERIFIED, verdicts=())


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packages]:
    folder = tmp_path_factory.mktemp("laws")
    store = Cache(folder / "cache")
    tasks = [waiting(store), *(worlds.make_world_task(store, name) for name in worlds.TASKS)]
    with imported(tasks, store, folder) as found:
        yield found


@pytest.fixture(scope="module")
def pack(packages: Packages) -> Pack:
    return Pack(Path(packages["trl"].__file__).parent, name="laws")


def play(runner: Runner, task: str, made: Sequence[Made]) -> list[Any]:
    """All that comes back of an episode, and what it comes to."""
    return [runner.begin(task), *(runner.call(*call) for call in made), runner.rewards()]


def fresh(kind: type[Any], packages: Packages, task: str, made: Sequence[Made]) -> list[Any]:
    """The same in a new one."""
    runner = kind(packages[kind.format])
    try:
        return play(runner, task, made)
    finally:
        runner.close()


def end(runner: Runner, how: str, turns: int) -> None:
    """Bring an episode to an end of a kind."""
    if how == "malformed":
        runner.malformed()
    elif how == "overdrawn":
        for _ in range(turns + 2):
            runner.call("no_such_tool", {})
    elif how == "failed":
        episode = runner.episode

        def failing(*_: Any) -> Any:
            raise SandboxError("gone")

        # What comes after the tool has changed the world fails; a package's errors are classes of its own.
        episode._record = failing
        try:
            for tool in episode.tools():
                with suppress(Exception):
                    runner.call(tool["name"], {name: 1 for name in tool["parameters"]["required"]})
        finally:
            del episode._record


# --- a reset is a reset -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [runner for runner in RUNNERS if runner.pooled])
@LAW
@given(data=st.data())
def test_a_reset_after_any_prefix_is_a_fresh_reset(
    kind: type[Any], packages: Packages, pack: Pack, data: st.DataObject
) -> None:
    before, task = (data.draw(st.sampled_from(sorted(pack.budgets))) for _ in range(2))
    prefix = data.draw(calls(pack.tools(before), 8))
    made = data.draw(calls(pack.tools(task), 6))
    runner = kind(packages[kind.format])
    try:
        runner.begin(before)
        for call in prefix:
            runner.call(*call)
        end(runner, data.draw(st.sampled_from(ENDS)), pack.budgets[before])
        again = play(runner, task, made)
    finally:
        runner.close()
    assert again == fresh(kind, packages, task, made)


@pytest.mark.parametrize("kind", [runner for runner in RUNNERS if runner.pooled])
def test_a_reset_forgets_what_was_undone_before(kind: type[Any], packages: Packages, pack: Pack) -> None:
    """What a tool undoes is done again, by the calls of this episode alone."""
    task = next(task for task in pack.budgets if task.startswith("waiting"))
    visit, wait, first = Made("visit", {}), Made("wait", {}), Made("first", {})
    runner = kind(packages[kind.format])
    try:
        for prefix in ([visit, first, visit], [wait, visit, visit, first]):
            play(runner, task, prefix)
            made = [visit, wait, first, visit]
            assert play(runner, task, made) == fresh(kind, packages, task, made)
        assert [turn.called.error != "" for turn in runner.episode.trace] == [False, False, True, False]
        assert [row["at"][11:13] for row in runner.episode.trace[-1].called.result] == ["09", "10"]
    finally:
        runner.close()


# --- episodes are apart -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RUNNERS)
@LAW
@given(data=st.data())
def test_interleaved_episodes_do_not_leak(kind: type[Any], packages: Packages, pack: Pack, data: st.DataObject) -> None:
    tasks = [data.draw(st.sampled_from(sorted(pack.budgets))) for _ in range(2)]
    if data.draw(st.booleans()):
        tasks[1] = tasks[0]
    made = [data.draw(calls(pack.tools(task), 6)) for task in tasks]
    turns = data.draw(st.permutations([0] * (len(made[0]) + 1) + [1] * (len(made[1]) + 1)))
    runners = [kind(packages[kind.format]) for _ in tasks]
    seen: list[list[Any]] = [[], []]
    try:
        for which in turns:
            runner, heard = runners[which], seen[which]
            heard.append(runner.call(*made[which][len(heard) - 1]) if heard else runner.begin(tasks[which]))
        for runner, heard in zip(runners, seen, strict=True):
            heard.append(runner.rewards())
    finally:
        for runner in runners:
            with suppress(AttributeError):
                runner.close()
    assert seen == [fresh(kind, packages, task, calls_) for task, calls_ in zip(tasks, made, strict=True)]


@settings(LAW, max_examples=60)
@given(data=st.data())
def test_forks_do_not_affect_each_other(pack: Pack, data: st.DataObject) -> None:
    task = data.draw(st.sampled_from(sorted(pack.budgets)))
    before, mine, other = (data.draw(calls(pack.tools(task), most)) for most in (5, 4, 4))
    episode = pack.open(task)
    episode.reset()
    heard = [episode.call(*call) for call in before]
    twin = episode.fork()
    turns = data.draw(st.permutations([0] * len(mine) + [1] * len(other)))
    left = {0: iter(mine), 1: iter(other)}
    seen: list[list[Any]] = [list(heard), list(heard)]
    for which in turns:
        seen[which].append((episode, twin)[which].call(*next(left[which])))
    for number, (played, rest) in enumerate(((episode, mine), (twin, other))):
        seen[number] += [played.grade(), played.state_hash()]
        assert seen[number] == straight(pack, task, [*before, *rest])
    episode.close()
    twin.close()


def straight(pack: Pack, task: str, made: Sequence[Made]) -> list[Any]:
    episode = pack.open(task)
    episode.reset()
    found = [*(episode.call(*call) for call in made), episode.grade(), episode.state_hash()]
    episode.close()
    return found


# --- calls take turns -------------------------------------------------------------------------------------------


def in_threads(call: Callable[[Any], Any], many: Sequence[Any]) -> list[Any]:
    """From eight threads that begin at once, and are switched as often as can be."""
    gate, interval = threading.Barrier(8), sys.getswitchinterval()

    def waiting(given: Any) -> Any:
        gate.wait(timeout=60)
        return call(given)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            return list(threads.map(waiting, many))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("kind", [runner for runner in RUNNERS if runner.parallel])
@settings(LAW, max_examples=10)
@given(data=st.data())
def test_calls_of_one_turn_take_turns(kind: type[Any], packages: Packages, pack: Pack, data: st.DataObject) -> None:
    """Eight at once give what one order of them gives, and the transcript has that order."""
    task = data.draw(st.sampled_from(sorted(pack.budgets)))
    tools = [tool for tool in pack.tools(task) if tool["name"] != "submit"]
    names = {tool["name"] for tool in tools}
    # A call of no tool, or of an unknown one, is another thing in some hands.
    fit = [call for call in data.draw(calls(tools, 8)) if call.tool in names or (call.tool and not kind.known_only)]
    made = ((fit or [Made(tools[0]["name"], {})]) * 8)[:8]
    runner = kind(packages[kind.format])
    try:
        runner.begin(task)
        answered = runner.together(made, in_threads)
        order = [Made(turn.tool, turn.arguments) for turn in runner.episode.trace]
        rewards = runner.rewards()
    finally:
        runner.close()
    assert len(order) == len(made)
    alone = kind(packages[kind.format])
    try:
        alone.begin(task)
        replayed = [alone.call(*call) for call in ordered_as(order, made)]
        assert sorted(map(repr, replayed)) == sorted(map(repr, answered))
        assert alone.rewards() == rewards
    finally:
        alone.close()


def ordered_as(order: Sequence[Made], made: Sequence[Made]) -> list[Made]:
    """The calls that were made, in the order that the transcript has; what it keeps of a refused one may be less."""
    left, found = list(made), dict[int, Made]()
    for exactly in (True, False):
        for place, turn in enumerate(order):
            fit = [one for one in left if one == turn or (not exactly and one.tool == turn.tool)]
            if place not in found and fit:
                found[place] = fit[0]
                left.remove(fit[0])
    return [found.get(place) or left.pop() for place in range(len(order))]
