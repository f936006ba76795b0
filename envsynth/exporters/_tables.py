"""Tables as parquet files, the same bytes for the same rows."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import duckdb

from envsynth.errors import ExportError, boundary

__all__ = ["parquet_bytes"]


def parquet_bytes(query: str, values: Mapping[str, object], *, where: str) -> bytes:
    """What a query selects, as a parquet file.

    Args:
        query: SQL of DuckDB; its rows keep their order.
        values: of the query's parameters, by name.
        where: the format, for messages.

    Raises:
        ExportError: the table cannot be written.
    """
    with (
        boundary(ExportError, "the table cannot be written", where=where),
        tempfile.TemporaryDirectory() as folder,
        # With one thread the same rows give the same bytes.
        duckdb.connect(config={"threads": 1}) as connection,
    ):
        path = Path(folder) / "table.parquet"
        quoted = str(path).replace("'", "''")  # COPY takes no parameter for it
        connection.execute(f"COPY ({query}) TO '{quoted}' (FORMAT parquet, COMPRESSION zstd)", dict(values))
        return path.read_bytes()
