"""Opening the DuckDB file: creation, migrations, and the one translation of DuckDB's errors into ours."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from envsynth.catalog._sql import migrations, statements
from envsynth.errors import (
    CatalogError,
    CatalogLocked,
    CatalogSchemaMismatch,
    ConfigError,
    EnvsynthError,
    boundary,
    disk_full,
)  # fmt: skip

__all__ = ["connect", "transaction", "translated", "utc_now"]

Connection = duckdb.DuckDBPyConnection

_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_BROKEN = ("Corrupt database file", "Could not read enough bytes", "checksum", "Serialization Error", "WAL file")


def utc_now() -> datetime:
    """This moment, UTC, without a zone: how the catalog keeps moments."""
    return datetime.now(UTC).replace(tzinfo=None)


def connect(path: Path, *, read_only: bool) -> Connection:
    """An open catalog in this version's schema; made where there is none, migrated where it is older.

    Raises:
        ConfigError: there is none, and it was to be read.
        CatalogLocked: another process has it.
        CatalogSchemaMismatch: a newer version wrote it.
        CatalogError: it is no catalog, or damaged.
    """
    if not path.exists():
        if read_only:
            raise ConfigError(
                "there is no catalog", where=str(path), cause="nothing was built yet, or it stands elsewhere",
                next_step="envsynth build --source F, or name it with --catalog",
            )  # fmt: skip
        _create(path)
    connection = _open(path, read_only)
    try:
        if _version(connection, path) < migrations()[-1].number:
            if read_only:
                connection.close()
                connect(path, read_only=False).close()
                return connect(path, read_only=True)
            _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def translated(path: Path, what: str) -> Iterator[None]:
    """Turn DuckDB's errors into the catalog's.

    Raises:
        CatalogError: with what was being done, where, why and what to do.
    """
    with boundary(CatalogError, what, where=str(path)):
        try:
            yield
        except duckdb.Error as exc:
            raise _translate(exc, path, what) from exc


@contextmanager
def transaction(connection: Connection, path: Path, what: str) -> Iterator[None]:
    """Everything or nothing; errors are translated."""
    with translated(path, what):
        connection.begin()
        try:
            yield
            connection.commit()
        except BaseException:
            # A failed commit has rolled back already, and a full disk may have closed the database.
            with suppress(duckdb.Error):
                connection.rollback()
            raise


def _open(path: Path, read_only: bool) -> Connection:
    # A reader's SQL comes from a person: it may not reach files or settings.
    config: dict[str, str | bool | int | float | list[str]] = (
        {"enable_external_access": False, "lock_configuration": True} if read_only else {}
    )
    with translated(path, "the catalog cannot be opened"):
        return duckdb.connect(path, read_only=read_only, config=config)


def _create(path: Path) -> None:
    """A new catalog appears whole: it is made beside its place and linked into it."""
    step = "name another file with --catalog P"
    with boundary(ConfigError, "the catalog cannot be made", where=str(path), next_step=step):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            scratch = Path(folder, "new.duckdb")
            connection = _open(scratch, read_only=False)
            try:
                _migrate(connection, path)
            finally:
                connection.close()
            # Unlike a rename, a link cannot replace what another process made in the same moment.
            with suppress(FileExistsError):
                os.link(scratch, path)


def _version(connection: Connection, path: Path) -> int:
    newest = migrations()[-1].number
    try:
        row = connection.execute(statements("read")["schema_version"]).fetchone()
    except duckdb.CatalogException:
        raise CatalogError(
            "the file is a DuckDB database but not an envsynth catalog", where=str(path),
            next_step="name another file with --catalog",
        ) from None  # fmt: skip
    except duckdb.Error as exc:
        raise _translate(exc, path, "the catalog cannot be read") from exc
    version = int(row[0]) if row and row[0] is not None else 0
    if version > newest:
        raise CatalogSchemaMismatch(
            f"the catalog has schema {version}, this envsynth knows {newest}", where=str(path),
            cause="a newer version wrote it", next_step="upgrade envsynth, or name another file with --catalog",
        )  # fmt: skip
    return version


def _migrate(connection: Connection, path: Path) -> None:
    with transaction(connection, path, "the catalog's schema cannot be brought up to date"):
        exists = connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'migration' AND database_name = current_database()"
        ).fetchone()
        done = _version(connection, path) if exists and exists[0] else 0
        for step in migrations():
            if step.number > done:
                connection.execute(step.sql)
                connection.execute("INSERT INTO migration VALUES (?, ?, ?)", [step.number, step.name, utc_now()])


def _translate(exc: duckdb.Error, path: Path, what: str) -> EnvsynthError:
    text = str(exc)
    where = str(path)
    cause = text.strip().splitlines()[0][:300] if text.strip() else type(exc).__name__
    if any(sign in text for sign in _FULL):
        return disk_full(where)
    if "Could not set lock" in text:
        holder = re.search(r"held in (.+?) \(PID (\d+)\)", text)
        who = f"process {holder[2]} ({Path(holder[1]).name})" if holder else "another process"
        return CatalogLocked(
            "the catalog is in use", where=where, cause=f"{who} holds it",
            next_step="wait for it to end and run the same command again",
        )  # fmt: skip
    if "different configuration" in text:
        return CatalogLocked("the catalog is in use", where=where, cause="this process has it open in another mode")
    if "not a valid DuckDB database file" in text:
        return CatalogError(
            "the file is not a DuckDB database", where=where, cause="another kind of file, or damaged at its start",
            next_step="name another file with --catalog, or move this one away",
        )  # fmt: skip
    if "version number" in text or "newer version" in text or "storage version" in text:
        return CatalogSchemaMismatch(
            "the catalog's file format is too new", where=where, cause=cause, next_step="pip install --upgrade duckdb"
        )
    if any(sign in text for sign in _BROKEN):
        return CatalogError(
            "the catalog is damaged", where=where, cause=cause,
            next_step="restore a copy, or move it and its .wal away and build again: the cache keeps finished work",
        )  # fmt: skip
    return CatalogError(what, where=where, cause=cause)
