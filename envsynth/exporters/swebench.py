"""Packs for SWE-bench 5: a task repository, and the same tasks as classic rows."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import yaml

from envsynth.errors import ExportError, boundary
from envsynth.exporters._contents import archive, ascii_lines, contents, json_lines
from envsynth.exporters._gitdiff import AUTHOR, MESSAGE, TIME
from envsynth.exporters._image import (
    graders_document,
    image_words,
    require_gradable,
    runtime_archive,
    variables,
    zipped,
)
from envsynth.exporters._package import PackageExporter, Project, Target
from envsynth.exporters._swe import image_name, listed_tests, measured, repository_of, trees_of
from envsynth.exporters._vendor import rendered
from envsynth.models import Task, canonical_json
from envsynth.protocols import BlobStore
from envsynth.runtime.container import CONTENTS, TASK

__all__ = ["Swebench"]

SPLIT = "test"
LOG_PARSER = "parse_log_pytest_v2"
_WORKDIR = "/testbed"


def _files(project: Project) -> dict[str, bytes]:
    """The task repository, and classic rows."""
    runtime = runtime_archive()
    files = {
        f"{project.package}/dockerfiles.py": rendered("shared/dockerfiles.py", target=Swebench.name),
        f"{project.package}/commands.py": rendered("shared/commands.py", workdir=_WORKDIR),
        "sweb.yaml": _yaml({"datasets": [project.name], "splits": [SPLIT]}),
    }
    rows = []
    for task in project.tasks:
        require_gradable(task, Swebench.name)
        directory = _directory(project, task, runtime)
        files |= {f"tasks/{task.id}/{path}": content for path, content in directory.items()}
        rows.append(_row(task, directory))
    files[f"{project.name}-{SPLIT}.jsonl"] = ascii_lines(rows)
    return files


def _directory(project: Project, task: Task, runtime: bytes) -> dict[str, bytes]:
    """A directory of the task repository, by relative path."""
    needed, trees = contents([task], project.blobs), trees_of(task, project.blobs)
    recipe = task.candidate.workspace.recipe
    words = image_words(task, "") | {
        "variables": "\n".join(variables(task, _WORKDIR)), "environment": recipe.digest(),
        "base_commit": trees.base_commit, "author_name": AUTHOR.partition(" <")[0], "time": TIME,
        "author_address": AUTHOR.partition("<")[2].rstrip(">"), "message": MESSAGE,
        "hidden": _base64(_hidden_archive(task, needed.hidden, project.blobs)),
    }  # fmt: skip
    return {
        "task.yaml": _yaml(_configuration(project, task, trees.base_commit)),
        "tests.json": (json.dumps(listed_tests(task), indent=2, ensure_ascii=False) + "\n").encode(),
        "problem_statement.md": (task.candidate.instruction.strip() + "\n").encode("utf-8", "replace"),
        "gold.patch": trees.gold.encode(),
        "test.patch": trees.tests.encode(),
        "eval.sh": rendered("swebench/eval.sh", **words),
        "Dockerfile": rendered("swebench/Dockerfile", **words),
        ".dockerignore": rendered("swebench/dockerignore"),
        "image/runtime.zip": runtime,
        f"image/{CONTENTS}": archive(needed.visible, project.blobs),
        f"image/{TASK}": json_lines([{"tree": task.candidate.workspace.tree, "recipe": recipe.document()}]),
    }


def _hidden_archive(task: Task, digests: frozenset[str], blobs: BlobStore) -> bytes:
    """What the evaluation script brings: hidden contents, and the document that grading goes by."""
    with boundary(ExportError, "a content is missing", where=task.id):
        files = {digest: blobs.get(digest) for digest in digests - {task.candidate.solution.patch}}
    return zipped({**files, TASK: graders_document(task)})


def _configuration(project: Project, task: Task, base_commit: str) -> dict[str, object]:
    """What `task.yaml` says."""
    provenance = task.candidate.provenance
    return {
        "instance_id": task.id, "repo": repository_of(task), "version": task.candidate.workspace.recipe.digest()[:12],
        "base_commit": base_commit, "environment_setup_commit": base_commit,
        "created_at": provenance.authored_at or "", "split": SPLIT, "datasets": [project.name],
        "image": image_name(task.id), "log_parser": LOG_PARSER, "eval_type": "pass_and_fail",
        "metadata": canonical_json(measured(task)),
    }  # fmt: skip


def _row(task: Task, directory: Mapping[str, bytes]) -> dict[str, object]:
    """A classic row: lists are JSON texts in it."""
    told = yaml.safe_load(directory["task.yaml"])
    texts = {
        "patch": "gold.patch", "test_patch": "test.patch", "problem_statement": "problem_statement.md",
        "eval_script": "eval.sh",
    }  # fmt: skip
    return {
        **{name: value for name, value in told.items() if name not in ("split", "datasets")},
        **{name: directory[path].decode() for name, path in texts.items()},
        **{name: json.dumps(names) for name, names in listed_tests(task).items()},
        "hints_text": "",
    }


def _yaml(document: Mapping[str, object]) -> bytes:
    return yaml.safe_dump(dict(document), sort_keys=True, allow_unicode=True, width=120).encode()


def _base64(content: bytes) -> str:
    return base64.encodebytes(content).decode().rstrip("\n")


class Swebench(PackageExporter):
    """Writes task repositories for SWE-bench 5."""

    target = Target(
        name="swebench",
        requires='"swebench>=5.0.2"',
        kinds=("workspace",),
        inside={"__init__.py": "package_init.py", "through.py": "through.py"},
        files=_files,
        taken=frozenset({"swebench"}),
    )
