"""What the pipeline lends to plug-ins: blobs, languages, sandboxes and cached test runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.errors import GeneratorError
from envsynth.llm import Client, Ledger, LlmSettings, Role, open_client
from envsynth.models import Attempt, Candidate, Cost, Source, TestRun, Tree, Verdict, Workspace, digest_of
from envsynth.parallel import in_order
from envsynth.protocols import Language
from envsynth.runtime.contract import Backend
from envsynth.runtime.version import harness_digest
from envsynth.sandbox import choose_and_tell
from envsynth.sandbox.docker import DockerBackend

Item = TypeVar("Item")
Result = TypeVar("Result")


class BuildContext:
    """The one implementation of `protocols.Context`; cheap to make, one a process."""

    def __init__(
        self,
        cache_dir: Path,
        *,
        sandbox: str = "auto",
        offline: bool = False,
        llm: LlmSettings = LlmSettings(),  # noqa: B008  frozen
        ledger: Path | None = None,
    ) -> None:
        self.blobs = Cache(cache_dir)
        self.cache_dir = self.blobs.root
        self.sandbox = sandbox
        self.offline = offline
        self.threads = 1
        """How many pieces of a lead's work are done at once."""
        self.notes: list[str] = []
        self.attempts: list[Attempt] = []
        """Made on the lead that is worked on."""
        self.disk_bytes = 0
        self.judging: Callable[[Candidate, Source], Sequence[Verdict]] | None = None
        """Climbs the ladder; set by whoever has one."""
        self.llm = llm
        self._ledger = ledger or self.cache_dir / "spend.sqlite"
        self._clients: dict[Role, Client] = {}
        self._opening = threading.Lock()
        self._languages: dict[str, Language] = {}
        self._backends: dict[bool, Backend] = {}

    def backend(self, source: Source) -> Backend:
        """The sandbox for a source's code.

        Raises:
            SandboxUnavailable: none works here for this source.
        """
        trusted = source.options.trusted
        if trusted not in self._backends:
            choice = choose_and_tell(self.sandbox, trusted=trusted, where=source.uri)
            self._backends[trusted] = choice.backend
            if choice.note:
                self.note(choice.note)
            if choice.backend.warning:
                self.note(f"{source.uri}: {choice.backend.warning}")
        return self._backends[trusted]

    def language(self, name: str) -> Language:
        """A language plug-in, made once."""
        if name not in self._languages:
            plugin: type[Language] = plugins.load("languages", name)
            self._languages[name] = plugin()
        return self._languages[name]

    def model(self, role: Role) -> Client | None:
        """The client of a role, made once; None: the role has no model.

        Raises:
            ConfigError: its key is not set, or there is a spend limit and no prices.
        """
        if self.llm.role(role) is None:
            return None
        with self._opening:
            if role not in self._clients:
                ledger = Ledger(self._ledger, self.llm.budget)
                client = open_client(role, self.llm, self.blobs, ledger, offline=self.offline)
                assert client is not None
                self._clients[role] = client
            return self._clients[role]

    @property
    def cached_answers(self) -> Mapping[str, int]:
        """How many answers of models came from the cache so far, by role."""
        return {role: client.tally.cached for role, client in self._clients.items()}

    def leave_models(self) -> None:
        """Close the connections to models; what was found out about their endpoints is forgotten."""
        with self._opening:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def materialise(self, tree: Tree) -> Path:
        """A host folder with the tree's files, made once per digest."""
        return self.blobs.materialise(tree)

    def run_tests(
        self, workspace: Workspace, tree: Tree, state: str, repeat: int, source: Source, select: Sequence[str] = ()
    ) -> TestRun:
        """A test run in a fresh sandbox, cached by everything that could change it.

        A run that failed for the environment's sake is not kept, so that the next build tries again.
        """
        language = self.language(workspace.recipe.language)
        key = digest_of(
            {
                "workspace": workspace.model_dump(mode="json", exclude={"tree"}),
                "tree": tree.digest(),
                "language": [language.name, language.version],
                "runner": harness_digest(),
                "sandbox": self.backend(source).name,
                "repeat": repeat,
                "select": sorted(select),
            }
        )
        with self.blobs.lock(f"test-run-{key}"):
            kept = self.blobs.recall("test-runs", key)
            if kept is not None:
                run = TestRun.from_json(kept)
                cost = run.cost.model_copy(update={"cached": True})
            else:
                run = language.run_tests(workspace, tree, source=source, context=self, select=select)
                cost = run.cost
                if not run.trouble:
                    self.blobs.keep("test-runs", key, run.to_json())
        return run.model_copy(update={"state": state, "repeat": repeat, "cost": cost})

    def each(self, work: Callable[[Item], Result], items: Iterable[Item], source: Source) -> list[Result]:
        """The result of each item, in the order of the items; `threads` of them are worked on at once."""
        backend = self.backend(source)
        # Without isolation an attack could find what another run has on the disk; Docker's client wants one thread.
        together = backend.isolates and not isinstance(backend, DockerBackend)
        return in_order(work, items, self.threads if together else 1)

    def remember(self, kind: str, key: str, make: Callable[[], str]) -> str:
        """The JSON text kept for `key`, made once."""
        return self.blobs.remember(kind, key, make)

    def judged(self, candidate: Candidate, source: Source) -> Sequence[Verdict]:
        """What the ladder says of a candidate that can still be mended.

        Raises:
            GeneratorError: nothing is judged here, such as while leads are planned.
        """
        if self.judging is None:
            raise GeneratorError("a candidate is judged only where it is developed", where=candidate.id)
        return self.judging(candidate, source)

    def spent(self, cost: Cost) -> None:
        """Count the disk that new work took; its seconds are measured around the whole lead."""
        if not cost.cached:
            self.disk_bytes += cost.disk_bytes

    def attempted(self, attempt: Attempt) -> None:
        """Keep an attempt for the catalog, which gets it with the lead's outcome."""
        self.attempts.append(attempt)

    def note(self, message: str) -> None:
        """Keep one line for the user; the pipeline shows each line once."""
        if message not in self.notes:
            self.notes.append(message)
