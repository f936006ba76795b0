"""From a split commit to a candidate: environment, two runs, the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from envsynth.errors import GeneratorError, NoInterpreter, SandboxError, SourceError, boundary
from envsynth.generators.repository.authored import Brief, author_of, instruct
from envsynth.generators.repository.config import Settings
from envsynth.generators.repository.drill import Drilled
from envsynth.generators.repository.evidence import (
    counts,
    excerpts_of,
    fail_to_pass,
    failing_functions,
    hidden_files_used,
    outside,
)
from envsynth.generators.repository.gitdir import GitDir
from envsynth.generators.repository.history import Commit
from envsynth.generators.repository.instruction import Material, Written
from envsynth.generators.repository.interface import Project, defined_names
from envsynth.generators.repository.retold import reworded, rewriter_of
from envsynth.generators.repository.split import Split, patch_of, text_of
from envsynth.generators.repository.vagueness import level_of
from envsynth.generators.repository.verifier import code_verifier
from envsynth.leaks import Change, secrets_of
from envsynth.models import (
    Candidate,
    Dropped,
    Lead,
    Provenance,
    Reference,
    Role,
    Source,
    TestRun,
    TestStatus,
    Tree,
    Workspace,
    role_of,
)
from envsynth.protocols import Context, Prepared

LANGUAGE = "python"
_LICENCES = re.compile(r"^(licen[cs]es?|copying|notice)([-_.][^/]*)?(/.*)?$", re.I)
_TEXT_LIMIT = 2**20
"""Bytes; a larger file is data, not something an identifier is looked up in."""


class Measured(NamedTuple):
    """The two runs that say which tests the solution turns."""

    start: TestRun
    reference: TestRun


@dataclass(frozen=True)
class Work:
    """One lead on its way to a candidate."""

    lead: Lead
    source: Source
    context: Context
    settings: Settings
    git: GitDir
    commit: Commit
    parts: Split
    drilled: Drilled
    patch: bytes | None = None
    """The known solution as a unified diff; None: what git says between the parent and the commit."""

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"{self.lead.name} {self.lead.ref[:12]}"

    def candidate(self) -> Candidate | Dropped:
        """Environment, runs, text."""
        prepared = self.prepared()
        if isinstance(prepared, Dropped):
            return prepared
        generated = only_new(prepared.generated, self.parts.fixed)
        start = self.parts.start.overlay(generated)
        workspace = self.workspace(start, generated, prepared)
        measured = self._measure(workspace, start)
        if isinstance(measured, Dropped):
            return measured
        written = self._write(start, measured, prepared)
        if written.reason:
            return self.dropped(written.reason, written.detail)
        return self._assemble(written, workspace, start, measured)

    def prepared(self) -> Prepared | Dropped:
        """The project's environment as of the commit."""
        language = self.context.language(LANGUAGE)
        if not language.detect(self.parts.fixed):
            return self.dropped("non_python", "no Python project at this commit")
        try:
            prepared = language.prepare(
                self.parts.fixed, newest=self.commit.committed, version_hint=self.git.nearest_tag(self.parts.parent),
                source=self.source, context=self.context,
            )  # fmt: skip
        except NoInterpreter as exc:
            # The machine's lack and not the commit's fault: tried again by every build, which costs next to nothing.
            dropped = self.dropped("no_interpreter", f"{exc.cause}. Next: {exc.next_step}")
            return dropped.model_copy(update={"retryable": True})
        except SourceError as exc:
            return self.dropped("cannot_install", f"{exc.what}: {exc.cause}" if exc.cause else exc.what)
        self.context.spent(prepared.cost)
        return prepared

    def workspace(self, start: Tree, generated: Tree, prepared: Prepared) -> Workspace:
        """The task's environment: a start tree that has what the project's build made, and what only the grader has."""
        rules = self.parts.role.rules
        # What a build makes of a role that grading restores, such as a compiled extension, must be restored too.
        made = generated.select(lambda path: role_of(path, rules) in (Role.TEST, Role.CONFIG))
        changed: dict[str, object] = {}
        if self.settings.tests:
            changed["targets"] = self.parts.existing(self.settings.tests)
        if self.settings.test_timeout:
            changed["timeout_s"] = self.settings.test_timeout
        blobs = self.context.blobs
        return Workspace(
            tree=blobs.put_tree(start),
            hidden=blobs.put_tree(self.parts.hidden.overlay(made)),
            recipe=prepared.recipe,
            command=prepared.command.model_copy(update=changed),
            roles=rules,
        )

    def _measure(self, workspace: Workspace, start: Tree) -> Measured | Dropped:
        """The same runs that the execution validator begins with."""
        solved = start.without(self.parts.removed).overlay(self.parts.changes)
        reference = self.context.run_tests(workspace, solved, "reference", 0, self.source)
        self._complain(reference)
        if reference.timed_out:
            return self.dropped("tests_time_out", f"no end in {workspace.command.timeout_s:.0f} s with the solution")
        if not any(record.status is TestStatus.PASSED for record in reference.records):
            tail = reference.output_tail.strip().splitlines()
            detail = f"with the solution: {counts(reference) or 'no test reported'}"
            return self.dropped("tests_pass_nothing", f"{detail}; {tail[-1][:200]}" if tail else detail)
        before = self.context.run_tests(workspace, start, "start", 0, self.source)
        self._complain(before)
        if not fail_to_pass(before, reference):
            detail = f"start: {counts(before)}; with the solution: {counts(reference)}"
            return self.dropped("no_fail_to_pass", detail)
        return Measured(before, reference)

    def _complain(self, run: TestRun) -> None:
        if run.trouble:
            raise SandboxError("the tests could not be run", where=f"{self.where} ({run.state})", cause=run.trouble)

    def _write(self, start: Tree, measured: Measured, prepared: Prepared) -> Written:
        hidden = self.parts.hidden
        failing = fail_to_pass(measured.start, measured.reference)
        if lost := outside(failing, hidden.by_path):
            return Written("", "tests_not_readable", f"{lost[0]} stands in no test file")
        functions = failing_functions(failing, measured.start, hidden.by_path)
        excerpts, unreadable = excerpts_of(
            functions, lambda path: self._text(hidden, path), lambda path: self._text(start, path)
        )
        if unreadable:
            return Written("", "tests_not_readable", f"{unreadable[0]} cannot be shown as a script")
        if used := hidden_files_used(excerpts, {path: 1 for path in hidden.by_path if path not in start.by_path}):
            return Written("", "needs_hidden_file", f"the failing tests read {used[0]}, which only the grader has")
        texts = {entry.path: text for entry in start.entries if (text := self._text(start, entry.path)) is not None}
        changes = [
            Change(path, self._text(start, path) or "", self._text(self.parts.changes, path) or "")
            for path in self.parts.changes.by_path
        ]
        shown = [text for excerpt in excerpts for text in (excerpt.code, *excerpt.helpers)]
        told = "\n".join(
            [*shown, *(self._text(hidden, path) or "" for path in sorted({test.path for test in functions}))]
        )
        touched = "\n".join(change.before for change in changes)
        material = Material(
            message=self.commit.message,
            excerpts=excerpts,
            functions=self.drilled.functions,
            project=Project(
                {path: text for path, text in texts.items() if path.endswith(".py")}, prepared.command.roots
            ),
            defined=defined_names(change.after for change in changes if change.path.endswith(".py")),
            said=[record.message for record in measured.start.records if record.message],
            strict=secrets_of(changes, touched, told),
            secrets=secrets_of(changes, "\n".join(texts.values()), told),
        )
        tests = sorted({*self.parts.tests, *(test.path for test in functions)})
        brief = Brief(
            material, changes, texts, paths=tuple(start.by_path), diff=self._diff().decode("utf-8", "replace"),
            tests={path: text for path in tests if (text := self._text(hidden, path)) is not None},
            level=level_of(self.settings.vagueness, self.lead.seed, self.lead.ref),
        )  # fmt: skip
        written = instruct(brief, author_of(self.settings, self.source, self.context), self.context.note)
        rewriter = rewriter_of(self.settings, self.source, self.context)
        return reworded(written, brief, self.settings, self.lead, rewriter)

    def _diff(self) -> bytes:
        """The known solution as a unified diff."""
        if self.patch is not None:
            return self.patch
        with boundary(GeneratorError, "the solution's diff cannot be made", where=self.where):
            return patch_of(self.git, self.parts, self.commit.oid)

    def _text(self, tree: Tree, path: str) -> str | None:
        entry = tree.by_path.get(path)
        if entry is None or entry.size > _TEXT_LIMIT:
            return None
        return text_of(self.context.blobs.get(entry.blob))

    def _assemble(self, written: Written, workspace: Workspace, start: Tree, measured: Measured) -> Candidate:
        blobs = self.context.blobs
        return Candidate(
            instruction=written.text,
            environment=workspace,
            verifier=code_verifier(),
            reference=Reference(
                changes=blobs.put_tree(self.parts.changes), removed=self.parts.removed, patch=blobs.put(self._diff())
            ),
            provenance=Provenance(
                lead=self.lead,
                base_commit=self.parts.parent,
                reference_commit=self.commit.oid,
                authored_at=self.commit.authored,
                licence_files=tuple(path for path in start.by_path if _LICENCES.match(path)),
                author=written.author,
            ),
            metadata={
                "title": self.commit.title[:200],
                "changed_functions": list(self.drilled.functions),
                "changed_tests": list(self.parts.tests),
                "fail_to_pass": len(fail_to_pass(measured.start, measured.reference)),
                **written.notes,
            },
        )

    def dropped(self, reason: str, detail: str) -> Dropped:
        """The lead, given up."""
        return Dropped(lead=self.lead, reason=reason, detail=" ".join(detail.split())[:500])


def only_new(generated: Tree, tree: Tree) -> Tree:
    """What a build made that the project does not have itself."""
    return generated.select(lambda path: path not in tree.by_path)
