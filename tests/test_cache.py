from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.cache import Cache, remove_folder
from envsynth.errors import DiskFull, EnvsynthError, boundary
from envsynth.models import FileMode, Tree, TreeEntry
from envsynth.runtime import trees


def read_tree(folder: Path, put: Callable[[bytes], str]) -> Tree:
    """The tree of a host folder's regular files and links."""
    entries = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            content, mode = os.fsencode(path.readlink()), FileMode.SYMLINK
        elif path.is_file():
            content = path.read_bytes()
            mode = FileMode.EXECUTABLE if path.stat().st_mode & 0o100 else FileMode.FILE
        else:
            continue
        name = path.relative_to(folder).as_posix()
        entries.append(TreeEntry(path=name, mode=mode, blob=put(content), size=len(content)))
    return Tree(entries=tuple(entries))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def make_tree(cache: Cache) -> Tree:
    files = {"a.py": (b"print(1)\r\n", FileMode.FILE), "bin/run": (b"#!/bin/sh\n", FileMode.EXECUTABLE),
             "link": (b"bin/run", FileMode.SYMLINK), "-rf": (b"\xff\x00", FileMode.FILE)}  # fmt: skip
    return Tree(entries=tuple(
        TreeEntry(path=path, mode=mode, blob=cache.put(content), size=len(content))
        for path, (content, mode) in files.items()
    ))  # fmt: skip


def test_blob_round_trip_and_unknown_digest(cache: Cache) -> None:
    assert cache.get(cache.put(b"\x00content")) == b"\x00content"
    with pytest.raises(KeyError):
        cache.get("0" * 64)


@pytest.mark.parametrize("damage", [b"", b"not zlib", b"\x78\x01\x03\x00\x00\x00\x00\x01"])
def test_a_corrupt_blob_counts_as_none_and_can_be_made_again(cache: Cache, damage: bytes) -> None:
    digest = cache.put(b"precious")
    (file,) = [path for path in (cache.root / "blobs").rglob("*") if path.is_file()]
    file.write_bytes(damage)
    with pytest.raises(KeyError):
        cache.get(digest)
    assert cache.put(b"precious") == digest
    assert cache.get(digest) == b"precious"


def test_a_corrupt_blob_is_written_again_before_anybody_reads_it(cache: Cache) -> None:
    digest = cache.put(b"precious")
    (file,) = [path for path in (cache.root / "blobs").rglob("*") if path.is_file()]
    file.write_bytes(b"not zlib")
    again = Cache(cache.root)  # another process
    assert again.put(b"precious") == digest
    assert again.get(digest) == b"precious"


def test_materialised_tree_is_the_tree(cache: Cache) -> None:
    tree = make_tree(cache)
    folder = cache.materialise(tree)
    assert read_tree(folder, cache.put) == tree
    assert os.access(folder / "bin/run", os.X_OK)
    assert cache.materialise(tree) == folder


@pytest.mark.parametrize("damage", ["truncated", "removed", "added", "mode"])
def test_a_damaged_folder_of_a_tree_is_made_again(cache: Cache, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    tree = make_tree(cache)
    folder = cache.materialise(tree)
    if damage == "truncated":
        (folder / "a.py").write_bytes(b"")
    elif damage == "removed":
        (folder / "link").unlink()
    elif damage == "added":
        (folder / "new.py").write_bytes(b"")
    else:
        (folder / "bin/run").chmod(0o644)
    monkeypatch.setattr(trees, "_WHOLE", set())  # another process
    assert read_tree(cache.materialise(tree), cache.put) == tree


def test_a_corrupt_result_counts_as_none(cache: Cache) -> None:
    cache.keep("kind", "k" * 8, "text")
    assert cache.recall("kind", "k" * 8) == "text"
    (file,) = [path for path in (cache.root / "results").rglob("*") if path.is_file()]
    file.write_bytes(file.read_bytes()[:-1])
    assert cache.recall("kind", "k" * 8) is None


def _count(root: str, log: str) -> None:
    def make() -> str:
        with Path(log).open("a") as file:
            file.write("made\n")
        return "text"

    assert Cache(Path(root)).remember("kind", "key-of-work", make) == "text"


def test_remember_makes_once_for_many_processes(cache: Cache, tmp_path: Path) -> None:
    log = tmp_path / "log"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_count, args=(str(cache.root), str(log))) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert log.read_text() == "made\n"


def test_an_unwritable_cache_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvsynthError, match="the cache cannot be written") as caught:
        Cache(tmp_path / "file" / "cache")
    assert str(tmp_path / "file" / "cache") in str(caught.value)
    assert "--cache DIR" in caught.value.next_step
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_full_disk_is_named_whoever_meets_it() -> None:
    with pytest.raises(DiskFull), boundary(EnvsynthError, "anything"):
        raise OSError(28, "No space left on device", "file")


def test_a_killed_writer_leaves_no_entry(cache: Cache) -> None:
    program = (
        "import os, sys; from pathlib import Path; from envsynth.cache import Cache\n"
        "cache = Cache(Path(sys.argv[1])); Path.replace = lambda *_: os._exit(9)\n"
        "cache.keep('kind', 'key-of-work', 'text')"
    )
    done = subprocess.run([sys.executable, "-c", program, str(cache.root)], check=False)
    assert done.returncode == 9
    assert cache.recall("kind", "key-of-work") is None


def test_remove_folder_takes_read_only_parts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").write_text("")
    inner.chmod(0o500)
    remove_folder(tmp_path / "a")
    assert not (tmp_path / "a").exists()


PATHS = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1).filter(
    lambda p: p not in (".", "..")
)


@given(
    st.dictionaries(PATHS, st.binary(max_size=5), max_size=6), st.dictionaries(PATHS, st.binary(max_size=5), max_size=6)
)
def test_overlay_and_without_are_inverse_enough(lower: dict[str, bytes], upper: dict[str, bytes]) -> None:
    def tree(files: dict[str, bytes]) -> Tree:
        return Tree(entries=tuple(
            TreeEntry(path=path, mode=FileMode.FILE, blob=content.hex().ljust(64, "0"), size=len(content))
            for path, content in files.items()
        ))  # fmt: skip

    both = tree(lower).overlay(tree(upper))
    assert both == tree({**lower, **upper})
    assert both.without(upper) == tree(lower).without(upper)
    assert Tree.from_json(both.to_json()) == both


@pytest.mark.parametrize("path", ["/etc/passwd", "../out", "a/../../b", "a//b", "./a", "a/\0"])
def test_a_tree_refuses_paths_that_lead_out(path: str) -> None:
    with pytest.raises(ValueError, match="not a relative path"):
        TreeEntry(path=path, mode=FileMode.FILE, blob="0" * 64, size=0)
