"""Packs for Harbor: task directories with a grader of their own, and a dataset by digest."""

from __future__ import annotations

import io
import math
import re
import shlex
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from envsynth.errors import ExportError, boundary
from envsynth.exporters._contents import archive, contents, json_lines
from envsynth.exporters._harbor_config import (
    Settings,
    agent_seconds,
    common_words,
    content_digest,
    docker_image,
    toml_text,
)
from envsynth.exporters._harbor_world import CLIENT, world_directory, world_words
from envsynth.exporters._image import graders_document, image_words, require_gradable, runtime_archive, variables
from envsynth.exporters._package import EVERY_KIND, Project, Target, export_package
from envsynth.exporters._vendor import rendered
from envsynth.models import FileMode, Task, WorldRef
from envsynth.protocols import BlobStore
from envsynth.runtime.container import CONTENTS, TASK
from envsynth.runtime.controls import MOST_RUNS

__all__ = ["Harbor"]

_SPARE_MB = 1024
"""Memory beside that of the tests."""


class Harbor:
    """Writes task directories for Harbor 0.26.

    Options: `name` of the pack (the folder's name), `version` (0.1.0), `org` in the names of tasks (envsynth), `base`:
    the image that tasks are built on, with `{python}` for the interpreter's version, and `image`: the name of built
    images for those who only pull, with `{part}` and `{task}` or `{digest}`.
    """

    name = "harbor"
    kinds = EVERY_KIND

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`; the same tasks, name and version give the same bytes.

        Raises:
            ExportError: no task, one of a workspace that calls are needed to grade, a bad name or option, a missing
                content, or something else is in the folder.
        """
        own = {name: value for name, value in options.items() if name in Settings._fields}
        settings = Settings(**own)
        settings.require_usable()
        target = _TARGET._replace(files=partial(_files, settings=settings), words=partial(_words, settings=settings))
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


def _files(project: Project, *, settings: Settings) -> dict[str, bytes]:
    """The task directories, the dataset that names them by digest, and what the package needs beside its templates."""
    files = {
        f"{project.package}/dockerfiles.py": rendered("shared/dockerfiles.py", target=Harbor.name),
        f"{project.package}/commands.py": rendered("shared/commands.py", workdir="/workspace"),
        f"{project.package}/client.py": rendered(CLIENT, **world_words(settings.base)),
    }
    runtime, lines = runtime_archive(), []
    for task in project.tasks:
        name = f"{settings.org}/{task.id}"
        if isinstance(task.candidate.environment, WorldRef):
            directory = world_directory(project, task, name, settings)
        else:
            directory = _directory(project, task, name, settings, runtime)
        files |= {f"tasks/{task.id}/{path}": content for path, content in directory.items()}
        digest = toml_text(f"sha256:{content_digest(directory)}")
        lines.append(f"[[tasks]]\nname = {toml_text(name)}\ndigest = {digest}\n")
    files["dataset.toml"] = rendered(
        "harbor/dataset.toml", dataset=toml_text(f"{settings.org}/{project.name}"), version=toml_text(project.version),
        description=toml_text(f"{len(project.tasks)} verified tasks"), tasks="\n".join(lines).rstrip(),
    )  # fmt: skip
    return files | _image_list(files)


def _words(tasks: Sequence[Task], *, settings: Settings) -> dict[str, str]:
    """What the README says of these kinds of tasks, and of images."""
    kinds = sorted({task.candidate.environment.kind for task in tasks})
    about = (rendered(f"harbor/about_{kind}.md", **world_words(settings.base)) for kind in kinds)
    images = "named" if settings.image else "unnamed"
    return {
        "kind_sections": b"\n".join(about).decode().strip(),
        "images_section": rendered(f"harbor/images_{images}.md").decode().strip(),
    }


def _directory(project: Project, task: Task, full_name: str, settings: Settings, runtime: bytes) -> dict[str, bytes]:
    """A task directory of Harbor's, by relative path."""
    require_gradable(task, Harbor.name)
    needed = contents([task], project.blobs)
    words = image_words(task, settings.base) | _task_words(task, full_name, project.version)
    told = {"tree": task.candidate.workspace.tree, "recipe": task.candidate.workspace.recipe.document()}
    agent = {
        "Dockerfile": rendered("harbor/Dockerfile", **words),
        "runtime.zip": runtime,
        CONTENTS: archive(needed.visible, project.blobs),
        TASK: json_lines([told]),
    }
    grader = {
        "Dockerfile": rendered("harbor/tests_Dockerfile", **words),
        "test.sh": rendered("harbor/test.sh", **words),
        "runtime.zip": runtime,
        CONTENTS: archive(needed.visible | needed.hidden, project.blobs),
        TASK: graders_document(task),
    }
    words |= {
        "agent_image": docker_image(settings.image_of(task.id, "environment", agent)),
        "grader_image": docker_image(settings.image_of(task.id, "tests", grader)),
    }
    return {
        "task.toml": rendered("harbor/task.toml", **words),
        "instruction.md": rendered("harbor/instruction.md", instruction=task.candidate.instruction.strip()),
        **{f"environment/{path}": content for path, content in agent.items()},
        **{f"tests/{path}": content for path, content in grader.items()},
        **_solution(task, project.blobs),
    }


def _image_list(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Each image's name and the folder it is built from, a line each; nothing where images have no names."""
    lines = []
    for path, content in sorted(files.items()):
        folder, _, name = path.rpartition("/")
        if name == "task.toml":
            told = tomllib.loads(content.decode())
            for part, table in (("environment", told["environment"]), ("tests", told["verifier"]["environment"])):
                lines += [f"{table['docker_image']} {folder}/{part}"] if "docker_image" in table else []
        elif name == "docker-compose.yaml":
            found = re.search(rb'^    image: "(\S+)"$', content, re.MULTILINE)
            lines += [f"{found[1].decode()} {folder}/world"] if found else []
    # Images that are the same for many tasks are built once.
    named = {line.partition(" ")[0]: line for line in reversed(lines)}
    return {"images.txt": "".join(f"{line}\n" for line in sorted(named.values())).encode()} if named else {}


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
    """What the configuration says of a task in a workspace."""
    candidate, command = task.candidate, task.candidate.workspace.command
    return common_words(task, full_name, version) | {
        "keywords": f"[{toml_text('workspace')}, {toml_text(candidate.workspace.recipe.language)}]",
        "base_commit": toml_text(candidate.provenance.base_commit or ""),
        "interpreter": toml_text(candidate.workspace.recipe.interpreter),
        "memory_mb": str((command.memory_bytes >> 20) + _SPARE_MB),
        "agent_s": agent_seconds(candidate.budget.turns, candidate.budget.command_s),
        # Every control run, the run that decides, and time to lay out.
        "verifier_s": str(float(math.ceil((MOST_RUNS + 1) * command.timeout_s) + 120)),
        "variables": "\n".join(variables(task, "/workspace")),
    }  # fmt: skip
