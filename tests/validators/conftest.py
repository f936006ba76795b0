"""A candidate as small as can be, to be changed by each test."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.models import (
    Candidate,
    Check,
    FileMode,
    Lead,
    Origin,
    Provenance,
    Recipe,
    Reference,
    Role,
    RoleRule,
    Source,
    SourceKind,
    TestCommand,
    Tree,
    TreeEntry,
    Verifier,
    Workspace,
)

INSTRUCTION = "The function `mean` divides by zero for an empty list; it should return 0 for nothing at all."
START = {"calc.py": b"def mean(xs): ...\n", "tests/test_old.py": b"", "LICENSE": b"MIT"}


def _load(name: str, folder: Path = Path(__file__).parent) -> None:
    """Make a module beside this file importable by the tests, which are no package."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec
        assert spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])


_load("variants_bench")
_load("worldkit", Path(__file__).parents[1])
_load("world_bench")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


@pytest.fixture
def tree(cache: Cache) -> Callable[..., str]:
    def make(files: dict[str, bytes], mode: FileMode = FileMode.FILE) -> str:
        entries = (
            TreeEntry(path=path, mode=mode, blob=cache.put(content), size=len(content))
            for path, content in files.items()
        )
        return cache.put_tree(Tree(entries=tuple(entries)))

    return make


@pytest.fixture
def candidate(cache: Cache, tree: Callable[..., str]) -> Candidate:
    workspace = Workspace(
        tree=tree(START), hidden=tree({"tests/test_new.py": b"import calc\n"}),
        recipe=Recipe(language="python", interpreter="3.11", requirements=("pytest==9.2.0",), newest="2026-01-01"),
        command=TestCommand(runner="pytest", targets=("tests",)), roles=(RoleRule(pattern="^tests/", role=Role.TEST),),
    )  # fmt: skip
    lead = Lead(generator="repository", generator_version="1", source="x", name="x", revision="r", strategy="history",
                ref="0123456789ab", index=0)  # fmt: skip
    return Candidate(
        instruction=INSTRUCTION, environment=workspace, verifier=Verifier(checks=(Check(id="c", sql="SELECT 1"),)),
        reference=Reference(changes=tree({"calc.py": b"def mean(xs): return 0\n"}), patch=cache.put(b"")),
        provenance=Provenance(lead=lead, licence_files=("LICENSE",)),
    )  # fmt: skip


@pytest.fixture
def source() -> Source:
    return Source(uri="x", kind=SourceKind.GIT, location="/x", origin=Origin(file="--source", line=1))
