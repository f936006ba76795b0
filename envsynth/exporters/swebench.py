"""Packs for SWE-bench 5: a task repository, and the same tasks as classic rows."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import yaml

from envsynth.errors import ExportError, boundary
from envsynth.exporters._contents import archive, contents
from envsynth.exporters._gitdiff import AUTHOR, MESSAGE, TIME, commit_id, git_diff, git_files
from envsynth.exporters._image import image_words, require_gradable, runtime_archive, variables, zipped
from envsynth.exporters._package import PackageExporter, Project, Target
from envsynth.exporters._vendor import rendered
from envsynth.models import Task, canonical_json, role_of
from envsynth.protocols import BlobStore
from envsynth.runtime.container import CONTENTS, TASK
from envsynth.runtime.testlog import spelled

__all__ = ["Patches", "Swebench", "patches_of", "repository_of", "test_names"]

SPLIT = "test"
LOG_PARSER = "parse_log_pytest_v2"
_WORKDIR = "/testbed"
_GRADED_BY = ("instruction", "environment", "verifier", "budget", "reference")
"""Parts of a candidate that grading reads."""
_GUARDED = ("test", "config")


class Patches(NamedTuple):
    """A task as SWE-bench has it: a commit, and what is laid over it."""

    base_commit: str
    """Id of the one commit of the repository that the image holds."""
    gold: str
    test: str
    """From the start tree's tests and configuration to those that grade."""


def patches_of(task: Task, blobs: BlobStore) -> Patches:
    """The commit and the patches of a workspace's task.

    Raises:
        ExportError: a content is missing.
    """
    workspace, reference = task.candidate.workspace, task.candidate.solution
    with boundary(ExportError, "a content of the task is missing", where=task.id):
        start = git_files(blobs.get_tree(workspace.tree), blobs)
        hidden = git_files(blobs.get_tree(workspace.hidden), blobs)
        changes = git_files(blobs.get_tree(reference.changes), blobs)
    solved = {path: file for path, file in start.items() if path not in reference.removed} | changes
    free = frozenset(workspace.allowed)
    graded = {path: file for path, file in start.items() if path in free or not _is_guarded(task, path)}
    graded |= {path: file for path, file in hidden.items() if path not in free}
    return Patches(commit_id(start), git_diff(start, solved), git_diff(start, graded))


def _is_guarded(task: Task, path: str) -> bool:
    return role_of(path, task.candidate.workspace.roles).value in _GUARDED


def test_names(task: Task) -> dict[str, list[str]]:
    """FAIL_TO_PASS and PASS_TO_PASS as SWE-bench's parser spells the tests; where two fall together, as the first.

    Raises:
        ExportError: no test decides.
    """
    lists = task.tests
    if lists is None or not lists.fail_to_pass:
        raise ExportError("no test of the task has to pass", where=task.id, next_step="leave the task out with --where")
    first = sorted({spelled(key) for key in lists.fail_to_pass})
    rest = sorted({spelled(key) for key in lists.pass_to_pass} - set(first))
    return {"FAIL_TO_PASS": first, "PASS_TO_PASS": rest}


def repository_of(task: Task) -> str:
    """`owner/name` of the source; one on the builder's machine has no owner."""
    lead = task.candidate.provenance.lead
    place = urlsplit(lead.source)
    parts = [re.sub(r"[^\w.-]", "-", part) for part in place.path.removesuffix(".git").split("/") if part]
    if place.scheme in ("http", "https", "ssh", "git") and len(parts) >= 2:
        return "/".join(parts[-2:])
    return f"local/{lead.name}"


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
        rows.append(_row(project, task, directory))
    # Whoever reads them splits lines at every separator that Unicode has.
    lines = (json.dumps(row, sort_keys=True, ensure_ascii=True) + "\n" for row in rows)
    files[f"{project.name}-{SPLIT}.jsonl"] = "".join(lines).encode()
    return files


