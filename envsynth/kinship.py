"""What two sets of tasks have in common whatever it is called: for splits that must not leak into each other.

The catalog's view `trait` compares names: of a draw, of a company, of a repository. Here contents are compared. Of
repositories: their addresses in any spelling, their commits, and the files that tasks start from, so that a fork or a
clone is known. Of worlds: their columns of numbers and dates without any name, scaled, so that a draw in another skin,
another money or another family is known. Of solutions: what they change.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import unquote

from envsynth.catalog.reports import Shared
from envsynth.errors import ExportError, boundary
from envsynth.models import Role, Task, WorldRef, digest_of, role_of
from envsynth.protocols import BlobStore

__all__ = ["LIKE", "Kin", "address", "kin_of", "numbers", "shared"]

LIKE = 0.9
"""Share of the smaller world's numbers that two worlds must have in common.

Of 3,484 tasks of mechanisms, different draws had at most 0.81 in common, and the presentations of one all; of 1,592
worlds of companies, those of different ones had at most 0.31, and those of one all.
"""
_LEAST_NUMBERS = 8
"""Worlds of fewer numbers are only compared whole."""
_FORK, _NAMESAKE = 0.2, 0.05
"""Share of the smaller repository's files that two repositories must have in common; where both are called the same."""
_LEAST_FILES, _LEAST_BYTES = 3, 200
"""Fewer common files, and smaller ones, mean nothing."""
_COMMENTS = (b"#", b"//", b"/*", b"*", b"--", b"<!--")
_TREES = 5
"""Start trees that are read of a repository."""
_SAME_NAMES = 0.4
"""Share of the names of tables, columns and tools that two worlds of one skin have in common at least.

In 243 pairs of skin and presentation: 0.63 or more of one skin, 0.12 or less of different ones.
"""
_FIGURES = re.compile(r"[\d :+./T-]+")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@]*@)?(?:www\.)?([^/:]*)(?::\d+)?/")
_SCP = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)")

_Labelled = Mapping[tuple[str, str], Counter[str]]
"""Numbers of worlds, by trait and label."""


class _Repository(NamedTuple):
    name: str
    spellings: frozenset[str]
    task: str
    commits: frozenset[str]
    files: frozenset[str]


class Kin(NamedTuple):
    """What a set of tasks is compared by; values name a task."""

    references: Mapping[str, str]
    """Digests of what reference solutions change."""
    repositories: Mapping[str, _Repository]
    """By address."""
    worlds: Mapping[tuple[str, str], tuple[str, Counter[str]]]
    """By trait and label, with their numbers."""
    skins: Mapping[str, tuple[str, frozenset[str]]]
    """Of mechanisms, by family and skin, with all names in a world."""


def kin_of(tasks: Iterable[Task], blobs: BlobStore) -> Kin:
    """Read what tasks are compared by; one world of each draw and company, a few trees of each repository.

    Raises:
        ExportError: a content is missing.
    """
    references: dict[str, str] = {}
    by_address: dict[str, list[Task]] = defaultdict(list)
    worlds: dict[tuple[str, str], tuple[str, Counter[str]]] = {}
    skins: dict[str, tuple[str, frozenset[str]]] = {}
    for task in sorted(tasks, key=lambda task: task.id):
        candidate = task.candidate
        if isinstance(candidate.environment, WorldRef):
            label = _label(task)
            if label not in worlds:
                with boundary(ExportError, "the task's world is missing", where=task.id):
                    document = json.loads(blobs.get(candidate.environment.world))
                    worlds[label] = (task.id, numbers(document["rows"]))
                    if "skin" in candidate.metadata:
                        skin = f"{candidate.metadata.get('family')} {candidate.metadata['skin']}"
                        skins.setdefault(skin, (task.id, _names(document)))
            continue
        by_address[address(candidate.provenance.lead.source)].append(task)
        if candidate.reference is not None:
            changed = digest_of([candidate.reference.changes, sorted(candidate.reference.removed)])
            references.setdefault(changed, task.id)
            references.setdefault(candidate.reference.patch, task.id)
    repositories = {where: _repository(found, blobs) for where, found in by_address.items()}
    return Kin(references, repositories, worlds, skins)


def _names(world: Mapping[str, Any]) -> frozenset[str]:
    columns = (column["name"] for table in world["tables"] for column in table["columns"])
    return frozenset([*columns, *(named["name"] for kind in ("tables", "tools") for named in world[kind])])


def _label(task: Task) -> tuple[str, str]:
    """Trait and name of what a world was made for; worlds with equal ones are compared by the catalog."""
    candidate, lead = task.candidate, task.candidate.provenance.lead
    if lead.generator == "business" and lead.group:
        return "company", f"{lead.name} {lead.seed} {lead.group}"
    if "mechanism" in candidate.metadata:
        return "mechanism", str(candidate.metadata["mechanism"])
    return "world", candidate.world.world


