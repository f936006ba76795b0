"""What a world's statements may do, and the connections they run on: no clock, no files, no way out of the database."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cache, lru_cache

from ..contract import JSON
from ..sealed import READING, known_functions

MAX_STEPS = 5_000_000
"""Instructions of SQLite's virtual machine that one tool call may take."""
_STEP = 1_000
_LIMITS = (
    (sqlite3.SQLITE_LIMIT_LENGTH, 2**17),  # one instruction may take time quadratic in it
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 50),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
)
DATE_FUNCTIONS = frozenset({"date", "time", "datetime", "julianday", "strftime", "unixepoch"})
"""Allowed in worlds, with our own versions that know no present moment and no time zone."""
LIST_TABLES = ("json_each", "json_tree")
"""Tables that SQLite makes of JSON."""
_MOMENT = re.compile(r"[0-9 T:.Zz+-]+")
_ZONES = frozenset({"localtime", "utc"})
_WRITING = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})


class Phase(IntEnum):
    """Whose statement is about to be prepared."""

    OURS = 0
    """Setting up, transactions."""
    SHOWN = 1
    """Guards and results: what an agent sees follows from them."""
    EFFECT = 2
    """Effects: they may read everything."""
    ENDING = 3
    """Whether nothing is left to do: it may read everything and change nothing."""


class Hidden:
    """Which tables and columns nothing that an agent sees may read."""

    def __init__(self, document: JSON) -> None:
        self.tables = frozenset(table["name"] for table in document["tables"] if table["hidden"])
        self.columns = frozenset(
            (table["name"], column["name"])
            for table in document["tables"]
            for column in table["columns"]
            if column["hidden"]
        )

    def __bool__(self) -> bool:
        return bool(self.tables or self.columns)

    def covers(self, table: str, column: str) -> bool:
        """Whether reading this tells something hidden; an empty column stands for the number of rows."""
        return table in self.tables or (table, column) in self.columns


class Authority:
    """The authorizer of one connection. It is asked when a statement is prepared, and so at every first use."""

    def __init__(self, hidden: Hidden) -> None:
        self.phase = Phase.OURS
        self.denied: list[str] = []
        """Why statements were refused, latest last."""
        self.written: set[str] = set()
        """Tables that prepared statements write to."""
        self._hidden = hidden
        self._functions = known_functions() | DATE_FUNCTIONS

    def __call__(self, action: int, one: str | None, two: str | None, schema: str | None, inner: str | None) -> int:
        """SQLITE_OK or SQLITE_DENY; arguments as SQLite's authorizer has them."""
        if self.phase is Phase.OURS:
            return sqlite3.SQLITE_OK
        reason = self._refusal(action, (one or "").lower(), (two or "").lower())
        if not reason:
            return sqlite3.SQLITE_OK
        self.denied.append(reason)
        return sqlite3.SQLITE_DENY

    def _refusal(self, action: int, one: str, two: str) -> str:
        if action == sqlite3.SQLITE_FUNCTION:
            return "" if two in self._functions else f"the function {two} is not allowed"
        if one.startswith(("sqlite_", "pragma_")):
            return f"{one} is not the world's"
        if action in READING:
            seen = self.phase is Phase.SHOWN and action == sqlite3.SQLITE_READ and self._hidden.covers(one, two)
            return f"it reads hidden {one}.{two}".rstrip(".") if seen else ""
        if action in _WRITING and self.phase is Phase.EFFECT:
            self.written.add(one)
            return ""
        return "an effect can only change rows" if self.phase is Phase.EFFECT else "only reading is allowed here"


class StepBudget:
    """Counts the instructions of one tool call."""

    def __init__(self) -> None:
        self.left = 0

    def refill(self) -> None:
        """Begin a call."""
        self.left = MAX_STEPS // _STEP

    def __call__(self) -> int:
        """Progress handler: not 0 interrupts the statement."""
        self.left -= 1
        return int(self.left < 0)


