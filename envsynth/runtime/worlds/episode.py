"""The episode of a world: reset from an image, guarded transactions, traces, forks, and grading."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from threading import RLock
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from ...errors import SandboxError, boundary
from ..arguments import recordable
from ..contract import JSON, Grade, ToolResult
from .authority import LIST_TABLES, Connection, Hidden, Phase
from .grading import Ending, judge, trace_row
from .image import build_image
from .sqltext import joins_by_name
from .states import state_hash
from .tools import Called, WorldTool, marked

_REFUSED_CHARACTERS = 2_000
"""Kept in the trace of each argument of a call that was refused."""
_NOW = "SELECT now FROM clock"
_ROUNDING = 1 + 1e-9
"""So that a sum of costs that is the budget on paper (three times 0.1 of 0.3) fits into it."""
_IDLE = 8
"""Connections of closed episodes that a world keeps."""


class WorldModel:
    """What all episodes of one world share; made once, never changed."""

    def __init__(self, document: JSON) -> None:
        """A world.

        Args:
            document: of a `models.World`.

        Raises:
            ValueError: its tables cannot be made or filled, or what it hides could be read all the same.
        """
        self.document = document
        self.image = build_image(document)
        self.hidden = Hidden(document)
        decimals = _declared_decimals(document)
        self.tools: dict[str, WorldTool] = {tool["name"]: WorldTool(tool, decimals) for tool in document["tools"]}
        self.writes = {tool["name"]: _written_by(tool, document["tables"]) for tool in document["tools"]}
        """Tables that a call of each tool may change."""
        self.over: str = document["over"] and marked(Phase.ENDING, document["over"])
        self.clock: str = document["clock"]
        self.keeps_time = any(
            table["name"] == "clock" and any(column["name"] == "now" for column in table["columns"])
            for table in document["tables"]
        )
        """Whether virtual time is a value of the state (`clock.now`); else it stands still."""
        spoken = "\n".join([self.over, *_statements(document)]).lower()
        self.lists = any(table in spoken for table in LIST_TABLES)
        """Whether a statement may use a table that SQLite makes of JSON."""
        self._idle: deque[Connection] = deque()
        if self.hidden:
            _refuse_joins_by_name(document)

    def connection(self) -> Connection:
        """One that a closed episode has left, with its prepared statements, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return Connection(self.hidden, lists=self.lists)

    def leave(self, connection: Connection) -> None:
        """Take a connection that nobody uses any more."""
        if self.lists or len(self._idle) >= _IDLE:
            connection.sql.close()
        else:
            self._idle.append(connection)

    def __getstate__(self) -> JSON:
        # Connections are of this process.
        return {**self.__dict__, "_idle": deque()}


class WorldTask:
    """What all episodes of one task share."""

    def __init__(self, document: JSON, model: WorldModel, *, task_id: str) -> None:
        """A task.

        Args:
            document: the JSON of a `models.Task`; only `candidate` is read.
            model: its world.
            task_id: for messages.
        """
        candidate = document["candidate"]
        self.id = task_id
        self.model = model
        self.instruction: str = candidate["instruction"]
        self.verifier: JSON = candidate["verifier"]
        self.turns: int = candidate["budget"]["turns"]
        self.cost: float | None = candidate["budget"].get("cost")

    @cached_property
    def names(self) -> str:
        """The tools' names, for messages."""
        return ", ".join(self.model.tools)


class Turn(NamedTuple):
    """One call, as the trace has it; texts are made when somebody reads them."""

    tool: str
    arguments: JSON
    called: Called
    cost: float


@dataclass
class Transcript:
    """What happened so far."""

    turns: list[Turn] = field(default_factory=list)
    done: bool = False
    valid: bool = True
    """False after an action that is no tool call."""
    within_budget: bool = True
    cost: float = 0.0
    answer: dict[str, JSON] = field(default_factory=dict)

    def copy(self) -> Transcript:
        """An independent copy."""
        return replace(self, turns=list(self.turns), answer=dict(self.answer))


