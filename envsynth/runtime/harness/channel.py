"""The report file: JSON lines, each with the run's nonce and its position, written before the next test starts."""

from __future__ import annotations

import errno
import fcntl
import json
import os

HIGH_DESCRIPTOR = 700
"""The report's descriptor is moved up here: suites that close 'all' low descriptors then leave it alone."""

MESSAGE_CHARACTERS = 4000
FULL_MESSAGES = 1000
"""Messages after this many are cut short, so that a suite that fails as a whole keeps a small report."""


class Channel:
    """Append-only report of one process; forks of it are mute."""

    def __init__(self, path: str, nonce: str) -> None:
        self._path = path
        self._nonce = nonce
        self._position = 0
        self._messages = 0
        self._descriptor = -1
        # Bound now: suites patch `os` and `json`.
        self._write, self._open, self._close = os.write, os.open, os.close
        self._dumps, self._getpid, self._dup = json.dumps, os.getpid, fcntl.fcntl
        self._owner = os.getpid()
        self._reopen()

    def send(self, kind: str, **fields: object) -> None:
        """Write one record. `kind` names it; fields are JSON values."""
        if self._getpid() != self._owner:
            return
        record = {"n": self._nonce, "q": self._position, "t": kind}
        record.update(fields)
        line = self._dumps(record).encode("ascii") + b"\n"
        try:
            self._write_all(line)
        except OSError as exc:
            if exc.errno != errno.EBADF:
                raise
            self._reopen()
            self._write_all(line)
        self._position += 1

    def shorten(self, message: str) -> str:
        """Cut a failure's message: the beginning says what, the end says where."""
        self._messages += 1
        room = MESSAGE_CHARACTERS if self._messages <= FULL_MESSAGES else 200
        if len(message) <= room:
            return message
        return message[: room * 3 // 4] + "\n...\n" + message[-room // 4 :]

    def _write_all(self, line: bytes) -> None:
        while line:
            line = line[self._write(self._descriptor, line) :]

    def _reopen(self) -> None:
        low = self._open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            self._descriptor = self._dup(low, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
        except OSError:
            self._descriptor = low  # a lower limit of open files
        else:
            self._close(low)