def _repository(tasks: Sequence[Task], blobs: BlobStore) -> _Repository:
    provenances = [task.candidate.provenance for task in tasks]
    commits = {commit for one in provenances for commit in (one.base_commit, one.reference_commit) if commit}
    contents: set[str] = set()
    for task in tasks[:: -(-len(tasks) // _TREES)]:
        workspace = task.candidate.workspace
        with boundary(ExportError, "a tree of the task is missing", where=task.id):
            entries = blobs.get_tree(workspace.tree).entries
        contents |= {
            entry.blob for entry in entries
            if entry.size >= _LEAST_BYTES and role_of(entry.path, workspace.roles) in (Role.SOURCE, Role.TEST)
        }  # fmt: skip
    with boundary(ExportError, "a content of the task is missing", where=tasks[0].id):
        texts = (_text(blobs.get(content)) for content in sorted(contents))
        files = frozenset(blake2b(text, digest_size=16).hexdigest() for text in texts if len(text) >= _LEAST_BYTES)
    spellings = frozenset(one.lead.source for one in provenances)
    return _Repository(provenances[0].lead.name, spellings, tasks[0].id, frozenset(commits), files)


def _text(content: bytes) -> bytes:
    """A file without what a fork changes in every one: comments of whole lines, such as licences, and white space."""
    lines = (b"".join(line.split()) for line in content.splitlines())
    return b"\n".join(line for line in lines if line and not line.startswith(_COMMENTS))


def address(source: str) -> str:
    """A repository's address in one spelling: without scheme, login, port, revision, ending, and in small letters."""
    text = re.sub(r"(?<=[^/])@[^@/:]*$", "", unquote(source.strip())).lower()
    text = re.sub(r"^file:/*(?:localhost/)?", "/", text)
    text = re.sub(r"^pypi:([^=]*)==.*", r"pypi:\1", text)
    text = _SCHEME.sub(r"\1/", text) if "://" in text else _SCP.sub(r"\1/", text)
    text = re.sub(r"/+", "/", re.sub(r"(?<=/)\./", "", text)).rstrip("/")
    return re.sub(r"(/\.git|\.git|\.bundle)$", "", text)


def numbers(rows: Mapping[str, Sequence[Sequence[Any]]]) -> Counter[str]:
    """A world's columns of numbers and dates, each with its length, by a digest of what stands in it.

    Names are not part of it, and amounts are shares of the largest, so that another money is the same. Columns that
    count up, or say one thing only, are left out: every world has such.
    """
    found: Counter[str] = Counter()
    for table in rows.values():
        for column in zip(*table, strict=False):
            values = _scaled(column)
            if values:
                found[blake2b(json.dumps(values).encode(), digest_size=8).hexdigest()] += len(values)
    return found


def _scaled(column: Sequence[Any]) -> list[Any]:
    """The column as it is compared; empty where it tells nothing."""
    told = [value for value in column if value is not None]
    if len(set(told)) < 2:
        return []
    if all(isinstance(value, str) and _FIGURES.fullmatch(value) for value in told):
        return list(column)
    if not all(isinstance(value, int | float) for value in told):
        return []
    if len(told) == len(column) and len({round(after - before, 9) for before, after in pairwise(told)}) < 2:
        return []
    most = max(map(abs, told))
    return [None if value is None else round(value / most, 9) for value in column]


def shared(one: Kin, two: Kin) -> Iterator[Shared]:
    """What two sets of tasks have in common; what the catalog finds by equal names is left out."""
    for digest in sorted(one.references.keys() & two.references.keys()):
        if one.references[digest] != two.references[digest]:
            yield Shared("near-duplicate", "same reference", one.references[digest], two.references[digest])
    for where, mine in sorted(one.repositories.items()):
        for there, other in sorted(two.repositories.items()):
            why = "another spelling" if where == there else _related(mine, other)
            if why and mine.spellings.isdisjoint(other.spellings):
                yield Shared("repository", f"{where} = {there} ({why})", mine.task, other.task)
    for skin, (task, names) in sorted(one.skins.items()):
        for other_skin, (other_task, other_names) in sorted(two.skins.items()):
            if skin != other_skin and len(names & other_names) >= _SAME_NAMES * len(names | other_names):
                yield Shared("skin", f"{skin} = {other_skin} (same names)", task, other_task)
    yield from _like_worlds(one, two)


def _related(one: _Repository, two: _Repository) -> str:
    """Why two repositories are one, or of one descent; empty where they are not."""
    if one.commits & two.commits:
        return "same commits"
    common, smaller = len(one.files & two.files), min(len(one.files), len(two.files))
    needed = _NAMESAKE if one.name == two.name else _FORK
    return f"{common} same files" if common >= max(_LEAST_FILES, needed * smaller) else ""


def _like_worlds(one: Kin, two: Kin) -> Iterator[Shared]:
    ones = {label: counted for label, (_, counted) in one.worlds.items() if counted.total() >= _LEAST_NUMBERS}
    twos = {label: counted for label, (_, counted) in two.worlds.items() if counted.total() >= _LEAST_NUMBERS}
    for mine, other in sorted(_pairs(ones, twos)):
        alike = (ones[mine] & twos[other]).total() / min(ones[mine].total(), twos[other].total())
        if alike >= LIKE and mine != other:
            trait = mine[0] if mine[0] == other[0] else "near-duplicate"
            value = f"{mine[1]} = {other[1]} ({alike:.0%} of the numbers)"
            yield Shared(trait, value, one.worlds[mine][0], two.worlds[other][0])


def _pairs(ones: _Labelled, twos: _Labelled) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs that may be alike, without comparing all.

    Of worlds with a share of `LIKE` in common, the rarest columns of the smaller one, as many as make up more than the
    rest, must have one that the larger has too.
    """
    often = Counter(column for labelled in (ones, twos) for counted in labelled.values() for column in counted)
    having_one, having_two = _having(ones), _having(twos)
    found = {(mine, other) for mine, counted in ones.items() for column in _rarest(counted, often)
             for other in having_two[column]}  # fmt: skip
    return found | {(mine, other) for other, counted in twos.items() for column in _rarest(counted, often)
                    for mine in having_one[column]}  # fmt: skip


def _having(labelled: _Labelled) -> Mapping[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for label, counted in labelled.items():
        for column in counted:
            found[column].append(label)
    return found


def _rarest(counted: Counter[str], often: Mapping[str, int]) -> Iterator[str]:
    enough, weight = (1 - LIKE) * counted.total(), 0
    for column in sorted(counted, key=lambda column: (often[column], column)):
        yield column
        weight += counted[column]
        if weight > enough:
            return
