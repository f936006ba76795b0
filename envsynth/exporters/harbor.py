"""Packs for Harbor: task directories with a grader of their own, and a dataset by digest."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import shlex
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from envsynth.errors import ExportError, boundary
from envsynth.exporters._contents import archive, contents
from envsynth.exporters._image import image_words, require_gradable, runtime_archive, variables
from envsynth.exporters._package import Project, Target, export_package
from envsynth.exporters._vendor import rendered
from envsynth.models import FileMode, Task, canonical_json
from envsynth.protocols import BlobStore
from envsynth.runtime.container import CONTENTS, TASK
from envsynth.runtime.controls import MOST_RUNS

__all__ = ["Harbor"]

_BUILD_S = 1800
"""Seconds for an image: pinned packages are installed, and in the grader's the tests run."""
_AGENT_S = (900, 7200)
"""Least and most seconds for an agent; between them the budget of calls decides."""
_SPARE_MB = 1024
"""Memory beside that of the tests."""
_ORG = re.compile(r"[a-z0-9][a-z0-9._-]*")


class Harbor:
    """Writes task directories for Harbor 0.26.

    Options: `name` of the pack (the folder's name), `version` (0.1.0), `org` in the names of tasks (envsynth), and
    `base`: the image that tasks are built on, with `{python}` for the interpreter's version.
    """

    name = "harbor"
    kinds = ("workspace",)

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`; the same tasks, name and version give the same bytes.

        Raises:
            ExportError: no task, one that calls are needed to grade, a bad name, a missing content, or something else
                is in the folder.
        """
        own = {name: value for name, value in options.items() if name in ("org", "base")}
        org = own.get("org", "envsynth")
        if not _ORG.fullmatch(org):
            raise ExportError(f"{org!r} cannot be an organisation", where=self.name, next_step="give another org")
        target = _TARGET._replace(files=partial(_files, org=org, base=own.get("base", "")))
        left = {name: value for name, value in options.items() if name not in own}
        return export_package(target, tasks, blobs, out, left)


_TARGET = Target(
    name=Harbor.name,
    requires="\"harbor>=0.26; python_version >= '3.12'\"",
    kinds=Harbor.kinds,
    inside={
        "__init__.py": "package_init.py", "agents.py": "agents.py", "namespaces.py": "namespaces.py",
        "through.py": "through.py",
    },
    taken=frozenset({"harbor"}),
)  # fmt: skip


def _files(project: Project, *, org: str, base: str) -> dict[str, bytes]:
    """The task directories, and the dataset that names them by digest."""
    runtime = runtime_archive()
    files = {
        f"{project.package}/dockerfiles.py": rendered("shared/dockerfiles.py", target=Harbor.name),
        f"{project.package}/commands.py": rendered("shared/commands.py", workdir="/workspace"),
    }
    lines = []
    for task in project.tasks:
        directory = _directory(project, task, f"{org}/{task.id}", base, runtime)
        files |= {f"tasks/{task.id}/{path}": content for path, content in directory.items()}
        lines.append(f"[[tasks]]\nname = {_toml(f'{org}/{task.id}')}\ndigest = {_toml(_digest(directory))}\n")
    files["dataset.toml"] = rendered(
        "harbor/dataset.toml", dataset=_toml(f"{org}/{project.name}"), version=_toml(project.version),
        description=_toml(f"{len(project.tasks)} verified tasks"), tasks="\n".join(lines).rstrip(),
    )  # fmt: skip
    return files


def _directory(project: Project, task: Task, full_name: str, base: str, runtime: bytes) -> dict[str, bytes]:
    """A task directory of Harbor's, by relative path."""
    require_gradable(task, Harbor.name)
    needed = contents([task], project.blobs)
    words = image_words(task, base) | _task_words(task, full_name, project.version)
    told = {"tree": task.candidate.workspace.tree, "recipe": task.candidate.workspace.recipe.document()}
    document = {"id": task.id, **task.document()}
    hidden = {key: document[key] for key in ("id", "candidate", "tests", "controls")}
    return {
        "task.toml": rendered("harbor/task.toml", **words),
        "instruction.md": rendered("harbor/instruction.md", instruction=task.candidate.instruction.strip()),
        "environment/Dockerfile": rendered("harbor/Dockerfile", **words),
        "environment/runtime.zip": runtime,
        f"environment/{CONTENTS}": archive(needed.visible, project.blobs),
        f"environment/{TASK}": _json(told),
        "tests/Dockerfile": rendered("harbor/tests_Dockerfile", **words),
        "tests/test.sh": rendered("harbor/test.sh", **words),
        "tests/runtime.zip": runtime,
        f"tests/{CONTENTS}": archive(needed.visible | needed.hidden, project.blobs),
        f"tests/{TASK}": _json(hidden),
        **_solution(task, project.blobs),
    }


def _solution(task: Task, blobs: BlobStore) -> dict[str, bytes]:
    """The reference solution as a script and an archive."""
    reference, buffer = task.candidate.solution, io.BytesIO()
    with (
        boundary(ExportError, "the reference solution is missing", where=task.id),
        tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for entry in sorted(blobs.get_tree(reference.changes).entries, key=lambda entry: entry.path):
            content, member = blobs.get(entry.blob), tarfile.TarInfo(entry.path)
            member.mode = 0o755 if entry.mode is FileMode.EXECUTABLE else 0o644
            if entry.mode is FileMode.SYMLINK:
                member.type, member.linkname, content = tarfile.SYMTYPE, content.decode(), b""
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    removed = [*reference.removed, *(entry.path for entry in blobs.get_tree(reference.changes).entries)]
    removals = "rm -f -- " + shlex.join(sorted(removed)) if removed else ":"
    return {
        "solution/solve.sh": rendered("harbor/solve.sh", removals=removals),
        "solution/changes.tar": buffer.getvalue(),
    }


def _task_words(task: Task, full_name: str, version: str) -> dict[str, str]:
    """What the configuration says of a task."""
    candidate, command = task.candidate, task.candidate.workspace.command
    lead, budget = candidate.provenance.lead, candidate.budget
    least, most = _AGENT_S
    return {
        "full_name": _toml(full_name), "version": _toml(version), "task_id": _toml(task.id),
        "description": _toml(f"{lead.strategy} task of {lead.source}"),
        "keywords": f"[{_toml('workspace')}, {_toml(candidate.workspace.recipe.language)}]",
        "digest": _toml(task.digest()), "tier": _toml(task.tier.value), "source": _toml(lead.source),
        "base_commit": _toml(candidate.provenance.base_commit or ""),
        "interpreter": _toml(candidate.workspace.recipe.interpreter), "turns": str(budget.turns),
        "strength": "\n".join(_strength(task)), "build_s": str(float(_BUILD_S)),
        "memory_mb": str((command.memory_bytes >> 20) + _SPARE_MB),
        "agent_s": str(float(min(most, max(least, math.ceil(budget.turns * budget.command_s))))),
        # Every control run, the run that decides, and time to lay out.
        "verifier_s": str(float(math.ceil((MOST_RUNS + 1) * command.timeout_s) + 120)),
        "variables": "\n".join(variables(task, "/workspace")),
    }  # fmt: skip


def _strength(task: Task) -> Iterable[str]:
    """How strong the grader was measured to be; what was not measured is left out, for TOML has no null."""
    for name, value in sorted(task.strength.document().items()):
        if isinstance(value, int | float | bool):
            yield f"{name} = {json.dumps(value)}"


def _digest(directory: Mapping[str, bytes]) -> str:
    """Harbor's own digest of a task directory: of its files' paths and digests, in order."""
    lines = (f"{path}\0{hashlib.sha256(content).hexdigest()}\n" for path, content in sorted(directory.items()))
    return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()


def _toml(text: str) -> str:
    """A string of TOML; JSON's differ in the delete character and in halves of pairs."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _json(document: object) -> bytes:
    return (canonical_json(document) + "\n").encode("utf-8", "surrogatepass")
