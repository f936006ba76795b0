"""Repositories made on the spot, and a context that runs their tests without a sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.errors import EnvsynthError
from envsynth.generators.repository import Repository, candidates
from envsynth.generators.repository.authored import Brief
from envsynth.generators.repository.instruction import Written
from envsynth.llm import Client
from envsynth.llm import Role as ModelRole
from envsynth.models import (
    Cost,
    Digest,
    Lead,
    Origin,
    Recipe,
    Role,
    RoleRule,
    Source,
    SourceKind,
    SourceOptions,
    TestCommand,
    TestRecord,
    TestRun,
    Tree,
    Workspace,
)
from envsynth.protocols import Prepared
from envsynth.runtime.contract import Backend

ROLES = (
    RoleRule(pattern=r"(^|/)(conftest\.py|pyproject\.toml|setup\.py|setup\.cfg|tox\.ini)$", role=Role.CONFIG),
    RoleRule(pattern=r"(^|/)tests?/|(^|/)test_[^/]*\.py$", role=Role.TEST),
    RoleRule(pattern=r"^docs/", role=Role.OTHER),
    RoleRule(pattern=r"\.py$|^pkg/", role=Role.SOURCE),
)


class Repo:
    """A repository under construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        clean |= {
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_DATE": "2024-05-01T12:00:00Z",
            "GIT_COMMITTER_DATE": "2024-05-01T12:00:00Z", "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
        }  # fmt: skip
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments], cwd=self.path, env=clean, input=stdin,
            capture_output=True, check=True,
        )  # fmt: skip
        return done.stdout

    def commit(self, message: str, files: dict[str, str | bytes | None]) -> str:
        """Write files (None removes one) and commit everything."""
        for name, content in files.items():
            target = self.path / name
            if content is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-F", "-", stdin=message.encode())
        return self.git("rev-parse", "HEAD").decode().strip()


class FakeLanguage:
    """Python without an environment: the tiny runner, in the interpreter that runs the tests."""

    name = "python"
    version = "1"

    def __init__(self) -> None:
        self.refuse: EnvsynthError | None = None
        self.asked: list[tuple[str, str]] = []

    def detect(self, tree: Tree) -> bool:
        return any(path.endswith(".py") for path in tree.by_path)

    def roles(self) -> tuple[RoleRule, ...]:
        return ROLES

    def prepare(self, tree: Tree, *, newest: str, version_hint: str, source: Source, context: object) -> Prepared:
        self.asked.append((newest, version_hint))
        if self.refuse is not None:
            raise self.refuse
        recipe = Recipe(language="python", interpreter="3.11", requirements=(), newest=newest[:10])
        return Prepared(Path(sys.prefix), recipe, TestCommand(runner="pytest", targets=("tests",)), Tree(), Cost())


class FakeContext:
    """Enough of a context for the generator."""

    offline = False

    def __init__(self, cache_dir: Path) -> None:
        self.cache_dir = cache_dir
        self.blobs = Cache(cache_dir)
        self.python = FakeLanguage()
        self.author: Client | None = None
        self.notes: list[str] = []
        self.ran: list[tuple[str, int]] = []
        self.change: Callable[[TestRun], TestRun] = lambda run: run

    def backend(self, source: Source) -> Backend:
        raise NotImplementedError

    def language(self, name: str) -> FakeLanguage:
        assert name == "python"
        return self.python

    def model(self, role: ModelRole) -> Client | None:
        return self.author if role == "author" else None

    def materialise(self, tree: Tree) -> Path:
        return self.blobs.materialise(tree)

    def remember(self, kind: str, key: Digest, make: Callable[[], str]) -> str:
        return self.blobs.remember(kind, key, make)

    def spent(self, cost: Cost) -> None:
        self.disk_bytes = cost.disk_bytes

    def note(self, message: str) -> None:
        self.notes.append(message)

    def run_tests(self, workspace: Workspace, tree: Tree, state: str, repeat: int, source: Source) -> TestRun:
        self.ran.append((state, repeat))
        hidden = self.blobs.get_tree(workspace.hidden)
        folder = self.cache_dir / "runs" / str(len(self.ran))
        folder.mkdir(parents=True)
        graded = tree.select(lambda path: path.endswith(".py") and "test" not in path).overlay(hidden)
        for entry in graded.entries:
            (folder / entry.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / entry.path).write_bytes(self.blobs.get(entry.blob))
        runner = str(Path(__file__).with_name("tiny_runner.py"))
        files = [path for path in hidden.by_path if path.rpartition("/")[2].startswith("test_")]
        done = subprocess.run([sys.executable, "-B", runner, *files], cwd=folder, capture_output=True, check=True)
        records = tuple(TestRecord.model_validate(one) for one in json.loads(done.stdout))
        return self.change(TestRun(state=state, repeat=repeat, complete=True, exit_code=0, records=records))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


