"""A changed file is tried: which tests that passed fail now, and whether that is a task or only noise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from envsynth.errors import SandboxError
from envsynth.generators.repository.candidates import Work, only_new
from envsynth.generators.repository.evidence import counts
from envsynth.models import Dropped, FileMode, Finding, TestRecord, TestRun, TestStatus, Tree, TreeEntry, Workspace
from envsynth.runtime.testkeys import locate

__all__ = ["Bench", "Tried", "bench_of"]

LOUD = 0.5
"""Share of the tests that passed; where more than so many fail, nobody needs to look for the fault."""
_TEST_SECONDS = (10.0, 20.0, 40.0, 60.0)
_RUN_SECONDS = (60.0, 120.0, 240.0, 300.0)
"""Limits that are tried, so that equal projects get equal ones however busy the machine is."""
_SHOWN = 5
_NEVER_ENDED = re.compile(r"did not end within|ended the test process")
"""What the harness says of a test that hung, or that took the process with it."""


class Tried(NamedTuple):
    """What a change did to the tests."""

    broken: tuple[TestRecord, ...]
    """Tests that passed and do not any more."""
    finding: Finding | None
    """Why it is no task; None: it is one."""


@dataclass(frozen=True)
class Bench:
    """A revision whose tests ran once as they are, ready to have changes tried on it."""

    work: Work
    workspace: Workspace
    tree: Tree
    """The revision's files, with what its build makes."""
    baseline: TestRun

    @cached_property
    def passing(self) -> dict[str, TestRecord]:
        """Tests that pass as it is, by key."""
        return {one.key: one for one in self.baseline.records if one.status is TestStatus.PASSED}

    def with_file(self, path: str, text: str) -> Tree:
        """The revision's files with another text in one of them."""
        content = text.encode()
        mode = self.tree.by_path[path].mode if path in self.tree.by_path else FileMode.FILE
        blob = self.work.context.blobs.put(content)
        return self.tree.overlay(Tree(entries=(TreeEntry(path=path, mode=mode, blob=blob, size=len(content)),)))

    def tried(self, path: str, text: str) -> Tried:
        """Run the tests on the revision with one file changed.

        Raises:
            SandboxError: the environment failed.
        """
        work = self.work
        run = work.context.run_tests(self._hurried(), self.with_file(path, text), "trial", 0, work.source)
        if run.trouble:
            raise SandboxError("the tests could not be run", where=f"{work.where} (trial)", cause=run.trouble)
        now = {record.key: record for record in run.records}
        broken = tuple(record for key, record in self.passing.items() if _fails(now.get(key)))
        return Tried(broken, self._against(run, broken))

    def test_files(self, records: Iterable[TestRecord]) -> list[str]:
        """The files of the grader's in which tests stand, sorted."""
        paths = self.work.parts.hidden.by_path
        places = [locate(record.id, paths) for record in records]
        return sorted({place.path for place in places if place is not None})

    def _hurried(self) -> Workspace:
        """The workspace with limits that follow from how long the tests take as they are."""
        command, took = self.workspace.command, self.baseline.cost.wall_s
        one = next((limit for limit in _TEST_SECONDS if limit >= took + 5), _TEST_SECONDS[-1])
        whole = next((limit for limit in _RUN_SECONDS if limit >= 6 * took + 20), command.timeout_s)
        limits = {
            "test_timeout_s": min(one, command.test_timeout_s), "timeout_s": min(whole, command.timeout_s),
        }  # fmt: skip
        return self.workspace.model_copy(update={"command": command.model_copy(update=limits)})

    def _against(self, run: TestRun, broken: tuple[TestRecord, ...]) -> Finding | None:
        """Why a change is no task, by what the tests said."""
        now = {record.key: record for record in run.records}
        unended = [one for one in broken if one.key in now and _NEVER_ENDED.match(now[one.key].message)]
        if run.timed_out or unended:
            return Finding(rule="bug_never_ends", message="tests hang or end their process, where one should fail")
        before = {record.key for record in self.baseline.records if record.status is TestStatus.ERROR}
        errors = [one for one in run.records if one.status is TestStatus.ERROR and one.key not in before]
        uncollected = sorted({one.id for one in errors} & set(self.work.parts.hidden.by_path))
        lost = [one for one in broken if one.key not in now]
        if uncollected or lost:
            named = uncollected or [one.id for one in lost]
            return Finding(
                rule="breaks_collection", message=f"tests cannot even be collected: {', '.join(named[:_SHOWN])}"
            )
        if not run.complete:
            return Finding(rule="bug_never_ends", message="the run of the tests was cut off")
        if not broken:
            return Finding(rule="nothing_fails", message=f"all {len(self.passing)} tests that passed still pass")
        if len(broken) > LOUD * len(self.passing):
            return Finding(
                rule="too_loud", message=f"{len(broken)} of {len(self.passing)} tests fail; a fault is looked for that "
                "shows in few of them",
            )  # fmt: skip
        return None


def bench_of(work: Work) -> Bench | Dropped:
    """The environment of a revision, and one run of its tests; or why nothing can be tried there.

    Raises:
        SandboxError: the environment failed.
    """
    prepared = work.prepared()
    if isinstance(prepared, Dropped):
        return prepared
    generated = only_new(prepared.generated, work.parts.fixed)
    tree = work.parts.fixed.overlay(generated)
    workspace = work.workspace(tree, generated, prepared)
    run = work.context.run_tests(workspace, tree, "baseline", 0, work.source)
    if run.trouble:
        raise SandboxError("the tests could not be run", where=f"{work.where} (baseline)", cause=run.trouble)
    if run.timed_out:
        return work.dropped("tests_time_out", f"no end in {workspace.command.timeout_s:.0f} s with nothing changed")
    if not any(record.status is TestStatus.PASSED for record in run.records):
        return work.dropped("tests_pass_nothing", f"with nothing changed: {counts(run) or 'no test reported'}")
    return Bench(work, workspace, tree, run)


def _fails(record: TestRecord | None) -> bool:
    return record is None or record.status.fails
