"""The nouns. Frozen pydantic, no I/O."""

from envsynth.models.base import SCHEMA_VERSION, Digest, Model, canonical_json, digest_of
from envsynth.models.candidate import Candidate, Dropped, Lead, Provenance, Reference
from envsynth.models.outcome import Outcome, OutcomeStatus
from envsynth.models.report import BuildReport, Event, EventKind, FunnelRow
from envsynth.models.source import Origin, Source, SourceKind, SourceOptions
from envsynth.models.task import Task, Tier, VerdictSummary
from envsynth.models.trajectory import ToolCall, Trajectory
from envsynth.models.tree import FileMode, Tree, TreeEntry
from envsynth.models.variant import Variant, VariantFile
from envsynth.models.verdict import (
    Cost,
    Finding,
    Strength,
    TestRecord,
    TestRun,
    TestStatus,
    Verdict,
    VerdictStatus,
)
from envsynth.models.verifier import (
    Budget,
    Check,
    Control,
    Criterion,
    CriterionClass,
    RewardSpec,
    TestLists,
    Verifier,
)
from envsynth.models.workspace import Recipe, Role, RoleRule, TestCommand, Workspace, role_of

__all__ = [
    "SCHEMA_VERSION",
    "Budget",
    "BuildReport",
    "Candidate",
    "Check",
    "Control",
    "Cost",
    "Criterion",
    "CriterionClass",
    "Digest",
    "Dropped",
    "Event",
    "EventKind",
    "FileMode",
    "Finding",
    "FunnelRow",
    "Lead",
    "Model",
    "Origin",
    "Outcome",
    "OutcomeStatus",
    "Provenance",
    "Recipe",
    "Reference",
    "RewardSpec",
    "Role",
    "RoleRule",
    "Source",
    "SourceKind",
    "SourceOptions",
    "Strength",
    "Task",
    "TestCommand",
    "TestLists",
    "TestRecord",
    "TestRun",
    "TestStatus",
    "Tier",
    "ToolCall",
    "Trajectory",
    "Tree",
    "TreeEntry",
    "Variant",
    "VariantFile",
    "Verdict",
    "VerdictStatus",
    "VerdictSummary",
    "Verifier",
    "Workspace",
    "canonical_json",
    "digest_of",
    "role_of",
]