class WorldSnapshot(NamedTuple):
    """A frozen state of an episode; good for any episode of the same task."""

    task: str
    """The task's id."""
    image: bytes
    transcript: Transcript


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _alone(method: Callable[Concatenate[WorldEpisode, _P], _R]) -> Callable[Concatenate[WorldEpisode, _P], _R]:
    """One thread at a time: two in one connection of SQLite would end the process."""

    @wraps(method)
    def locked(self: WorldEpisode, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with self._lock:
            return method(self, *args, **kwargs)

    return locked


class WorldEpisode:
    """One run of a task in a world; implements `contract.Episode`. Threads that share one take turns."""

    def __init__(self, task: WorldTask) -> None:
        self.task = task
        self._lock = RLock()
        self._connection: Connection | None = None
        self._transcript = Transcript()
        self._whole = False
        """Whether the transcript has every call since the initial state."""
        self._kept = 0
        """Calls of the transcript that a rollback of the connection does not undo."""
        self._now = task.model.clock

    @_alone
    def reset(self, seed: int = 0) -> str:
        """Start afresh; returns the instruction. Every draw is on the world's tape, so every seed is the same."""
        image = self.task.model.image
        if self._connection is None:
            self._connection = self.task.model.connection()
        if not self._connection.rewind(image):
            self._load(image)
        self._begin(Transcript())
        self._whole = True
        return self.task.instruction

    def tools(self) -> list[JSON]:
        """Name, description and JSON Schema parameters of each tool; a fresh copy each call."""
        return [tool.public() for tool in self.task.model.tools.values()]

    @property
    def max_turns(self) -> int:
        """Calls that the episode may have; one more ends it with gate 0."""
        return self.task.turns

    @_alone
    def call(self, tool: str, arguments: JSON) -> ToolResult:
        """One tool call; a mistake in it is a result, and leaves the state as it was."""
        transcript, task = self._transcript, self.task
        if transcript.done:
            return ToolResult(False, None, "the episode is over", True)
        if len(transcript.turns) >= task.turns:
            transcript.done, transcript.within_budget = True, False
            return self._refuse(tool, arguments, f"the budget of {task.turns} calls is spent")
        known = task.model.tools.get(tool) if isinstance(tool, str) else None
        if known is None:
            return self._refuse(_name(tool), arguments, f"there is no tool {_name(tool)!r}; use {task.names}")
        values, error = known.checked(arguments)
        if error:
            return self._refuse(tool, arguments, f"{tool}: {error}")
        if task.cost is not None and transcript.cost + known.cost > task.cost * _ROUNDING:
            return self._refuse(tool, values, f"{tool} costs {known.cost:g}: {task.cost - transcript.cost:g} are left")
        connection = self._open()
        called = known.call(connection, values, self._now)
        if not connection.sql.in_transaction:
            self._replay(connection)
        if not called.error:
            self._succeeded(known, values)
        return self._record(tool, values, called, 0.0 if called.error else known.cost)

    @_alone
    def malformed(self, text: str) -> ToolResult:
        """Record an action that is no tool call at all: the episode is over, and its gate is 0."""
        if self._transcript.done:
            return ToolResult(False, None, "the episode is over", True)
        self._transcript.done, self._transcript.valid = True, False
        return self._refuse("", {"text": text}, "the action is not a tool call")

    @_alone
    def stop(self) -> ToolResult:
        """End the episode as it stands; the state is graded as it is."""
        self._transcript.done = True
        return ToolResult(True, {"stopped": True}, "", True)

    def fork(self) -> WorldEpisode:
        """An independent copy, trace included."""
        twin = WorldEpisode(self.task)
        twin.restore(self.snapshot())
        twin._whole = self._whole
        return twin

    @_alone
    def snapshot(self) -> WorldSnapshot:
        """Freeze state and trace."""
        return WorldSnapshot(self.task.id, self._open().image(), self._transcript.copy())

    @_alone
    def restore(self, snapshot: object) -> None:
        """Go back to a snapshot of this task.

        Raises:
            TypeError: it is none.
            ValueError: it is one of another task.
        """
        if not isinstance(snapshot, WorldSnapshot):
            raise TypeError("not a snapshot of a world's episode")
        if snapshot.task != self.task.id:
            raise ValueError(f"a snapshot of {snapshot.task} in an episode of {self.task.id}")
        self._load(snapshot.image)
        self._begin(snapshot.transcript.copy())

    @_alone
    def image(self) -> bytes:
        """The present state, as bytes: equal ones mean equal states, but not the other way round."""
        return self._open().image()

    @_alone
    def state_hash(self) -> str:
        """sha256 of the rows that count, independent of their order and of how they came about."""
        connection = self._open()
        connection.authority.phase = Phase.OURS
        connection.steps.refill()
        return state_hash(connection.sql, self.task.model.document["tables"])

    @property
    def changes(self) -> int:
        """Grows whenever a row was written, even by a call that was undone; equal counts mean an unchanged state."""
        return self._open().sql.total_changes

    @property
    def trace(self) -> tuple[Turn, ...]:
        """The calls so far."""
        return tuple(self._transcript.turns)

    @property
    def within_budget(self) -> bool:
        """Whether no call was one too many."""
        return self._transcript.within_budget

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return self._transcript.done

    @_alone
    def ending(self) -> Ending:
        """What grading sees of the present state."""
        rows = [
            trace_row(number, turn.tool, turn.arguments, turn.called, turn.cost)
            for number, turn in enumerate(self._transcript.turns, 1)
        ]
        model = self.task.model
        return Ending(model.document, model.image, self._open().image(), rows, self._transcript.answer, self._written())

    @_alone
    def grade(self) -> Grade:
        """Grade the present state on a copy; the episode is not changed.

        Raises:
            SandboxError: the verifier cannot be evaluated; there is no grade.
        """
        conditions = {
            "valid_transcript": self._transcript.valid,
            "within_budget": self._transcript.within_budget,
        }
        with boundary(SandboxError, "the episode cannot be graded", where=self.task.id):
            return judge(self.ending(), self.task.verifier, conditions, where=self.task.id)

    @_alone
    def close(self) -> None:
        """Free everything; safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self.task.model.leave(connection)

    def _written(self) -> frozenset[str] | None:
        """Tables that the calls may have changed; None: the state came from elsewhere."""
        if not self._whole:
            return None
        called = {turn.tool for turn in self._transcript.turns if not turn.called.error}
        return frozenset().union(*(self.task.model.writes[tool] for tool in called))

    def _load(self, image: bytes) -> None:
        if self._connection is None or self.task.model.lists:
            self.close()
            self._connection = self.task.model.connection()
        self._connection.load(image)

    def _begin(self, transcript: Transcript) -> None:
        self._transcript, self._kept, self._whole = transcript, len(transcript.turns), False
        self._now = self.task.model.clock
        self._look_at_clock()

    def _replay(self, connection: Connection) -> None:
        """Make the calls again that a rollback has undone; tools are nothing but SQL, so they do what they did."""
        self._look_at_clock()
        turns = self._transcript.turns
        for turn in turns[self._kept :]:
            tool = None if turn.called.error else self.task.model.tools[turn.tool]
            if tool is not None and tool.call(connection, turn.arguments, self._now) != turn.called:
                raise SandboxError("the state of an episode was lost", where=self.task.id, retryable=False)
            self._look_at_clock()
        connection.keep()
        self._kept = len(turns)

    def _open(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("the episode is not open: call reset first")
        return self._connection

    def _succeeded(self, tool: WorldTool, values: Mapping[str, JSON]) -> None:
        transcript, model = self._transcript, self.task.model
        transcript.cost += tool.cost
        if tool.kind == "submit":
            transcript.answer = dict(values)
            transcript.done = True
        elif tool.kind in ("write", "clock"):
            if model.keeps_time:
                self._look_at_clock()
            transcript.done = bool(model.over) and self._is_over()

    def _is_over(self) -> bool:
        connection = self._open()
        connection.authority.phase = Phase.ENDING
        connection.steps.refill()
        with boundary(SandboxError, "whether the episode is over cannot be told", where=self.task.id):
            row = connection.sql.execute(self.task.model.over, {"now": self._now}).fetchone()
        return row is not None and isinstance(row[0], int | float) and row[0] != 0

    def _look_at_clock(self) -> None:
        model = self.task.model
        if model.keeps_time:
            connection = self._open()
            connection.authority.phase = Phase.OURS
            connection.steps.refill()
            row = connection.sql.execute(_NOW).fetchone()
            self._now = model.clock if row is None else str(row[0])

    def _refuse(self, tool: JSON, arguments: JSON, error: str) -> ToolResult:
        kept = recordable(arguments, limit=_REFUSED_CHARACTERS)
        return self._record(_name(tool), kept, Called(None, error), 0.0)

    def _record(self, tool: str, arguments: JSON, called: Called, cost: float) -> ToolResult:
        self._transcript.turns.append(Turn(tool, arguments, called, cost))
        return ToolResult(not called.error, called.result, called.error, self._transcript.done)


def _name(tool: JSON) -> str:
    """What an agent gave as a tool's name, as messages and the trace have it: text that any database takes."""
    return tool[:100].encode("utf-8", "replace").decode() if isinstance(tool, str) else f"({type(tool).__name__})"


def _written_by(tool: JSON, tables: JSON) -> frozenset[str]:
    """Tables whose names stand anywhere in a tool's effects; a world has no other way to write."""
    effects = "\n".join(tool["effects"]).lower()
    return frozenset(table["name"] for table in tables if table["name"] in effects)


def _statements(document: JSON) -> Iterator[str]:
    for tool in document["tools"]:
        yield from (guard["sql"] for guard in tool["guards"])
        yield from tool["effects"]
        yield tool["result"]


def _refuse_joins_by_name(document: JSON) -> None:
    for tool in document["tools"]:
        for sql in (*(guard["sql"] for guard in tool["guards"]), tool["result"]):
            if joins_by_name(sql):
                raise ValueError(
                    f"tool {tool['name']}: what an agent is shown cannot join by NATURAL or USING, because SQLite then"
                    " reads hidden columns without asking; say ON"
                )


def _declared_decimals(document: JSON) -> dict[str, int]:
    """Digits by column name, for the names on which all tables agree."""
    declared = [
        (column["name"], column["decimals"])
        for table in document["tables"]
        for column in table["columns"]
        if column["decimals"] is not None
    ]
    spoken = Counter(name for name, _ in set(declared))
    return {name: digits for name, digits in declared if spoken[name] == 1}
