"""Reading a catalog."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
from pydantic import JsonValue

from envsynth.catalog._attempts import to_attempt
from envsynth.catalog._connection import Connection, connect, translated
from envsynth.catalog._dump import logical_content
from envsynth.catalog._rows import to_outcome, to_run, to_task, to_verdict
from envsynth.catalog._sql import statements
from envsynth.catalog.blobs import CatalogBlobs
from envsynth.catalog.reports import (
    AttemptFigures,
    CatalogStats,
    QueryResult,
    Shared,
    SourceCost,
    SourceFlicker,
    StrengthStats,
)  # fmt: skip
from envsynth.errors import CatalogError, ConfigError
from envsynth.models import (
    Attempt,
    AttemptStatus,
    FunnelRow,
    Outcome,
    Source,
    Task,
    TestRun,
    Verdict,
)  # fmt: skip
from envsynth.protocols import BlobStore

__all__ = ["CatalogReader"]

_ASKED_WRONGLY = (
    duckdb.ProgrammingError,
    duckdb.DataError,
    duckdb.PermissionException,
    duckdb.InvalidInputException,
    duckdb.TransactionException,
)


class CatalogReader:
    """What can be asked of an open catalog; a context manager."""

    def __init__(self, connection: Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._blobs = CatalogBlobs(connection, path)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Self:
        """Open a catalog; made where there is none, brought up to date where it is older.

        Raises:
            ConfigError: there is none, and `read_only`.
            CatalogLocked: another process has it open.
            CatalogSchemaMismatch: a newer version wrote it.
            CatalogError: it is no catalog, or damaged.
        """
        return cls(connect(path.absolute(), read_only=read_only), path.absolute())

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def blobs(self) -> BlobStore:
        """The contents kept here: exports need nothing else."""
        return self._blobs

    # --- reading -------------------------------------------------------------------------------------------

    def tasks(self, where: str = "") -> list[Task]:
        """Admitted tasks, by id.

        Args:
            where: SQL condition over the view `task`, such as `fail_to_pass >= 2 AND source LIKE '%boltons%'`.

        Raises:
            ConfigError: the condition is not SQL over that view.
        """
        return self.tasks_by_id(self.task_ids(where))

    def tasks_by_id(self, ids: Sequence[str]) -> list[Task]:
        """The tasks of these ids, by id; those that are not there are left out."""
        with translated(self.path, "the tasks cannot be read"):
            return [to_task(*row) for row in self._run("read", "tasks", {"ids": list(ids)})]

    def task_ids(self, where: str = "") -> list[str]:
        """Ids of the tasks that `tasks` returns, without reading them."""
        condition = where.strip() or "true"
        # The line breaks end any comment in the condition.
        result = self.query(f"SELECT id FROM task WHERE (\n{condition}\n) ORDER BY id")
        return [row[0] for row in result.rows]

    def shared(self, one: Sequence[str], two: Sequence[str]) -> list[Shared]:
        """What two sets of tasks, by id, have in common that would leak from one to the other."""
        with translated(self.path, "the tasks cannot be compared"):
            return [Shared(*row) for row in self._run("read", "shared", {"one": list(one), "two": list(two)})]

    def tasks_of(self, keys: Sequence[str]) -> list[Task]:
        """The tasks among these leads, by id."""
        with translated(self.path, "the tasks cannot be read"):
            return [to_task(*row) for row in self._run("read", "tasks_of", {"keys": list(keys)})]

    def task(self, task_id: str) -> Task:
        """A task by id, or by any beginning of it that fits one only.

        Raises:
            ConfigError: none or several fit.
        """
        with translated(self.path, "the task cannot be read"):
            rows = self._run("read", "task", {"name": task_id})
        if len(rows) == 1:
            return to_task(*rows[0])
        outcome = self.outcome(task_id)
        if outcome.task is None:
            raise ConfigError(
                f"the lead was {outcome.status.value} ({outcome.reason}): there is no task", where=task_id,
                next_step=f"envsynth catalog show {task_id}",
            )  # fmt: skip
        return outcome.task

    def outcome(self, name: str) -> Outcome:
        """Everything of one lead, by candidate id, lead key or commit, or by a beginning that fits one task only.

        Raises:
            ConfigError: none or several fit.
        """
        return next(self.outcomes([self.key(name)]))

    def outcomes(self, keys: Sequence[str] | None = None) -> Iterator[Outcome]:
        """Outcomes by lead key, in order of their keys; None: all."""
        with translated(self.path, "the outcomes cannot be read"):
            wanted = self.keys() if keys is None else list(keys)
            for start in range(0, len(wanted), 50):
                yield from self._outcomes(wanted[start : start + 50])

    def _outcomes(self, keys: list[str]) -> Iterator[Outcome]:
        runs: dict[tuple[str, int], list[TestRun]] = defaultdict(list)
        for row in self._rows("runs", keys):
            runs[row["lead"], row["verdict"]].append(to_run(row))
        verdicts: dict[str, list[Verdict]] = defaultdict(list)
        for row in self._rows("verdicts", keys):
            verdicts[row["lead"]].append(to_verdict(row, runs[row["lead"], row["position"]]))
        for row in self._rows("outcomes", keys):
            yield to_outcome(row, verdicts[row["lead"]])

    def key(self, name: str) -> str:
        """The lead key of a candidate id, lead key or commit, or of a beginning that fits one task only.

        Raises:
            ConfigError: none or several fit.
        """
        with translated(self.path, "the catalog cannot be read"):
            found = self._run("read", "keys_of", {"name": name}) or self._run("read", "keys_like", {"name": name})
            if len(found) == 1:
                return str(found[0][0])
            known = [row[0] for row in self._run("read", "task_ids", {})]
        close = get_close_matches(name, known, n=1)
        raise ConfigError(
            f"{len(found)} leads begin with {name!r}" if found else f"there is no task or lead {name!r}",
            where=str(self.path), cause=f"did you mean {close[0]}?" if close else "", next_step="envsynth catalog ls",
        )  # fmt: skip

    def keys(self, *, admitted: bool = False) -> list[str]:
        """The keys of all leads, or of those that became tasks, sorted."""
        with translated(self.path, "the catalog cannot be read"):
            return [row[0] for row in self._run("read", "admitted_keys" if admitted else "keys", {})]

    def source(self, uri: str) -> Source:
        """A source with the options that the latest build of it had.

        Raises:
            CatalogError: no build here read that source.
        """
        with translated(self.path, "the source cannot be read"):
            rows = self._run("read", "source_of", {"uri": uri})
        if not rows:
            raise CatalogError(
                f"the catalog does not know the source {uri}", where=str(self.path),
                cause="it was damaged or written by hand", next_step="build the source again",
            )  # fmt: skip
        return Source.from_json(rows[0][0])

    def attempts(self, where: str = "") -> Iterator[Attempt]:
        """Attempts of rollouts, by task, policy and draw.

        Args:
            where: SQL condition over the table `attempt`, such as `policy = 'model' AND success`.

        Raises:
            ConfigError: the condition is not SQL over that table.
        """
        condition = where.strip() or "true"
        order = "task, policy, model, settings, hinted, k"
        found = self.query(f"SELECT key FROM attempt WHERE (\n{condition}\n) ORDER BY {order}")
        return self.attempts_of([row[0] for row in found.rows])

    def attempts_of(self, keys: Sequence[str]) -> Iterator[Attempt]:
        """Those attempts of the keys that are here, by task, policy and draw within each hundred keys."""
        with translated(self.path, "the attempts cannot be read"):
            for start in range(0, len(keys), 100):
                for row in self._run("read", "attempts", {"keys": list(keys[start : start + 100])}):
                    yield to_attempt(*row)

    def attempted(self, keys: Sequence[str]) -> dict[str, AttemptStatus]:
        """Those of the keys that are here, with what they came to."""
        with translated(self.path, "the attempts cannot be read"):
            rows = self._run("read", "attempt_states", {"keys": list(keys)})
        return {key: AttemptStatus(status) for key, status in rows}

    def attempt_figures(self, keys: Sequence[str]) -> list[AttemptFigures]:
        """Figures of those attempts of the keys that are here, by task, hint and draw."""
        with translated(self.path, "the attempts cannot be read"):
            return [AttemptFigures(*row) for row in self._run("read", "attempt_figures", {"keys": list(keys)})]

    def solve_rates(self, key: str) -> QueryResult:
        """How often each policy solved the task of a lead."""
        with translated(self.path, "the attempts cannot be read"):
            cursor = self._connection.execute(statements("read")["solve_rates"], {"key": key})
            return QueryResult(tuple(column[0] for column in cursor.description or ()), cursor.fetchall())

    def figures(self, name: str, **parameters: JsonValue) -> QueryResult:
        """The answer to one of the questions of `queries/report.sql`, in a stated order.

        Args:
            name: of the question.
            parameters: what it asks for.
        """
        with translated(self.path, "the catalog cannot be read"):
            cursor = self._connection.execute(statements("report")[name], parameters)
            return QueryResult(tuple(column[0] for column in cursor.description or ()), cursor.fetchall())

    def query(self, sql: str) -> QueryResult:
        """Answer one SELECT; nothing can be changed by it.

        Raises:
            ConfigError: it is not one SELECT, or DuckDB cannot answer it.
        """
        with self._asked():
            parsed = self._connection.extract_statements(sql)
            if len(parsed) != 1 or parsed[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
                raise ConfigError("not one SELECT statement", where="sql", cause="the catalog's SQL only reads")
            self._connection.execute("BEGIN TRANSACTION READ ONLY")
            try:
                cursor = self._connection.execute(parsed[0])
                columns = tuple(column[0] for column in cursor.description or ())
                return QueryResult(columns, cursor.fetchall())
            finally:
                self._connection.execute("ROLLBACK")

    def funnel(self, keys: Sequence[str]) -> list[FunnelRow]:
        """How these leads ended, by source, status and reason."""
        with translated(self.path, "the catalog cannot be read"):
            return [_funnel_row(row) for row in self._run("read", "funnel_of", {"keys": list(keys)})]

    def stats(self) -> CatalogStats:
        """The catalog in figures."""
        with translated(self.path, "the catalog cannot be read"):
            leads, builds, blob_bytes, blobs, wall_s, cpu_s, disk = self._run("read", "stats_totals", {})[0]
            funnel = [_funnel_row(row) for row in self._run("read", "stats_funnel", {})]
            (strength,) = self._rows("stats_strength")
            flicker = [SourceFlicker(source=row[0], tests=row[1]) for row in self._run("read", "stats_flicker", {})]
            (twins,) = self._run("read", "stats_near_duplicates", {})[0]
            costs = [
                SourceCost(source=source, tasks=tasks, wall_s=wall, cpu_s=cpu, disk_bytes=size)
                for source, tasks, wall, cpu, size in self._run("read", "stats_cost", {})
            ]
        statuses: Counter[str] = Counter()
        for row in funnel:
            statuses[row.status] += row.leads
        return CatalogStats(
            builds=builds, leads=leads, statuses=dict(statuses), funnel=tuple(funnel), flicker=tuple(flicker),
            costs=tuple(costs), near_duplicates=twins, strength=StrengthStats.model_validate(strength),
            wall_s=wall_s, cpu_s=cpu_s, disk_bytes=disk, blobs=blobs, blob_bytes=blob_bytes,
            file_bytes=self.path.stat().st_size,
        )  # fmt: skip

    def dump(self) -> dict[str, JsonValue]:
        """What the catalog says, canonical: equal for two catalogs of the same work, in whatever order it was done.

        Moments, costs, build numbers and printed output are left out; contents that are named but not there are
        listed under `missing`.
        """
        with translated(self.path, "the catalog cannot be read"):
            sources: list[JsonValue] = [list(row) for row in self._run("read", "sources", {})]
            return logical_content(self.outcomes(), sources, self._blobs)

    # --- statements ----------------------------------------------------------------------------------------

    def _run(self, file: str, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._connection.execute(statements(file)[name], parameters).fetchall()

    def _rows(self, name: str, keys: list[str] | None = None) -> list[dict[str, Any]]:
        cursor = self._connection.execute(statements("read")[name], {} if keys is None else {"keys": keys})
        columns = [column[0] for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """A person's SQL: what DuckDB has against it is a usage error."""
        try:
            yield
        except _ASKED_WRONGLY as exc:
            text = " ".join(str(exc).split("\n\nLINE")[0].split())
            raise ConfigError(
                f"the SQL cannot be answered: {text[:300]}", where="sql",
                next_step="envsynth catalog sql --help lists the views and their columns",
            ) from exc  # fmt: skip
        except duckdb.Error as exc:
            with translated(self.path, "the SQL cannot be answered"):
                raise exc


def _funnel_row(row: tuple[Any, ...]) -> FunnelRow:
    source, status, reason, leads = row
    return FunnelRow(source=source, status=status, reason=reason, leads=leads)
