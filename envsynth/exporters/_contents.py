"""What a pack holds of its tasks: documents, contents by digest, panel and manifest. Sorted, without clocks."""

from __future__ import annotations

import hashlib
import io
import json
import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth import __version__
from envsynth.errors import ExportError, boundary
from envsynth.exporters._attributions import attributions, spdx
from envsynth.models import SCHEMA_VERSION, Task, Trajectory, WorldRef, canonical_json
from envsynth.protocols import BlobStore
from envsynth.runtime.contract import JSON
from envsynth.runtime.pack import world_model
from envsynth.runtime.play import play
from envsynth.runtime.rewards import in_words
from envsynth.runtime.tools import workspace_tools
from envsynth.runtime.worlds.episode import WorldEpisode, WorldTask
from envsynth.runtime.worlds.tools import WorldTool


class Contents(NamedTuple):
    """Digests that a pack must hold."""

    visible: frozenset[str]
    """What an agent finds in its workspace and environment."""
    hidden: frozenset[str]
    """Tests, solutions, and worlds whole: their documents hold what no tool shows."""


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
        if isinstance(task.candidate.environment, WorldRef):
            hidden.add(task.candidate.environment.world)
            continue
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


def ascii_lines(rows: Iterable[Mapping[str, object]]) -> bytes:
    """JSON in ASCII, a line each: some readers split lines at every separator that Unicode has."""
    return "".join(json.dumps(row, sort_keys=True, ensure_ascii=True) + "\n" for row in rows).encode()


class Shown:
    """What agents and readers may know of tasks; reads each world once."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._tools: dict[str, list[JSON]] = {}

    def document(self, task: Task) -> dict[str, JsonValue]:
        """What an agent may know of a task.

        Raises:
            ExportError: its world is missing.
        """
        spec = task.candidate.verifier.reward.document()
        return {
            "id": task.id,
            "kind": task.candidate.environment.kind,
            "instruction": task.candidate.instruction,
            "tools": list[JsonValue](self.tools(task)),
            "budget": _budget(task),
            "reward": {**spec, "words": in_words(spec)},
        }

    def tools(self, task: Task) -> list[JSON]:
        """Name, description and JSON Schema parameters of each tool of a task.

        Raises:
            ExportError: its world is missing.
        """
        environment = task.candidate.environment
        if not isinstance(environment, WorldRef):
            return list(workspace_tools(task.candidate.budget.command_s))
        if environment.world not in self._tools:
            with boundary(ExportError, "the task's world is missing", where=task.id):
                document = json.loads(self._blobs.get(environment.world))
                self._tools[environment.world] = [WorldTool(tool, {}).public() for tool in document["tools"]]
        return self._tools[environment.world]


def example_call(tools: Sequence[JSON]) -> dict[str, JSON]:
    """A call that tools of this shape allow, for documentation: a look around where there is one."""
    tool = next((tool for tool in tools if not tool["parameters"]["required"] and tool["name"] != "submit"), tools[0])
    properties = tool["parameters"]["properties"]
    values = {name: _example_value(properties[name]) for name in tool["parameters"]["required"]}
    return {"tool": tool["name"], "arguments": values}


def _example_value(schema: JSON) -> JSON:
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "string":
        # Of the words that are also commands of a shell, the most harmless.
        return "ls".ljust(schema.get("minLength", 0), "s")
    return False if schema["type"] == "boolean" else schema.get("minimum", min(1, schema.get("maximum", 1)))


def _budget(task: Task) -> dict[str, JsonValue]:
    left_out = {"command_s"} if task.candidate.environment.kind == "world" else {"cost"}
    return {name: value for name, value in task.candidate.budget.document().items() if name not in left_out}


def grading_document(task: Task) -> dict[str, JsonValue]:
    """What playing and grading go by: a task without its trajectories, most of its bytes, which the panel has."""
    document = task.document()
    candidate = task.candidate.document()
    return {**document, "panel": [], "candidate": {**candidate, "panel": []}}


def panel_lines(task: Task, blobs: BlobStore) -> list[dict[str, JsonValue]]:
    """The labelled trajectories with their rewards.

    Raises:
        ExportError: the task's world is missing.
    """
    return [
        {
            "task": task.id,
            "label": line.label,
            "calls": [call.document() for call in line.calls],
            "outcome": line.outcome,
            "reward": _reward(task, line, blobs),
        }
        for line in sorted(task.panel, key=lambda line: line.label)
    ]


def _reward(task: Task, line: Trajectory, blobs: BlobStore) -> float:
    """The outcome, or what the task has for a trajectory that overdraws the budget of calls."""
    if len(line.calls) <= task.candidate.budget.turns:
        return line.outcome
    if not isinstance(task.candidate.environment, WorldRef):
        return float(task.candidate.verifier.reward.overdrawn)
    # The world may be over before the budget is.
    with boundary(ExportError, "a trajectory cannot be played", where=f"{task.id}: {line.label}"):
        model = world_model(task.candidate.environment.world, blobs.get)
        episode = WorldEpisode(WorldTask(task.document(), model, task_id=task.id))
        return play(episode, [call.document() for call in line.calls]).reward


def licences(tasks: Iterable[Task], blobs: BlobStore) -> list[Licence]:
    """The licence texts that the start trees hold, each text of a source once."""
    found: dict[str, Licence] = {}
    for task in tasks:
        if isinstance(task.candidate.environment, WorldRef):
            continue  # a world is data of our own making
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
    return {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "version": version,
        "envsynth": __version__,
        "tasks": [_task_line(task) for task in tasks],
        "kinds": dict[str, JsonValue](sorted(Counter(task.candidate.environment.kind for task in tasks).items())),
        "tiers": {tier: sum(task.tier == tier for task in tasks) for tier in sorted({task.tier for task in tasks})},
        "seeds": list[JsonValue](sorted({task.candidate.provenance.lead.seed for task in tasks})),
        "environments": {_environment(task): _described(task) for task in tasks},
        "licences": [
            {
                "source": text.source,
                "path": text.path,
                "sha256": hashlib.sha256(text.content).hexdigest(),
                "spdx": spdx(text.content),
            }
            for text in texts
        ],
        "attributions": attributions(tasks),
    }


def _task_line(task: Task) -> dict[str, JsonValue]:
    provenance = task.candidate.provenance
    return {
        "id": task.id,
        "sha256": task.digest(),
        "kind": task.candidate.environment.kind,
        "tier": task.tier.value,
        "strength": task.strength.document(),
        "source": provenance.lead.source,
        "base_commit": provenance.base_commit,
        "environment": _environment(task),
    }


def _environment(task: Task) -> str:
    """Digest of what a task is played in."""
    environment = task.candidate.environment
    return environment.world if isinstance(environment, WorldRef) else environment.recipe.digest()


def _described(task: Task) -> dict[str, JsonValue]:
    environment = task.candidate.environment
    if isinstance(environment, WorldRef):
        return {"kind": environment.kind}
    return {
        "kind": environment.kind, "language": environment.recipe.language,
        "interpreter": environment.recipe.interpreter,
    }  # fmt: skip


def file_digests(files: Mapping[str, bytes]) -> dict[str, JsonValue]:
    """sha256 of each file of the pack."""
    return {path: hashlib.sha256(content).hexdigest() for path, content in sorted(files.items())}
