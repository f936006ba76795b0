"""What a pack holds of its tasks: documents, contents by digest, panel and manifest. Sorted, without clocks."""

from __future__ import annotations

import hashlib
import io
import posixpath
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth import __version__
from envsynth.errors import ExportError, boundary
from envsynth.models import SCHEMA_VERSION, Task, canonical_json
from envsynth.protocols import BlobStore
from envsynth.runtime.tools import workspace_tools


class Contents(NamedTuple):
    """Digests that a pack must hold."""

    visible: frozenset[str]
    """What an agent finds in its workspace and environment."""
    hidden: frozenset[str]
    """Tests and solutions."""


class Licence(NamedTuple):
    """A licence text found in a source."""

    source: str
    path: str
    """Inside the pack."""
    content: bytes


def contents(tasks: Iterable[Task], blobs: BlobStore) -> Contents:
    """The contents that playing and grading the tasks needs.

    Raises:
        ExportError: a tree is missing.
    """
    visible, hidden = set(), set()
    for task in tasks:
        workspace, reference = task.candidate.workspace, task.candidate.solution
        for digest in (workspace.tree, workspace.recipe.site):
            visible |= _closure(digest, blobs, task)
        hidden |= _closure(workspace.hidden, blobs, task) | _closure(reference.changes, blobs, task)
        hidden.add(reference.patch)
    return Contents(frozenset(visible), frozenset(hidden - visible))


def _closure(digest: str | None, blobs: BlobStore, task: Task) -> set[str]:
    if digest is None:
        return set()
    with boundary(ExportError, "a tree of the task is missing", where=task.id):
        return {digest, *(entry.blob for entry in blobs.get_tree(digest).entries)}


def archive(digests: Iterable[str], blobs: BlobStore) -> bytes:
    """A zip archive of contents, each named by its digest; the same bytes for the same contents.

    Raises:
        ExportError: a content is missing.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file:
        for digest in sorted(digests):
            with boundary(ExportError, "a content is missing", where=digest[:12]):
                content = blobs.get(digest)
            name = zipfile.ZipInfo(digest)
            name.compress_type = zipfile.ZIP_DEFLATED
            name.create_system = 3
            name.external_attr = 0o644 << 16
            file.writestr(name, content)
    return buffer.getvalue()


def json_lines(values: Iterable[object]) -> bytes:
    """Canonical JSON, a line each."""
    return "".join(f"{canonical_json(value)}\n" for value in values).encode("utf-8", "surrogatepass")


def visible_document(task: Task) -> dict[str, JsonValue]:
    """What an agent may know of a task."""
    return {
        "id": task.id,
        "instruction": task.candidate.instruction,
        "tools": workspace_tools(task.candidate.budget.command_s),
        "budget": task.candidate.budget.document(),
    }


def tool_names(task: Task) -> list[str]:
    """Names of a task's tools."""
    return [tool["name"] for tool in workspace_tools(task.candidate.budget.command_s)]


def panel_lines(task: Task) -> list[dict[str, JsonValue]]:
    """The labelled trajectories with their rewards: the outcome, or 0 for one that overdraws the budget."""
    return [
        {
            "task": task.id,
            "label": line.label,
            "calls": [call.document() for call in line.calls],
            "outcome": line.outcome,
            "reward": line.outcome if len(line.calls) <= task.candidate.budget.turns else 0.0,
        }
        for line in sorted(task.panel, key=lambda line: line.label)
    ]


def licences(tasks: Iterable[Task], blobs: BlobStore) -> list[Licence]:
    """The licence texts that the start trees hold, each text of a source once."""
    found: dict[str, Licence] = {}
    for task in tasks:
        provenance = task.candidate.provenance
        with boundary(ExportError, "a licence text is missing", where=task.id):
            tree = blobs.get_tree(task.candidate.workspace.tree).by_path
            for path in provenance.licence_files:
                if path in tree:
                    name = f"licences/{provenance.lead.name}-{tree[path].blob[:8]}-{posixpath.basename(path)}"
                    found[name] = Licence(provenance.lead.source, name, blobs.get(tree[path].blob))
    return [found[name] for name in sorted(found)]


def manifest(name: str, version: str, tasks: Sequence[Task], texts: Sequence[Licence]) -> dict[str, JsonValue]:
    """What the pack is, without the digests of its files."""
    environments: dict[str, JsonValue] = {}
    for task in tasks:
        recipe = task.candidate.workspace.recipe
        environments[recipe.digest()] = {"language": recipe.language, "interpreter": recipe.interpreter}
    return {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "version": version,
        "envsynth": __version__,
        "tasks": [_task_line(task) for task in tasks],
        "tiers": {tier: sum(task.tier == tier for task in tasks) for tier in sorted({task.tier for task in tasks})},
        "seeds": list[JsonValue](sorted({task.candidate.provenance.lead.seed for task in tasks})),
        "environments": environments,
        "licences": [
            {"source": text.source, "path": text.path, "sha256": hashlib.sha256(text.content).hexdigest()}
            for text in texts
        ],
    }


def _task_line(task: Task) -> dict[str, JsonValue]:
    provenance = task.candidate.provenance
    return {
        "id": task.id,
        "sha256": task.digest(),
        "tier": task.tier.value,
        "strength": task.strength.document(),
        "source": provenance.lead.source,
        "base_commit": provenance.base_commit,
        "environment": task.candidate.workspace.recipe.digest(),
    }


def file_digests(files: Mapping[str, bytes]) -> dict[str, JsonValue]:
    """sha256 of each file of the pack."""
    return {path: hashlib.sha256(content).hexdigest() for path, content in sorted(files.items())}