class Connection:
    """A database in memory under an authority.

    All that happens after `load` is one open transaction, which calls divide by savepoints: going back to the start is
    a rollback, after which prepared statements and the schema still hold. SQLite itself rolls everything back where an
    effect is interrupted or says so (OR ROLLBACK): then no transaction is open, and the state is that of the latest
    `load` or `keep`.
    """

    def __init__(self, hidden: Hidden, *, lists: bool = False) -> None:
        """A connection.

        Args:
            hidden: what nothing that is shown may read.
            lists: whether statements may use the tables json_each and json_tree. Such a connection loads one image.
        """
        self.sql = open_database()
        self.cursor = self.sql.cursor()
        """For the calls' statements; each ends the one before."""
        self._lists = lists
        self._origin: bytes | None = None
        """What a rollback leads to, where that is known as an image."""
        for limit, value in _LIMITS:
            self.sql.setlimit(limit, value)
        self.sql.execute("PRAGMA foreign_keys = ON")
        self.authority = Authority(hidden)
        self.steps = StepBudget()
        self.sql.set_authorizer(self.authority)
        self.sql.set_progress_handler(self.steps, _STEP)

    def load(self, image: bytes) -> None:
        """Replace everything by an image of `serialize`."""
        sql = self._ours()
        if sql.in_transaction:
            sql.execute("ROLLBACK")
        else:
            # In memory, a database takes only pages of its own size.
            sql.execute(f"PRAGMA page_size = {int.from_bytes(image[16:18], 'big')}")
        # Deserialised right here, the database would give images without what the open transaction has changed.
        source = _source()
        source.deserialize(image)
        source.backup(sql)
        # Statements of STRICT tables hold pointers into the schema they were prepared for: setting the authorizer anew
        # has SQLite prepare them again, whatever the schema's cookie is.
        sql.set_authorizer(self.authority)
        if self._lists:
            # SQLite sets these tables up at their first use, which the authorizer would see as a write. They point at
            # the schema of that moment, so another image after this would leave them pointing at freed memory.
            for table in LIST_TABLES:
                sql.execute(f"SELECT 1 FROM {table}('[]')").fetchall()
        sql.execute("BEGIN")
        self._origin = image

    def rewind(self, image: bytes) -> bool:
        """Go back to an image by rolling back; False, and nothing happens, where that would lead elsewhere."""
        if self._origin is not image:
            return False
        sql = self._ours()
        sql.execute("ROLLBACK")
        sql.execute("BEGIN")
        return True

    def keep(self) -> None:
        """Make the present state the one that a rollback leads to."""
        sql = self._ours()
        if sql.in_transaction:
            sql.execute("COMMIT")
        sql.execute("BEGIN")
        self._origin = None

    def _ours(self) -> sqlite3.Connection:
        # A statement that was not read to its end would hold the database; with its cursor, it ends.
        self.cursor = self.sql.cursor()
        self.authority.phase = Phase.OURS
        self.steps.refill()
        return self.sql

    def image(self) -> bytes:
        """The present state; equal states need not have equal images."""
        return self._ours().serialize()


def open_database() -> sqlite3.Connection:
    """An empty database in memory that knows no present moment; usable from any thread, one at a time."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=512)
    # SQLite itself makes text that is no Unicode, such as of the JSON "\\ud800"; no query may fail for that.
    connection.text_factory = _text
    for name, function in _timeless().items():
        connection.create_function(name, -1, function, deterministic=True)
    return connection


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


class _Sources(threading.local):
    """A connection of each thread that images are read with."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


@cache
def _sources() -> _Sources:
    return _Sources()


def _source() -> sqlite3.Connection:
    return _sources().connection


@cache
def _timeless() -> Mapping[str, Callable[..., JSON]]:
    """SQLite's date functions; the present moment and time zones are NULL to them, as is any text they cannot read.

    SQLite reads bytes as text, and a text up to its first NUL, and it knows more than one word for the present moment.
    So what is allowed is listed, and not what is forbidden.
    """
    plain = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    def timeless(name: str) -> Callable[..., JSON]:
        first = int(name == "strftime")

        # The days of a world are few, and its invariants ask for each again and again.
        @lru_cache(maxsize=4096, typed=True)
        def function(*arguments: JSON) -> JSON:
            if len(arguments) <= first or not _timeless_arguments(arguments[first:]):
                return None
            marks = ",".join("?" * len(arguments))
            return plain.execute(f"SELECT {name}({marks})", arguments).fetchone()[0]

        return function

    return {name: timeless(name) for name in DATE_FUNCTIONS}


def _timeless_arguments(arguments: Sequence[JSON]) -> bool:
    """Whether a moment and its modifiers say everything themselves."""
    moment, *modifiers = arguments
    if any(isinstance(argument, bytes) or (isinstance(argument, str) and "\0" in argument) for argument in arguments):
        return False
    if isinstance(moment, str) and not _MOMENT.fullmatch(moment):
        return False
    return not any(isinstance(word, str) and word.strip().lower() in _ZONES for word in modifiers)
