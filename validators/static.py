"""`static`: what can be seen without running anything."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence

from envsynth.judging import verdict_of
from envsynth.models import Candidate, FileMode, Finding, Role, Source, Tree, Verdict, VerdictStatus, role_of
from envsynth.protocols import Context
from envsynth.runtime.trees import leads_out
from envsynth.timing import Stopwatch
from envsynth.validators.leakage.secrets import EMAIL, secrets_of_tree

__all__ = ["Static"]

_HASH = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,40}\b")
MIN_INSTRUCTION = 60
"""Characters; less is a title."""


class Static:
    """Documents, SQL, paths, instruction text, licence and secrets."""

    name = "static"
    version = "2"
    order = 10

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """FAIL on the first kind of finding that makes the candidate unusable; the rest is noted."""
        watch = Stopwatch()
        start = context.blobs.get_tree(candidate.workspace.tree)
        hidden = context.blobs.get_tree(candidate.workspace.hidden)
        changes = context.blobs.get_tree(candidate.solution.changes)
        demanded = b"\n".join(context.blobs.get(entry.blob) for entry in hidden.entries)
        fatal = [*_instruction(candidate, demanded), *_queries(candidate), *_reference(candidate, start, changes)]
        for tree in (start, hidden, changes):
            fatal += _links(tree, context.blobs.get)
        noted = [] if candidate.provenance.licence_files else [
            Finding(rule="no_licence_file", message="the tree holds no licence text")
        ]  # fmt: skip
        for finding in dict.fromkeys(_secrets(candidate, (start, hidden, changes), context)):
            (fatal if finding.rule == "secret_in_tree" else noted).append(finding)
        evidence = {"files": len(start.entries), "bytes": start.size, "hidden_files": len(hidden.entries)}
        status = VerdictStatus.FAIL if fatal else VerdictStatus.PASS
        return verdict_of(self, status, (*fatal, *noted), watch, evidence=evidence)


def _instruction(candidate: Candidate, demanded: bytes) -> Iterator[Finding]:
    """Length, addresses, and hashes; a hash that the hidden tests hold too is a value they demand."""
    text = candidate.instruction
    if len(text.strip()) < MIN_INSTRUCTION:
        yield Finding(rule="instruction_too_short", message=f"{len(text.strip())} characters")
    address = EMAIL.search(text)
    if address and address.group().encode() not in demanded:
        yield Finding(rule="instruction_has_email", message=address.group())
    for found in _HASH.finditer(text):
        if found.group().encode() not in demanded:
            yield Finding(rule="instruction_has_hash", message=found.group())


def _queries(candidate: Candidate) -> Iterator[Finding]:
    from envsynth.runtime.episode_db import validate_sql

    for check in candidate.verifier.checks:
        error = validate_sql(check.sql)
        if error:
            yield Finding(rule="check_sql_invalid", message=error, where=check.id)
    for criterion in candidate.verifier.rubric:
        for sql, single in ((criterion.sql, True), (criterion.evidence, False)):
            error = validate_sql(sql, single_value=single) if sql or not single else ""
            if error:
                yield Finding(rule="criterion_sql_invalid", message=error, where=criterion.id)


def _reference(candidate: Candidate, start: Tree, changes: Tree) -> Iterator[Finding]:
    if not changes.entries and not candidate.solution.removed:
        yield Finding(rule="reference_empty", message="the reference changes nothing")
    for entry in changes.entries:
        role = role_of(entry.path, candidate.workspace.roles)
        if role in (Role.TEST, Role.CONFIG) and entry.path not in candidate.workspace.allowed:
            yield Finding(rule="reference_changes_tests", message=f"a {role} file", where=entry.path)
        if start.by_path.get(entry.path) == entry:
            yield Finding(rule="reference_unchanged_file", message="equal to the start tree", where=entry.path)


def _links(tree: Tree, get: Callable[[str], bytes]) -> Iterator[Finding]:
    for entry in tree.entries:
        if entry.mode is FileMode.SYMLINK and leads_out(entry.path, os.fsdecode(get(entry.blob))):
            yield Finding(rule="link_leads_out", message="a symbolic link leaves the tree", where=entry.path)


def _secrets(candidate: Candidate, trees: Sequence[Tree], context: Context) -> Iterator[Finding]:
    """Credentials in anything that would travel with the task, each place once."""
    for tree in trees:
        yield from secrets_of_tree(tree, context.blobs.get, candidate.workspace.roles)
