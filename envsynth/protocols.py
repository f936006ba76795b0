"""The contracts of the plug-ins, on one screen. The sandbox's own is in `envsynth.runtime.contract`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from envsynth.models import (
    Attempt,
    Candidate,
    Control,
    Cost,
    Dropped,
    Lead,
    Recipe,
    RoleRule,
    Source,
    Task,
    TestCommand,
    TestRun,
    Tree,
    Variant,
    Verdict,
    Workspace,
)  # fmt: skip
from envsynth.runtime.contract import Backend, Sandbox

if TYPE_CHECKING:
    from envsynth.llm import Client, Role

Item = TypeVar("Item")
Result = TypeVar("Result")


class BlobStore(Protocol):
    """Contents by sha256."""

    def put(self, content: bytes) -> str:
        """Keep a content; returns its digest."""

    def get(self, digest: str) -> bytes:
        """The content. Raises KeyError where there is none (a corrupt one counts as none)."""

    def put_tree(self, tree: Tree) -> str:
        """Keep a tree's document; returns the blob's digest."""

    def get_tree(self, digest: str) -> Tree:
        """The tree of a digest. Raises KeyError."""


class Context(Protocol):
    """What the pipeline lends to plug-ins. Everything it does is cached by content."""

    @property
    def blobs(self) -> BlobStore:
        """Contents by digest."""

    @property
    def cache_dir(self) -> Path:
        """Root of the cache, for plug-ins that keep folders of their own."""

    @property
    def offline(self) -> bool:
        """Whether the network must not be used."""

    def backend(self, source: Source) -> Backend:
        """The sandbox to use for a source's code. Raises SandboxUnavailable with what to do."""

    def language(self, name: str) -> Language:
        """A language plug-in by name."""

    def model(self, role: Role) -> Client | None:
        """The model that plays a role, one a process; None: the role has none, and deterministic code stands in.

        A plug-in names the roles it asks in its class attribute `models`: what it makes or says is then made or said
        again where they are given to other models.

        Raises:
            ConfigError: the model's key is not set, or there is a spend limit and no prices.
        """

    def materialise(self, tree: Tree) -> Path:
        """A read-only host folder with the tree's files, made once per digest."""

    def run_tests(
        self, workspace: Workspace, tree: Tree, state: str, repeat: int, source: Source, select: Sequence[str] = ()
    ) -> TestRun:
        """Run the workspace's tests on a solution tree, hidden files laid over, in a fresh sandbox.

        Args:
            workspace: the environment.
            tree: the solution, whole.
            state: what the run is called in the catalog.
            repeat: equal runs that are to be measured again have different numbers.
            source: whose code it is.
            select: keys of tests; only these are run, and nothing but their files is collected. Empty: all.
        """

    def each(self, work: Callable[[Item], Result], items: Iterable[Item], source: Source) -> list[Result]:
        """The result of each item, in the order of the items; several are worked on at once where processors are idle.

        Args:
            work: sandboxed work that does not depend on what becomes of other items.
            items: all of them.
            source: whose code it is.

        Raises:
            Exception: what `work` raises, of the first item in order that fails.
        """

    def remember(self, kind: str, key: str, make: Callable[[], str]) -> str:
        """The JSON text kept for `key`, made once."""

    def judged(self, candidate: Candidate, source: Source) -> Sequence[Verdict]:
        """What the ladder says of a candidate that can still be mended, up to the step that stops it.

        Validators that have a model to ask are left out. A candidate that is handed in as it was judged here keeps
        these verdicts.
        """

    def spent(self, cost: Cost) -> None:
        """Tell what a shared piece of work took, such as an environment's disk; counted for the lead that caused it."""

    def attempted(self, attempt: Attempt) -> None:
        """Keep an attempt that was made on a candidate, for the catalog."""

    def note(self, message: str) -> None:
        """Tell the user one line that is not an error."""


class Prepared(NamedTuple):
    """An environment that is ready to use."""

    path: Path
    """Host folder of the environment."""
    recipe: Recipe
    command: TestCommand
    generated: Tree
    """Files that the project's build makes inside the tree."""
    cost: Cost


