"""Catalog: one DuckDB file with every lead, task, verdict, run and content. One writer at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

import envsynth
from envsynth.catalog._attempts import attempt_columns
from envsynth.catalog._connection import transaction, translated, utc_now
from envsynth.catalog._reader import CatalogReader
from envsynth.catalog._rows import outcome_row, run_rows, verdict_rows
from envsynth.catalog.blobs import roots_of
from envsynth.catalog.reports import MergeReport
from envsynth.errors import ConfigError
from envsynth.models import (
    Attempt,
    AttemptStatus,
    Candidate,
    Cost,
    Outcome,
    OutcomeStatus,
    Source,
    Task,
    canonical_json,
    played_digest,
)  # fmt: skip
from envsynth.protocols import BlobStore

__all__ = ["Catalog"]


class Catalog(CatalogReader):
    """An open catalog; a context manager.

    Not thread-safe, and not to be carried through a fork: open it in the process that uses it.
    """

    # --- writing -------------------------------------------------------------------------------------------

    def begin_build(self, configuration: dict[str, JsonValue]) -> int:
        """Note that a build began; returns its number."""
        text = canonical_json(configuration)
        parameters = {"envsynth": envsynth.__version__, "now": utc_now(), "configuration": text}
        with transaction(self._connection, self.path, "the build cannot be noted"):
            return int(self._run("write", "begin_build", parameters)[0][0])

    def end_build(self, build: int, status: str, cost: Cost) -> None:
        """Note how a build ended: `done`, `failed` or `interrupted`, and what it took altogether."""
        with transaction(self._connection, self.path, "the build's end cannot be noted"):
            self._run("write", "end_build", {
                "build": build, "now": utc_now(), "status": status,
                "wall_s": cost.wall_s, "cpu_s": cost.cpu_s, "disk_bytes": cost.disk_bytes,
            })  # fmt: skip

    def record_source(self, build: int, source: Source, revision: str, planned: int) -> None:
        """Note a source of a build, its resolved revision and its number of leads."""
        with transaction(self._connection, self.path, "the source cannot be noted"):
            self._run("write", "record_source", {
                "build": build, "uri": source.uri, "revision": revision, "planned": planned,
                "document": source.to_json(),
            })  # fmt: skip

    def settled(self, keys: Sequence[str], ladder: str) -> dict[str, OutcomeStatus]:
        """Those of the lead keys that have a final outcome under this ladder."""
        with translated(self.path, "the catalog cannot be read"):
            rows = self._run("read", "settled", {"keys": list(keys), "ladder": ladder})
        return {key: OutcomeStatus(status) for key, status in rows}

    def record(self, build: int, outcomes: Sequence[Outcome], blobs: BlobStore, *, judged_again: bool = False) -> None:
        """Keep outcomes, with everything their candidates name, in one transaction.

        A final outcome stands until another ladder gives a final one; what is owed never replaces it. So recording
        the same outcome twice changes nothing.

        Args:
            build: number of the build.
            outcomes: any; of several for one lead the last counts.
            blobs: where the candidates' contents are.
            judged_again: these were made from what stands here, so that final ones replace it under any ladder.

        Raises:
            CatalogError: nothing of these outcomes was kept; what was there before is untouched.
        """
        try:
            with transaction(self._connection, self.path, "the outcomes cannot be written"):
                latest = {outcome.lead.key: outcome for outcome in outcomes}
                standing = {key: word for key, *word in self._run("write", "standing", {"keys": list(latest)})}
                news = [
                    outcome for key, outcome in latest.items()
                    if _is_news(outcome, *standing.get(key, ()))
                    or (judged_again and outcome.status is not OutcomeStatus.OWED)
                ]  # fmt: skip
                self._delete([outcome.lead.key for outcome in news if outcome.lead.key in standing])
                self._record(build, news, blobs)
        except BaseException:
            self._blobs.forget()
            raise

    def record_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Keep attempts, in one transaction. A finished one stands; what the environment kept from an end is replaced.

        Raises:
            CatalogError: none of these attempts was kept.
        """
        if not attempts:
            return
        latest = {attempt.key: attempt for attempt in attempts}
        with transaction(self._connection, self.path, "the attempts cannot be written"):
            standing = self.attempted(list(latest))
            news = [one for key, one in latest.items() if standing.get(key) is not AttemptStatus.FINISHED]
            if news:
                self._run("write", "insert_attempts", {**attempt_columns(news), "now": utc_now()})

    def _record(self, build: int, outcomes: list[Outcome], blobs: BlobStore) -> None:
        self._blobs.copy_closure([outcome.candidate for outcome in outcomes if outcome.candidate is not None], blobs)
        now = utc_now()
        rosters: set[str] = set()
        for outcome in outcomes:
            self._run("write", "insert_outcome", outcome_row(outcome, build, now))
            for verdict in verdict_rows(outcome):
                self._run("write", "insert_verdict", verdict)
            for run, keys in run_rows(outcome):
                if run["roster"] not in rosters:
                    self._run("write", "insert_roster", {"digest": run["roster"], "keys": keys})
                    rosters.add(run["roster"])
                self._run("write", "insert_run", run)
        self._forget_outdated([outcome.task for outcome in outcomes if outcome.task is not None])

    def _forget_outdated(self, tasks: Sequence[Task]) -> None:
        """Attempts at what was played or graded otherwise than these tasks say nothing of them any more."""
        for task in tasks:
            played = played_digest(task.candidate, task.tests, task.controls)
            lead = task.candidate.provenance.lead.key
            self._run("write", "delete_outdated_attempts", {"lead": lead, "played": played})

    def _delete(self, keys: list[str]) -> None:
        if not keys:
            return
        for name in ("delete_runs", "delete_verdicts", "delete_outcomes"):
            self._run("write", name, {"keys": keys})

    def remove(self, task_ids: Sequence[str]) -> int:
        """Forget tasks with their verdicts, runs, attempts and contents that nothing else names.

        Their leads are forgotten with them: another build of the source makes the tasks again.

        Returns:
            How many tasks were removed.

        Raises:
            ConfigError: an id is not known; nothing is removed.
        """
        keys = [self.key(task_id) for task_id in task_ids]
        with transaction(self._connection, self.path, "the tasks cannot be removed"):
            self._delete(keys)
            self._run("write", "delete_attempts", {"keys": keys})
            self._run("write", "delete_unused_rosters", {})
            self._delete_unused_blobs()
        return len(set(keys))

    def _delete_unused_blobs(self) -> None:
        used: set[str] = set()
        trees: set[str] = set()
        for (document,) in self._run("read", "candidates", {}):
            tree_digests, plain = roots_of(Candidate.from_json(document))
            trees.update(tree_digests)
            used.update(plain)
        for digest in trees:
            used.update(entry.blob for entry in self._blobs.get_tree(digest).entries)
        unused = [digest for (digest,) in self._run("read", "all_blobs", {}) if digest not in used | trees]
        self._run("write", "delete_blobs", {"digests": unused})
        self._blobs.forget()

    def merge(self, other: Path) -> MergeReport:
        """Take over what another catalog knows; merging it twice changes nothing.

        A final outcome wins over an owed one; of two final ones under different ladders the later wins.

        Raises:
            ConfigError: the other is this one, or there is none.
            CatalogError: as for `open`.
        """
        if other.exists() and other.samefile(self.path):
            raise ConfigError("a catalog cannot be merged into itself", where=str(other))
        Catalog.open(other, read_only=True).close()  # brings it up to date, and says what is wrong with it
        quoted = str(other.absolute()).replace("'", "''")
        with translated(other, "the other catalog cannot be read"):
            self._connection.execute(f"ATTACH '{quoted}' AS other (READ_ONLY)")
        try:
            with transaction(self._connection, self.path, "the catalogs cannot be merged"):
                return self._merge()
        finally:
            self._connection.execute("DETACH other")
            self._blobs.forget()

    def _merge(self) -> MergeReport:
        for name in ("builds", "source_runs"):
            self._run("merge", name, {})
        incoming = self._run("merge", "incoming", {})
        keys = [key for key, _ in incoming]
        replaced = [key for key, replaces in incoming if replaces]
        self._delete(replaced)
        for name in ("outcomes", "verdicts", "rosters", "runs"):
            self._run("merge", name, {"keys": keys})
        self._run("merge", "blobs", {})
        self._run("merge", "attempts", {})
        self._forget_outdated(self.tasks_of([row[0] for row in self._run("merge", "attempted_leads", {})]))
        theirs = int(self._run("merge", "count", {})[0][0])
        return MergeReport(
            added=len(keys) - len(replaced), replaced=len(replaced), kept=theirs - len(keys),
            tasks=len(self._run("read", "task_ids", {})),
        )  # fmt: skip


def _is_news(outcome: Outcome, ladder: str = "", status: str = OutcomeStatus.OWED) -> bool:
    """Whether an outcome replaces what stands: the ladder and status there, none by default."""
    if status == OutcomeStatus.OWED:
        return True
    return ladder != outcome.ladder and outcome.status is not OutcomeStatus.OWED
