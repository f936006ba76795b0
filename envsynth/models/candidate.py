"""Candidate: a proposed task, unproven; Lead and Dropped: what comes before and instead."""

from __future__ import annotations

import re

from pydantic import Field, JsonValue

from envsynth.models.base import SCHEMA_VERSION, Digest, Model, digest_of
from envsynth.models.trajectory import Trajectory
from envsynth.models.verifier import Budget, Verifier
from envsynth.models.workspace import Workspace
from envsynth.models.world import WorldRef

_UNFIT = re.compile(r"[^a-z0-9-]+")


class Lead(Model):
    """Something a generator may turn into a candidate: cheap to list, keyed by content."""

    generator: str
    generator_version: str
    source: str
    """The source's URI, as written."""
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """Short name of the source, such as the project's: the first part of task ids."""
    revision: str
    """Resolved revision of the source."""
    strategy: str
    ref: str
    """What the lead points at inside the source: a commit, a function, a process."""
    title: str = ""
    """One line for people."""
    seed: int = 0
    index: int = Field(ge=0)
    """Position in the source's plan."""
    settings: str = ""
    """Digest of the generator's settings, so that other options mean other work."""
    group: str = ""
    """Equal for leads of one source that share what is costly to make, such as a company; one worker takes them."""

    @property
    def key(self) -> str:
        """Content key: same key, same work. Position, title and group are not part of it."""
        return digest_of(self.model_dump(mode="json", exclude={"index", "title", "revision", "name", "group"}))


class Provenance(Model):
    """Where a candidate comes from."""

    lead: Lead
    base_commit: str | None = None
    reference_commit: str | None = None
    authored_at: str | None = None
    """When the reference was written (ISO 8601)."""
    licence_files: tuple[str, ...] = ()
    """Paths of licence texts inside the start tree."""
    author: str = "deterministic"
    """Who wrote the instruction: `deterministic`, or a model's name."""


class Reference(Model):
    """The known solution: files to lay over the start tree, and paths to remove."""

    changes: Digest
    """Tree blob of the added and changed files."""
    removed: tuple[str, ...] = ()
    patch: Digest
    """Blob of the unified diff, for people."""


class Candidate(Model):
    """A proposed task."""

    schema_version: int = SCHEMA_VERSION
    instruction: str
    """What the agent is told."""
    environment: Workspace | WorldRef = Field(discriminator="kind")
    verifier: Verifier
    reference: Reference | None = None
    """For workspaces: the known solution. A world's is the trajectory `reference` of its panel."""
    panel: tuple[Trajectory, ...] = ()
    """Labelled trajectories that the generator proposes, with the outcomes it claims; validators play them."""
    budget: Budget = Budget()
    hint: str = ""
    """What would help to solve it; told only in rollouts that measure what it is worth, never in the task."""
    provenance: Provenance
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """For people and plug-ins; no core code reads it."""

    @property
    def workspace(self) -> Workspace:
        """The environment of a code task. Raises TypeError for another kind."""
        if not isinstance(self.environment, Workspace):
            raise TypeError(f"{self.id} is no workspace task")
        return self.environment

    @property
    def world(self) -> WorldRef:
        """The environment of a world task. Raises TypeError for another kind."""
        if not isinstance(self.environment, WorldRef):
            raise TypeError(f"{self.id} is no world task")
        return self.environment

    @property
    def solution(self) -> Reference:
        """The known solution of a code task. Raises TypeError where there is none."""
        if self.reference is None:
            raise TypeError(f"{self.id} has no reference solution")
        return self.reference

    @property
    def id(self) -> str:
        """Short, stable name: the source's name, the reference, and the lead's key; letters, digits, hyphens."""
        lead = self.provenance.lead
        return f"{lead.name}-{_UNFIT.sub('-', lead.ref[:8].lower())}-{lead.key[:6]}"


class Dropped(Model):
    """A lead that gave no candidate, and why."""

    lead: Lead
    reason: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """Short reason for the funnel, such as `no_tests_touched`."""
    detail: str = ""
    """One line for people."""
    retryable: bool = False
    """True when the environment was at fault, so that the lead is owed another try."""
