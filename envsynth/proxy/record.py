"""The record of a harness's calls: one line of JSON a call, written when the call has ended."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from envsynth.errors import ConfigError, ExportError, boundary
from envsynth.llm.messages import Usage
from envsynth.models import Model

__all__ = ["CALLS", "Ending", "ProxiedCall", "Record", "plain", "read_record", "tame"]

CALLS = "calls.jsonl"
MOST_BYTES = 512 << 20
"""A record that has grown to this takes no more calls: what runs in a sandbox must not fill the host's disk."""
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
_MOST_REFUSED = 1000
"""Calls that were not forwarded are written down so many times."""
Ending = Literal["answered", "rejected", "failed", "refused", "budget", "interrupted"]
"""`answered`: with status 200, whole. `rejected`: the endpoint does not take this request. `failed`: the endpoint, or
the way to it, failed. `refused`: not forwarded. `budget`: not forwarded either, for the spend limit leaves no room.
`interrupted`: the proxy was stopped first."""


class ProxiedCall(Model):
    """One request of a harness, and what came of it."""

    number: int = Field(ge=0)
    """In the order of arrival."""
    at: str
    """When it came (ISO 8601, UTC)."""
    seconds: float = Field(ge=0)
    """To the end of the answer."""
    request: JsonValue
    """The body as it was forwarded; of one that was not, as it came, where it is JSON."""
    left_out: tuple[str, ...] = ()
    """Parameters of the harness's that were not forwarded."""
    stream: bool = False
    status: int
    """HTTP status that the harness got; 0: none."""
    response: JsonValue = None
    """The body that the harness got; a stream put together as one answer; a text where it is not JSON."""
    ending: Ending
    note: str = ""
    """What failed, in words."""
    heard: bool = True
    """Whether the harness was there to the end."""
    usage: Usage | None = None
    """None: the endpoint does not tell."""
    cost_usd: float | None = None
    """US dollars; None: not known, or nothing was answered."""

    @property
    def says_nothing_of_the_agent(self) -> bool:
        """Whether it is the endpoint's, the budget's or our fault that there was no answer."""
        return self.ending in ("failed", "budget", "interrupted")


class Record:
    """The file of one run; safe to share between threads.

    Args:
        folder: made where there is none; must not hold a record yet.

    Raises:
        ConfigError: there is one, or it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / CALLS
        self._lock = threading.Lock()
        self._calls: list[ProxiedCall] = []
        self._arrived = 0
        self._size = 0
        self._refused = 0
        step = "name another folder with --out DIR"
        with boundary(ConfigError, "the record cannot be written", where=str(self.path), next_step=step):
            folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(self.path, flags, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def calls(self) -> tuple[ProxiedCall, ...]:
        """What has ended, in the order of arrival."""
        with self._lock:
            return tuple(sorted(self._calls, key=lambda call: call.number))

    @property
    def full(self) -> bool:
        """Whether it has grown to its limit."""
        with self._lock:
            return self._size >= MOST_BYTES

    def arrived(self) -> int:
        """The number of a new call."""
        with self._lock:
            self._arrived += 1
            return self._arrived - 1

    def keep(self, call: ProxiedCall) -> None:
        """Write a call that has ended; what comes after the file was closed, or is refused too often, is left out."""
        line = json.dumps(call.document(), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            self._refused += call.ending == "refused"
            if self._file < 0 or (call.ending == "refused" and self._refused > _MOST_REFUSED):
                return
            self._calls.append(call)
            self._size += len(line)
            while line:
                line = line[os.write(self._file, line) :]

    def close(self) -> None:
        """Everything is on the disk; safe to call twice."""
        with self._lock:
            if self._file >= 0:
                os.fsync(self._file)
                os.close(self._file)
                self._file = -1


def read_record(folder: Path) -> Iterator[ProxiedCall]:
    """The calls of a record, in the order in which they ended. A last line that is torn is left out.

    Raises:
        ExportError: there is no record, or it is damaged.
    """
    path = folder / CALLS
    with boundary(ExportError, "the record cannot be read", where=str(path)):
        lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if number == len(lines) and not line.endswith(b"\n"):
            return
        try:
            yield ProxiedCall.from_json(line)
        except ValidationError as exc:
            raise ExportError("the record is damaged", where=f"{path}:{number}", cause=str(exc)[:200]) from exc


def plain(content: bytes, most: int = 1 << 30) -> Any:
    """A body for the record: as JSON where it is, else as a text; one of more bytes than `most` by its digest."""
    if len(content) > most:
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    text = content.decode("utf-8", "replace")
    try:
        return tame(json.loads(text, parse_constant=str, parse_float=_finite))
    except (ValueError, RecursionError):
        return text


def tame(value: Any) -> Any:
    """A JSON value as every reader of JSON can read it: halves of characters become question marks.

    Raises:
        ValueError: it has numbers that JSON has not, or is nested too deep to be written down.
        RecursionError: as deep as that.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return _JSON.validate_python(json.loads(text))


def _finite(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text
