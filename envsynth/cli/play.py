"""envsynth play."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from envsynth.cli._options import CatalogOption

if TYPE_CHECKING:
    from envsynth.cli._session import Session
    from envsynth.runtime.contract import Episode


class _Opened(NamedTuple):
    episode: Episode
    candidate: dict[str, Any]
    """Document of the `models.Candidate`."""


def play(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Id of a task, or a beginning of one.")],
    catalog: CatalogOption = None,
    pack: Annotated[
        Path | None, typer.Option("--pack", metavar="DIR", help="Folder of a pack to take the task from.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option("--script", metavar="FILE", help="Play the lines of a file, then stop.")
    ] = None,
    sandbox: Annotated[str, typer.Option("--sandbox", help="For workspaces: as for build.")] = "",
) -> None:
    """Play a task yourself: type tool calls, and see the score against the references at the end.

    What is no call costs nothing; a call that a tool refuses counts. The end of the input, or quit, ends the episode.
    """
    from envsynth.cli._score import print_score
    from envsynth.cli._session import Budget, Session
    from envsynth.errors import ConfigError

    if pack is not None and catalog is not None:
        raise ConfigError("both --catalog and --pack are given", where="command line", next_step="leave one out")
    lines = None if script is None else _script(script)
    with ExitStack() as stack:
        opened = _from_catalog(task, catalog, sandbox, stack) if pack is None else _from_pack(task, pack, sandbox)
        stack.callback(opened.episode.close)
        budget = opened.candidate["budget"]
        session = Session(opened.episode, Budget(budget["turns"], budget["cost"]))
        session.introduce()
        session.play(_typed(session) if lines is None else _echoed(session, lines))
        if session.calls > budget["turns"]:
            ended = f"the budget of {budget['turns']} calls was overdrawn"
        else:
            calls = "1 call" if session.calls == 1 else f"{session.calls} calls"
            ended = f"{'over' if session.over else 'you stopped'} after {calls}"
        print_score(opened.episode.grade(), opened.candidate["verifier"], ended=ended)


def _script(path: Path) -> list[str]:
    from envsynth.errors import ConfigError, boundary

    with boundary(ConfigError, "the script cannot be read", where=str(path), next_step="name a file of lines"):
        return path.read_text("utf-8").splitlines()


def _echoed(session: Session, lines: Iterable[str]) -> Iterator[str]:
    from envsynth.cli._output import clean

    for line in lines:
        if line.strip():
            typer.echo(clean(f"{session.prompt}{line}"))
        yield line


def _typed(session: Session) -> Iterator[str]:
    """Lines from a terminal, edited and remembered, or from whatever else is on standard input."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    if not sys.stdin.isatty():
        yield from _echoed(session, (line.rstrip("\n") for line in sys.stdin))
        return
    with suppress(ImportError):
        import readline  # noqa: F401 (gives `input` editing and history)
    while True:
        try:
            yield input(session.prompt)
        except EOFError:
            typer.echo()
            return


def _from_catalog(task: str, catalog: Path | None, sandbox: str, stack: ExitStack) -> _Opened:
    from envsynth.catalog import Catalog
    from envsynth.cli._options import catalog_path
    from envsynth.models import WorldRef
    from envsynth.runtime.pack import open_workspace, world_model
    from envsynth.runtime.worlds.episode import WorldEpisode, WorldTask

    opened = stack.enter_context(Catalog.open(catalog_path(catalog), read_only=True))
    found = opened.task(task)
    document: dict[str, Any] = found.document()
    environment = found.candidate.environment
    if isinstance(environment, WorldRef):
        model = world_model(environment.world, opened.blobs.get)
        opened.close()  # a person may take long, and a build may want to write
        return _Opened(WorldEpisode(WorldTask(document, model, task_id=found.id)), document["candidate"])
    episode = open_workspace(document, opened.blobs.get, task_id=found.id, where=found.id, sandbox=sandbox)
    return _Opened(episode, document["candidate"])


def _from_pack(task: str, pack: Path, sandbox: str) -> _Opened:
    from envsynth.errors import ConfigError
    from envsynth.exporters.replay import verified_package
    from envsynth.runtime.pack import Pack

    package = verified_package(pack)
    opened = Pack(pack / package, name=package)
    fitting = [name for name in sorted(opened.budgets) if name.startswith(task)]
    if task not in fitting and len(fitting) > 1:
        raise ConfigError(f"several tasks begin with {task!r}", where=str(pack), next_step=f"name one: {fitting[0]}")
    name = task if task in fitting or not fitting else fitting[0]
    episode = opened.open(name, sandbox=sandbox)
    return _Opened(episode, opened.document(name)["candidate"])
