from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.errors import SandboxError
from envsynth.models import FileMode, Tree, TreeEntry, canonical_json
from envsynth.runtime import trees
from envsynth.runtime.trees import Entry, load_manifest, materialise


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def keep(cache: Cache, *entries: tuple[str, str, bytes]) -> Tree:
    return Tree(
        entries=tuple(
            TreeEntry(path=path, mode=FileMode(mode), blob=cache.put(content), size=len(content))
            for path, mode, content in entries
        )
    )


def test_both_sides_lay_a_tree_out_in_one_place(cache: Cache) -> None:
    tree = keep(cache, ("é/a.py", "file", b"1"), ("run", "executable", b"2"), ("link", "symlink", b"run"))
    manifest = load_manifest(cache.put_tree(tree), cache.get)
    folder = materialise(manifest, cache.get, cache.root)
    assert folder == cache.materialise(tree)
    assert (folder / "é/a.py").read_bytes() == b"1"
    assert (folder / "run").stat().st_mode & 0o777 == 0o755
    assert (folder / "link").readlink() == Path("run")
    assert not list((cache.root / "scratch").iterdir())


def test_the_canonical_texts_are_the_same() -> None:
    value = {"b": [1, "é\u2028", None], "a": {"y": 1.5, "x": True}}
    assert trees.canonical_json(value) == canonical_json(value)


@pytest.mark.parametrize("paths", [["../x"], ["/x"], ["a//b"], ["a", "a/b"], ["a\0"]])
def test_a_tree_that_would_leave_its_folder_is_refused(cache: Cache, paths: list[str]) -> None:
    entries = [{"path": path, "mode": "symlink", "blob": cache.put(b"/"), "size": 1} for path in paths]
    digest = cache.put(json.dumps({"entries": entries}).encode())
    with pytest.raises(SandboxError, match="a tree of the task cannot be read"):
        load_manifest(digest, cache.get)


def test_missing_and_damaged_contents_leave_no_folder(cache: Cache) -> None:
    manifest = {"a": Entry("file", "0" * 64, 1)}
    with pytest.raises(SandboxError, match="cannot be laid out"):
        materialise(manifest, cache.get, cache.root)
    with pytest.raises(SandboxError, match="damaged"):
        materialise(manifest, lambda _: b"x", cache.root)
    assert not (cache.root / "trees").exists()
    assert not list((cache.root / "scratch").iterdir())
    with pytest.raises(SandboxError, match="cannot be read"):
        load_manifest("0" * 64, cache.get)