class Language(Protocol):
    """How projects of one language are installed and tested."""

    name: str
    version: str

    def detect(self, tree: Tree) -> bool:
        """Whether a tree is a project of this language."""

    def roles(self) -> tuple[RoleRule, ...]:
        """What each path is to a solution."""

    def prepare(self, tree: Tree, *, newest: str, version_hint: str, source: Source, context: Context) -> Prepared:
        """Build, or find, the environment of a project as of a date.

        Raises:
            SourceError: the project cannot be installed; the reason of the last recipe is the cause.
            NoInterpreter: this machine lacks what would run it.
            SandboxError: the environment failed (no registry, no disk).
        """

    def environment(self, recipe: Recipe, context: Context) -> Path:
        """The host folder of an environment, rebuilt from its recipe where it is gone."""

    def run_tests(
        self, workspace: Workspace, tree: Tree, *, source: Source, context: Context, select: Sequence[str] = ()
    ) -> TestRun:
        """One uncached run; `state` and `repeat` of the result are set by the caller; `select` as for `Context`."""

    def controls(self, hidden: Mapping[str, str], keys: Sequence[str], command: TestCommand) -> Iterable[Control]:
        """Changes to hidden tests after which every right solution must fail them; unmeasured, several a test.

        Args:
            hidden: text of each hidden test file, by path.
            keys: fail-to-pass tests.
            command: how they are run.
        """

    def mutants(self, before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[Variant]:
        """Wrong variants of the reference, the most telling first; the same list each time.

        Args:
            before: text of each source file that the reference touches, by path, in the start tree.
            after: the same with the reference applied; a path that only one of them has was added or removed.
        """

    def rewrites(self, before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[Variant]:
        """Variants that behave as the reference does. Arguments as for `mutants`."""


class Generator(Protocol):
    """Makes candidates of one kind of source.

    A class attribute `environment` says of what kind its environments are: `workspace` (where it is missing), `world`.
    One that asks models names their roles: a class attribute `models`, such as `("author",)`; where not every lead is
    developed with all of them, a method `asks(lead, source) -> Sequence[Role]` says with which. A `ModelOutputError`
    that `develop` lets pass drops the lead, by its kind; other errors of models leave it owed, or stop the build.
    One that ships documents may have a method `faults() -> Iterator[str]`: what is wrong with them, one line each, with
    file and line where there is one.
    """

    name: str
    version: str

    def check(self, source: Source) -> None:
        """Look at a source's options without fetching anything. Raises ConfigError for what is wrong with them."""

    def plan(self, source: Source, context: Context) -> Iterable[Lead | Dropped]:
        """List what may become a candidate; cheap. Leads already dropped say why."""

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        """Turn a lead into a candidate. Raises SandboxError where the environment is at fault."""


class Validator(Protocol):
    """Grades candidates of one kind of environment: its class attribute `environment`, as for generators.

    `models` names roles as for generators. A `ModelOutputError` that `validate` lets pass becomes a finding: of a FAIL
    where admission asks for this validator's PASS, else of a SKIP.
    """

    name: str
    version: str
    order: int
    """Position in the ladder: cheapest and hardest evidence first."""

    def validate(self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict]) -> Verdict:
        """Measure; FAIL is a verdict, never an exception.

        Args:
            candidate: what is proposed.
            source: where it comes from.
            context: what the pipeline lends.
            earlier: verdicts of the steps below on the ladder; what they measured (`tests`, `controls`) is read there.
        """


class Exporter(Protocol):
    """Writes packs in one trainer's format."""

    name: str

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack; returns its folder. Raises ExportError."""


class Executor(Protocol):
    """Runs work units, in any order."""

    def map(
        self, work: Callable[[str], str], units: Sequence[str], groups: Sequence[str] = ()
    ) -> Iterator[tuple[str, str | BaseException]]:
        """Yield (unit, result or the exception) as each ends; units and results are JSON texts.

        Args:
            work: done with each unit.
            units: in the order in which they should begin.
            groups: of each unit; neighbours with an equal one that is not empty are best done in one place.
        """

    def stop(self) -> None:
        """Begin no more units; `map` yields those under way that end in time, and ends."""


__all__ = [
    "Backend",
    "BlobStore",
    "Context",
    "Executor",
    "Exporter",
    "Generator",
    "Language",
    "Prepared",
    "Sandbox",
    "Validator",
]