def _directory(project: Project, task: Task, runtime: bytes) -> dict[str, bytes]:
    """A directory of the task repository, by relative path."""
    needed, patches = contents([task], project.blobs), patches_of(task, project.blobs)
    recipe = task.candidate.workspace.recipe
    words = image_words(task, "") | {
        "variables": "\n".join(variables(task, _WORKDIR)), "environment": recipe.digest(),
        "base_commit": patches.base_commit, "author_name": AUTHOR.partition(" <")[0], "time": TIME,
        "author_address": AUTHOR.partition("<")[2].rstrip(">"), "message": MESSAGE,
        "hidden": _base64(_hidden_archive(task, needed.hidden, project.blobs)),
    }  # fmt: skip
    return {
        "task.yaml": _yaml(_configuration(project, task, patches)),
        "tests.json": (json.dumps(test_names(task), indent=2, ensure_ascii=False) + "\n").encode(),
        "problem_statement.md": (task.candidate.instruction.strip() + "\n").encode("utf-8", "replace"),
        "gold.patch": patches.gold.encode(),
        "test.patch": patches.test.encode(),
        "eval.sh": rendered("swebench/eval.sh", **words),
        "Dockerfile": rendered("swebench/Dockerfile", **words),
        ".dockerignore": rendered("swebench/dockerignore"),
        "image/runtime.zip": runtime,
        f"image/{CONTENTS}": archive(needed.visible, project.blobs),
        f"image/{TASK}": _json({"tree": task.candidate.workspace.tree, "recipe": recipe.document()}),
    }


def _hidden_archive(task: Task, digests: frozenset[str], blobs: BlobStore) -> bytes:
    """What the evaluation script brings: hidden contents, and the document that grading goes by."""
    document = {"id": task.id, **task.document()}
    graded = {key: document[key] for key in ("id", "tests", "controls")}
    candidate = task.candidate.document()
    graded["candidate"] = {name: candidate[name] for name in _GRADED_BY}
    with boundary(ExportError, "a content is missing", where=task.id):
        files = {digest: blobs.get(digest) for digest in digests - {task.candidate.solution.patch}}
    return zipped({**files, TASK: _json(graded)})


def _configuration(project: Project, task: Task, patches: Patches) -> dict[str, object]:
    """What `task.yaml` says."""
    provenance = task.candidate.provenance
    return {
        "instance_id": task.id, "repo": repository_of(task), "version": task.candidate.workspace.recipe.digest()[:12],
        "base_commit": patches.base_commit, "environment_setup_commit": patches.base_commit,
        "created_at": provenance.authored_at or "", "split": SPLIT, "datasets": [project.name],
        "image": image_name(task.id), "log_parser": LOG_PARSER, "eval_type": "pass_and_fail",
        "metadata": canonical_json(measured(task)),
    }  # fmt: skip


def image_name(instance_id: str) -> str:
    """The image's name as SWE-bench derives it."""
    return f"swebench/sweb.eval.x86_64.{instance_id}:latest".lower().replace("__", "_1776_")


def measured(task: Task) -> dict[str, object]:
    """Where a task is from, and how strong its grader was measured to be."""
    provenance = task.candidate.provenance
    return {
        "task_sha256": task.digest(), "tier": task.tier.value, "strategy": provenance.lead.strategy,
        "source": provenance.lead.source, "source_commit": provenance.base_commit or "",
        "interpreter": task.candidate.workspace.recipe.interpreter, "strength": task.strength.document(),
    }  # fmt: skip


def _row(project: Project, task: Task, directory: Mapping[str, bytes]) -> dict[str, object]:
    """A classic row: lists are JSON texts in it."""
    told = yaml.safe_load(directory["task.yaml"])
    texts = {
        "patch": "gold.patch", "test_patch": "test.patch", "problem_statement": "problem_statement.md",
        "eval_script": "eval.sh",
    }  # fmt: skip
    return {
        **{name: value for name, value in told.items() if name not in ("split", "datasets")},
        **{name: directory[path].decode() for name, path in texts.items()},
        **{name: json.dumps(names) for name, names in test_names(task).items()},
        "hints_text": "",
    }


def _yaml(document: Mapping[str, object]) -> bytes:
    return yaml.safe_dump(dict(document), sort_keys=True, allow_unicode=True, width=120).encode()


def _base64(content: bytes) -> str:
    return base64.encodebytes(content).decode().rstrip("\n")


def _json(document: object) -> bytes:
    return (canonical_json(document) + "\n").encode("utf-8", "surrogatepass")


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
