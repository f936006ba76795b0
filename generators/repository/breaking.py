"""From a revision's functions to candidates whose bug a model made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from envsynth.errors import GeneratorError, boundary
from envsynth.generators.repository.breakable import Sources, python_files, role_book, worth_breaking
from envsynth.generators.repository.candidates import LANGUAGE, Work
from envsynth.generators.repository.config import Settings
from envsynth.generators.repository.drill import Drilled
from envsynth.generators.repository.gitdir import GitDir
from envsynth.generators.repository.history import read_commit
from envsynth.generators.repository.lm_bugs import Broken, Failed, broken_by_model, require_author, unified
from envsynth.generators.repository.split import Split, TreeReader
from envsynth.generators.repository.transplant import place_of
from envsynth.generators.repository.trial import Bench, bench_of
from envsynth.models import Candidate, Dropped, Lead, RoleRule, Source, Tree, digest_of
from envsynth.protocols import Context

__all__ = ["Revision", "breakable_functions", "broken_candidate", "in_turn", "place_in"]


class Revision(NamedTuple):
    """A commit of a clone."""

    git: GitDir
    oid: str


def breakable_functions(
    revision: Revision, rules: Sequence[RoleRule], settings: Settings, seed: str, remember: Callable[..., str]
) -> list[tuple[str, str]]:
    """Path and qualified name of each function of a revision that is worth breaking, in the order to try them."""

    def look() -> str:
        files = python_files(revision.git, revision.oid, rules)
        tests = {
            path: text
            for path, text in files.tests.items()
            if not settings.tests
            or any(path == one or path.startswith(one.rstrip("/") + "/") for one in settings.tests)
        }
        return json.dumps(worth_breaking(Sources(files.source, tests), seed))

    key = digest_of([revision.oid, [rule.document() for rule in rules], list(settings.tests), seed, "1"])
    return [(path, name) for path, name in json.loads(remember("breakable-functions", key, look))]


def in_turn(plans: Sequence[Iterable[Lead | Dropped]], limit: int) -> Iterator[Lead | Dropped]:
    """The leads of several strategies, one of each in turn, numbered; the end comes with the last one of the limit."""
    left, index = limit, 0
    waiting = [iter(plan) for plan in plans]
    while waiting:
        for plan in list(waiting):
            for found in plan:
                lead = found.lead if isinstance(found, Dropped) else found
                numbered = lead.model_copy(update={"index": index})
                index += 1
                if isinstance(found, Dropped):
                    yield found.model_copy(update={"lead": numbered})
                    continue
                yield numbered
                left -= 1
                if not left:
                    return
                break
            else:
                waiting.remove(plan)


def place_in(ref: str) -> tuple[str, str]:
    """Path and qualified name of a lead's function."""
    name, _, path = ref.partition(":")
    return path, name


def broken_candidate(
    lead: Lead, source: Source, context: Context, settings: Settings, git: GitDir, reader: TreeReader
) -> Candidate | Dropped:
    """Have a model break the function of a lead, and make a candidate of it.

    Raises:
        ConfigError: there is no author.
        ModelError: the model's answer is no use, or there was none.
        SandboxError: the environment failed.
    """
    client = require_author(lead.strategy, source, context)
    path, name = place_in(lead.ref)
    rules = context.language(LANGUAGE).roles()
    with boundary(GeneratorError, "the revision cannot be read", where=f"{lead.name} {lead.ref}"):
        commit = read_commit(git, lead.revision)._replace(message="")
        parts = _whole(reader, lead.revision, rules)
    work = Work(lead, source, context, settings, git, commit, parts, Drilled((name,), same_code=False))
    entry = parts.fixed.by_path.get(path)
    text = None if entry is None else _utf8(context.blobs.get(entry.blob))
    place = None if text is None else place_of(path, text, name)
    if place is None:
        return work.dropped("function_not_replaceable", f"{name} in {path} has no lines of its own")
    bench = bench_of(work)
    if isinstance(bench, Dropped):
        return bench
    broken = broken_by_model(client, lead.strategy, place, bench)
    if isinstance(broken, Failed):
        return work.dropped(broken.reason, broken.detail)
    return _candidate(work, bench, path, broken)


def _candidate(work: Work, bench: Bench, path: str, broken: Broken) -> Candidate | Dropped:
    """The task: the broken file without the tests that tell, and the file as it was as the solution."""
    parts = work.parts
    _, name = place_in(work.lead.ref)
    tests = bench.test_files(broken.tried.broken)
    start = bench.with_file(path, broken.text).select(parts.fixed.by_path.__contains__).without(tests)
    changes = parts.fixed.select(path.__eq__)
    right = _utf8(work.context.blobs.get(parts.fixed.by_path[path].blob)) or ""
    task = Work(
        work.lead, work.source, work.context, work.settings, work.git, work.commit,
        parts._replace(start=start, changes=changes, tests=tuple(tests)), work.drilled,
        patch=unified(path, broken.text, right),
    )  # fmt: skip
    made = task.candidate()
    if isinstance(made, Dropped):
        return made
    about = {
        "title": work.lead.title, "bug_by": broken.model, "bug": broken.fault, "repairs": broken.repairs,
        "broken_tests": len(broken.tried.broken),
    }  # fmt: skip
    hint = f"The fault is in the function `{name}` of `{path}`."
    return made.model_copy(update={"hint": made.hint or hint, "metadata": {**made.metadata, **about}})


def _whole(reader: TreeReader, revision: str, rules: Sequence[RoleRule]) -> Split:
    """A revision as it is: nothing is changed yet, and the grader has its tests and its configuration."""
    read = reader.read(revision)
    files = read.tree.by_path
    role = role_book(tuple(files), lambda path: reader.text(files[path]), rules)
    return Split(
        role=role, parent=revision, start=read.tree, fixed=read.tree, hidden=read.tree.select(role.graded),
        changes=Tree(), removed=(), tests=(), left_out=read.left_out, touched_left_out=(),
    )  # fmt: skip


def _utf8(content: bytes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None
