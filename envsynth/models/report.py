"""What a build says while it runs, and what it says at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, JsonValue

from envsynth.models.base import Model

EventKind = Literal["source", "plan", "lead", "note", "error", "export"]
"""`source`: work on a source begins. `plan`: its leads are listed. `lead`: one lead is settled (or owed).
`note`: one line that is not an error. `error`: one line that is. `export`: the pack is being written."""


class Event(NamedTuple):
    """One step of a build, for whoever watches it."""

    kind: EventKind
    text: str
    """One line for people."""
    source: str = ""
    """URI of the source, as written."""
    done: int = 0
    """Leads settled so far in the whole build."""
    total: int = 0
    """Leads known so far in the whole build; 0: not known yet."""
    detail: dict[str, JsonValue] = {}
    """Further figures for machines, such as `status`, `reason` and `task` of a lead. Never changed by a reader."""


class FunnelRow(Model):
    """So many leads of a source ended this way."""

    source: str
    """URI, as written."""
    status: str
    """`admitted`, `rejected`, `dropped` or `owed`."""
    reason: str
    """Rule id; empty for admitted."""
    leads: int = Field(ge=0)


class ModelUse(Model):
    """What one role's model was asked in a build, and what it cost."""

    role: str
    model: str
    endpoint: str
    calls: int = Field(default=0, ge=0)
    """Requests that were answered."""
    cached: int = Field(default=0, ge=0)
    """Answers that came from the cache, at no cost."""
    released: int = Field(default=0, ge=0)
    """Requests that the endpoint turned away, unbilled."""
    uncertain: int = Field(default=0, ge=0)
    """Requests without an answer that may have been billed all the same."""
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    """US dollars of the answered requests; None: prices are not known."""
    uncertain_usd: float = Field(default=0.0, ge=0)
    """Most US dollars that the uncertain requests can have cost, where prices are known."""


class BuildReport(Model):
    """What a build came to."""

    build: int
    """Number of the build in its catalog."""
    catalog: Path
    pack: Path | None
    """Folder of the pack; None when no task was admitted or the export failed."""
    leads: int = Field(ge=0)
    """Leads of this build's sources, those settled by earlier builds included."""
    reused: int = Field(default=0, ge=0)
    """How many of them an earlier build had settled."""
    statuses: dict[str, int]
    """Leads by outcome status."""
    funnel: tuple[FunnelRow, ...]
    tasks: tuple[str, ...] = ()
    """Ids of the admitted tasks."""
    errors: tuple[str, ...] = ()
    """One line each: sources that could not be read, work that is owed."""
    models: tuple[ModelUse, ...] = ()
    """Roles whose models were asked in this build."""
    seconds: float = Field(ge=0)
    """Wall seconds of this build."""
    cpu_s: float = Field(ge=0)
    """User and system seconds of this build, child processes included."""
    exit_code: int = Field(default=0, ge=0)
    """0 done, 1 findings, 2 configuration, 3 infrastructure."""