@pytest.fixture
def context(tmp_path: Path) -> FakeContext:
    return FakeContext(tmp_path / "cache")


@pytest.fixture
def source_of() -> Callable[..., Source]:
    def make(
        location: object, *, limit: int | None = None, strategies: tuple[str, ...] = (), revision: str | None = None,
        **extra: str,
    ) -> Source:  # fmt: skip
        return Source(
            uri=str(location), kind=SourceKind.GIT, location=str(location), revision=revision,
            options=SourceOptions(limit=limit, strategies=strategies), extra=tuple(extra.items()),
            origin=Origin(file="list.txt", line=3),
        )  # fmt: skip

    return make


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[[str], Repo]:
    return lambda name: Repo(tmp_path / name)


BEFORE = "def halve(number):\n    return number // 2\n\n\ndef keep(text):\n    return text\n"
AFTER = "def halve(number):\n    exact_half = number / 2\n    return exact_half\n\n\ndef keep(text):\n    return text\n"
TESTS_BEFORE = (
    "from pkg.maths import halve, keep\n\n\ndef test_even():\n    assert halve(4) == 2\n\n\n"
    "def test_keep():\n    assert keep('a') == 'a'\n"
)
TESTS_AFTER = TESTS_BEFORE + "\n\ndef test_odd_numbers():\n    assert halve(7) == 3.5\n"
MESSAGE = """Fix rounding of odd numbers (#12)

halve(7) returned 3, although half of an odd number has a fraction.
The value is now kept in exact_half before it is returned.

Closes #12

Co-authored-by: Somebody <somebody@example.org>
"""


def start_and_fix(repo: Repo) -> Repo:
    """Make a project with one commit that fixes behaviour and comes with a test."""
    repo.commit(
        "start", {"pkg/__init__.py": "", "pkg/maths.py": BEFORE, "tests/test_maths.py": TESTS_BEFORE,
                  "LICENSE": "free\n", "pyproject.toml": '[project]\nname = "Small.Maths"\nversion = "1"\n'},
    )  # fmt: skip
    repo.git("tag", "v1.0")
    repo.commit(MESSAGE, {"pkg/maths.py": AFTER, "tests/test_maths.py": TESTS_AFTER, "CHANGES.md": "- halves\n"})
    return repo


@pytest.fixture
def fixed_repo(repo: Repo) -> Repo:
    """A project with one commit that fixes behaviour and comes with a test."""
    return start_and_fix(repo)


@pytest.fixture(scope="module")
def brief_of_fix(tmp_path_factory) -> Brief:
    """What the instruction of that commit is written from."""
    repo, context = (
        start_and_fix(Repo(tmp_path_factory.mktemp("fix") / "repo")),
        FakeContext(tmp_path_factory.mktemp("c")),
    )
    source = Source(uri="x", kind=SourceKind.GIT, location=str(repo.path), origin=Origin(file="list.txt", line=3))
    briefs: list[Brief] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "instruct", lambda brief, *_: briefs.append(brief) or Written("", "only_looked_at"))
        lead = next(one for one in Repository().plan(source, context) if isinstance(one, Lead))
        Repository().develop(lead, source, context)
    return briefs[0]
