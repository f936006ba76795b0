"""A harness's attempt from the command line to the catalog."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.catalog.blobs import roots_of
from envsynth.config import BuildConfig
from envsynth.context import BuildContext
from envsynth.errors import CatalogLocked, ConfigError
from envsynth.llm import Ledger
from envsynth.models import Attempt, AttemptStatus, Source, Task, Tree, Workspace
from envsynth.proxy.episode import Harness, Played, Venue, attempted_by, key_of_draw
from envsynth.proxy.upstream import Upstream
from envsynth.runtime.contract import Backend

__all__ = ["HarnessRun", "attempt_and_store", "solver_upstream"]

_LOCKED_S = 60
"""So long an attempt waits for others that write to the catalog."""


class HarnessRun(NamedTuple):
    """What is asked for."""

    task: str
    """Id, or a beginning of one."""
    command: tuple[str, ...]
    mounts: tuple[tuple[str, str], ...]
    """Host folder and place inside."""
    max_seconds: float
    max_tokens: int | None
    out: Path


@contextmanager
def solver_upstream(config: BuildConfig) -> Iterator[Upstream]:
    """The solver's endpoint of a configuration.

    Raises:
        ConfigError: the role has no model or key, prices are missing, or it is elsewhere and --offline is given.
    """
    settings = config.llm.solver
    if settings is None:
        raise ConfigError(
            "there is no model to forward to", where="llm.solver", cause="the role solver has no model",
            next_step="envsynth proxy --llm solver=MODEL@URL ..., or [llm.solver] in envsynth.toml",
        )  # fmt: skip
    if config.offline and not settings.on_loopback:
        raise ConfigError(
            "the solver is not on this machine", where=settings.base_url, cause="--offline is given",
            next_step="leave --offline out, or name a model on 127.0.0.1",
        )  # fmt: skip
    upstream = Upstream(settings, Cache(config.cache), Ledger(config.ledger, config.llm.budget))
    try:
        yield upstream
    finally:
        upstream.close()


def attempt_and_store(config: BuildConfig, run: HarnessRun, upstream: Upstream, tell: Callable[[str], None]) -> Played:
    """Have a harness attempt a task, and keep the attempt. The catalog is open only before and after.

    Args:
        config: catalog, cache and sandbox are read.
        run: the task and the harness.
        upstream: the solver's endpoint.
        tell: told notes of the sandbox.

    Raises:
        ConfigError: there is no such task, or it is none of a workspace.
        BudgetSpent: the spend limit left no room; nothing is kept.
        SandboxError: the environment failed; nothing is kept.
    """
    harness = Harness(
        command=run.command, mounts=run.mounts, max_seconds=run.max_seconds, max_tokens=run.max_tokens
    )  # fmt: skip
    cache = Cache(config.cache)
    with Catalog.open(config.catalog, read_only=True) as catalog:
        task = catalog.task(run.task)
        _lend(catalog, task, cache)
        source = catalog.source(task.candidate.provenance.lead.source)
        k = _next_draw(catalog, task, harness, upstream)
    context = BuildContext(config.cache, sandbox=config.sandbox, offline=config.offline)
    venue = Venue(_backend(context, source, tell), cache.get, cache.root, run.out)
    played = attempted_by(harness, task, upstream, venue, k)
    (run.out / "attempt.json").write_text(played.attempt.to_json() + "\n", "utf-8")
    _store(config.catalog, played.attempt)
    return played


def _backend(context: BuildContext, source: Source, tell: Callable[[str], None]) -> Backend:
    backend = context.backend(source)
    for note in context.notes:
        tell(note)
    return backend


def _lend(catalog: Catalog, task: Task, cache: Cache) -> None:
    """Put what the task names into the cache, so that the catalog need not stay open while the harness runs."""
    if not isinstance(task.candidate.environment, Workspace):
        raise ConfigError(
            "an agent program needs a workspace, and this is a task in a world", where=task.id,
            next_step="envsynth rollout --policy model, or a pack's gym or MCP interface",
        )  # fmt: skip
    trees, plain = roots_of(task.candidate)
    for digest in trees:
        content = catalog.blobs.get(digest)
        cache.put(content)
        plain.extend(entry.blob for entry in Tree.from_json(content).entries)
    for digest in plain:
        cache.put(catalog.blobs.get(digest))


def _next_draw(catalog: Catalog, task: Task, harness: Harness, upstream: Upstream) -> int:
    """The first draw that was not finished."""
    k = 0
    while catalog.attempted([key := key_of_draw(task, harness, upstream, k)]).get(key) is AttemptStatus.FINISHED:
        k += 1
    return k


def _store(path: Path, attempt: Attempt) -> None:
    """Keep an attempt, though others of them may be writing.

    Raises:
        CatalogLocked: they do not end.
    """
    end = time.monotonic() + _LOCKED_S
    while True:
        try:
            with Catalog.open(path) as catalog:
                catalog.record_attempts([attempt])
                return
        except CatalogLocked:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
