"""A task as datasets of repository repairs have it: trees, patches, names of tests, and where it is from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from envsynth.errors import ExportError, boundary
from envsynth.exporters._gitdiff import GitFile, commit_id, git_diff, git_files
from envsynth.models import Role, Task, role_of
from envsynth.protocols import BlobStore
from envsynth.runtime.testlog import spelled

__all__ = [
    "FAIL_TO_PASS",
    "PASS_TO_PASS",
    "Trees",
    "image_name",
    "listed_tests",
    "measured",
    "repository_of",
    "trees_of",
]

FAIL_TO_PASS, PASS_TO_PASS = "FAIL_TO_PASS", "PASS_TO_PASS"


@dataclass(frozen=True)
class Trees:
    """Files by path, and what is computed of them once."""

    start: Mapping[str, GitFile]
    """The start tree."""
    solved: Mapping[str, GitFile]
    """The start tree with the reference solution."""
    graded: Mapping[str, GitFile]
    """The start tree with the tests and the configuration that grade."""

    @cached_property
    def base_commit(self) -> str:
        """Id of the one commit that the start tree is."""
        return commit_id(self.start)

    @cached_property
    def gold(self) -> str:
        """The reference solution as a diff."""
        return git_diff(self.start, self.solved)

    @cached_property
    def bug(self) -> str:
        """The diff that takes the reference solution away."""
        return git_diff(self.solved, self.start)

    @cached_property
    def tests(self) -> str:
        """The diff from the tests and the configuration of the start tree to those that grade."""
        return git_diff(self.start, self.graded)

    @cached_property
    def whole(self) -> Mapping[str, GitFile]:
        """The solution with the tests that grade."""
        paths = self.start.keys() | self.graded.keys()
        changed = {path for path in paths if self.start.get(path) != self.graded.get(path)}
        kept = {path: file for path, file in self.solved.items() if path not in changed}
        return kept | {path: file for path, file in self.graded.items() if path in changed}


def trees_of(task: Task, blobs: BlobStore) -> Trees:
    """The trees of a workspace's task.

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
    return Trees(start, solved, graded)


def _is_guarded(task: Task, path: str) -> bool:
    """Whether a path is of the tests or the configuration."""
    return role_of(path, task.candidate.workspace.roles) in (Role.TEST, Role.CONFIG)


def listed_tests(task: Task) -> dict[str, list[str]]:
    """FAIL_TO_PASS and PASS_TO_PASS as SWE-bench's parser spells the tests; where two fall together, as the first.

    Raises:
        ExportError: no test decides.
    """
    lists = task.tests
    if lists is None or not lists.fail_to_pass:
        raise ExportError("no test of the task has to pass", where=task.id, next_step="leave the task out with --where")
    first = sorted({spelled(key) for key in lists.fail_to_pass})
    rest = sorted({spelled(key) for key in lists.pass_to_pass} - set(first))
    return {FAIL_TO_PASS: first, PASS_TO_PASS: rest}


def repository_of(task: Task) -> str:
    """`owner/name` of the source; one on the builder's machine has no owner."""
    lead = task.candidate.provenance.lead
    place = urlsplit(lead.source)
    parts = [re.sub(r"[^\w.-]", "-", part) for part in place.path.removesuffix(".git").split("/") if part]
    if place.scheme in ("http", "https", "ssh", "git") and len(parts) >= 2:
        return "/".join(parts[-2:])
    return f"local/{lead.name}"


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
