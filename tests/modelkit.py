"""A generator that asks an author, validators that may ask a judge, and builds of both in one process or more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel

from envsynth import admission, pipeline, work
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.errors import ModelRefused
from envsynth.llm import LlmSettings, RoleSettings, Tool, Usage, user
from envsynth.models import (
    Candidate,
    Check,
    Dropped,
    Lead,
    Origin,
    Provenance,
    Recipe,
    Reference,
    RoleRule,
    Source,
    SourceKind,
    TestCommand,
    Tree,
    Verdict,
    VerdictStatus,
    Verifier,
    Workspace,
)
from envsynth.protocols import Context

DEAR = Usage(prompt_tokens=1000, completion_tokens=1000)
"""$0.003 at the scripted model's prices."""
ROOT = Path(__file__).parents[1]
CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, "")
from tests.modelkit import build_here
build_here(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
"""
"""A process that builds, to be run in `ROOT`: folder, leads, the author's settings, jobs."""
SOURCE = Source(uri="s", kind=SourceKind.GIT, location="s", origin=Origin(file="--source", line=1))


class Number(BaseModel):
    number: int


class Asking:
    """A generator that asks the author for a number; its leads are named by the source's option `leads`."""

    name = "repository"
    version = "1"
    models: ClassVar[tuple[str, ...]] = ("author",)
    developed: ClassVar[list[str]] = []

    def plan(self, source: Source, context: Context) -> Iterator[Lead | Dropped]:
        for index, ref in enumerate(dict(source.extra)["leads"].split(",")):
            yield Lead(generator=self.name, generator_version=self.version, source=source.uri, name="x", revision="r",
                       strategy="history", ref=ref, index=index)  # fmt: skip

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        self.developed.append(lead.ref)
        author = context.model("author")
        assert author is not None
        assert context.model("author") is author
        assert context.model("solver") is None
        if lead.ref == "tool":
            author.complete([user(lead.ref)], tools=[Tool(name="pick")])
        number = author.structured([user(lead.ref)], Number, repairs=0).number
        empty_tree = context.blobs.put_tree(Tree())
        workspace = Workspace(
            tree=empty_tree, hidden=empty_tree, command=TestCommand(runner="pytest", targets=("tests",)),
            recipe=Recipe(language="python", interpreter="3.11", requirements=(), newest="2026-01-01"),
            roles=(RoleRule(pattern="^tests/", role="test"),),
        )  # fmt: skip
        return Candidate(
            instruction=str(number), environment=workspace, verifier=Verifier(checks=(Check(id="c", sql="SELECT 1"),)),
            reference=Reference(changes=empty_tree, patch=context.blobs.put(b"")), provenance=Provenance(lead=lead),
        )  # fmt: skip


class Judge:
    """A validator whose model declines to judge some leads; one that has a judge asks it first."""

    version = "1"

    def __init__(self, name: str, order: int) -> None:
        self.name, self.order = name, order

    def validate(self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict]) -> Verdict:
        judge = context.model("judge") if "judge" in getattr(self, "models", ()) else None
        if judge is not None:
            judge.complete([user(f"{self.name}: {candidate.instruction}")])
        if candidate.provenance.lead.ref == f"mute-{self.name}":
            raise ModelRefused("the model declined to answer", where="small")
        return Verdict(validator=self.name, version=self.version, status=VerdictStatus.PASS)


def install(put: Callable[..., None]) -> None:
    judges = (Judge("static", 10), Judge("style", 20))
    put(work, "validators", lambda kind: judges)
    put(admission, "REQUIRED", {"workspace": ("static",)})
    put(admission, "HEARD", {"workspace": ()})
    put(work, "generator", lambda _: Asking())
    put(pipeline, "generator", lambda _: Asking())
    put(pipeline._Build, "_export", lambda *_: None)
    put(Asking, "developed", [])


def work_here(text: str) -> str:
    """What a worker process does in place of `envsynth.work.work`: it has these plug-ins too."""
    install(setattr)
    return work.work(text)


def config(
    folder: Path, leads: str, author: RoleSettings | None, *, catalog: str = "c", jobs: int = 1, **more: Any
) -> BuildConfig:
    llm = LlmSettings(author=author, judge=more.pop("judge", None), budget=more.pop("budget", None))
    return BuildConfig(
        sources=(f"https://host.example/o/repo trusted=yes leads={leads}",), root=folder, cache=folder / "cache",
        catalog=folder / f"{catalog}.duckdb", out=folder / "out", jobs=jobs, sandbox="local", llm=llm, **more,
    )  # fmt: skip


def outcomes(folder: Path, catalog: str = "c") -> dict[str, tuple[str, str]]:
    with Catalog.open(folder / f"{catalog}.duckdb", read_only=True) as opened:
        return {one.lead.ref: (one.status.value, one.reason) for one in opened.outcomes()}


def silent(event: object) -> None:
    """Tell nobody."""


def build_here(folder: Path, leads: str, document: str, jobs: int) -> None:
    """What a process does that is interrupted or killed; it prints what it is told."""
    install(setattr)
    pipeline.work = work_here
    asked = config(folder, leads, RoleSettings.from_json(document), jobs=jobs)
    pipeline.build(asked, lambda event: print(event.kind, event.text, flush=True))
