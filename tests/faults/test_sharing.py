"""Two builds at once, signals, a damaged or read-only cache, and a clock that jumps."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def test_two_builds_at_once_on_one_catalog(lab: Any, undisturbed_one: Path, tmp_path: Path) -> None:
    first = lab.start(tmp_path, "--limit", "1")
    assert '"source"' in first.stdout.readline()  # the catalog is open
    second = lab.build(tmp_path, "--limit", "1")
    assert second.code == 3
    assert f"the catalog is in use (process {first.pid}" in second.line
    assert "Next: wait for it to end" in second.line
    assert lab.end(first).code == 0
    assert lab.content(tmp_path) == lab.content(undisturbed_one)


def test_two_builds_at_once_on_one_cache(lab: Any, undisturbed: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    processes = [lab.start(folder, "--cache", str(tmp_path / "cache"), "--jobs", "2") for folder in folders]
    for process, folder in zip(processes, folders, strict=True):
        assert lab.end(process).code == 0
        assert lab.content(folder) == lab.content(undisturbed)
        assert lab.pack(folder) == lab.pack(undisturbed)


def test_one_lead_on_several_processors_comes_to_the_same(lab: Any, undisturbed_one: Path, tmp_path: Path) -> None:
    assert lab.build(tmp_path, "--limit", "1", "--jobs", "3").code == 0
    assert lab.content(tmp_path) == lab.content(undisturbed_one)
    assert lab.pack(tmp_path) == lab.pack(undisturbed_one)


@pytest.mark.parametrize(
    ("to", "jobs"), [("SIGTERM main", "1"), ("SIGTERM group", "2"), ("SIGINT main", "2"), ("SIGINT group", "2")]
)
def test_an_interrupted_build_says_so(lab: Any, undisturbed: Path, tmp_path: Path, to: str, jobs: str) -> None:
    name, whom = to.split()
    process = lab.start(tmp_path, "--jobs", jobs)
    while json.loads(process.stdout.readline())["event"] != "lead":
        pass
    (os.killpg if whom == "group" else os.kill)(process.pid, getattr(signal, name))
    ended = lab.end(process, timeout=30)
    assert ended.code == 130, ended
    assert ended.line.startswith("envsynth: interrupted; finished work is kept")
    assert lab.survivors(tmp_path) == []
    known = lab.statuses(tmp_path)
    assert "admitted" in known.values()
    assert lab.build(tmp_path).report["reused"] >= 1
    assert lab.content(tmp_path) == lab.content(undisturbed)


# --- the cache -----------------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scramble(path: Path) -> None:
    path.write_bytes(random.Random(path.name).randbytes(max(1, path.stat().st_size)))


def remove(path: Path) -> None:
    path.unlink()


KINDS = {
    "blobs": "blobs/*/*", "results": "results/*/*/*", "trees": "trees/*/**/*", "environments": "environments/*/**/*",
    "ready": "environments/*/.envsynth-ready", "clones": "clones/*/**/*", "locks": "locks/*",
}  # fmt: skip


@pytest.fixture(scope="session")
def used_cache(lab: Any, undisturbed_one: Path) -> Path:
    return undisturbed_one / "cache"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", [cut, scramble, remove], ids=lambda damage: damage.__name__)
def test_a_damaged_cache(
    lab: Any, undisturbed_one: Path, used_cache: Path, tmp_path: Path, kind: str, damage: Callable[[Path], None]
) -> None:
    """Every entry of one kind is damaged between two builds; nothing of it reaches the catalog."""
    shutil.copytree(used_cache, tmp_path / "cache", symlinks=True)
    damaged = [path for path in (tmp_path / "cache").glob(KINDS[kind]) if path.is_file() and not path.is_symlink()]
    assert damaged
    for path in damaged:
        path.chmod(0o644)
        damage(path)
    ended = lab.build(tmp_path, "--limit", "1")
    if ended.code:  # a damage met in the middle may end one build with a reason, but no more than one
        assert ended.code == 3, ended
        print(kind, damage.__name__, ended.err or ended.told("error"))
        ended = lab.build(tmp_path, "--limit", "1")
    assert ended.code == 0, ended
    assert lab.content(tmp_path) == lab.content(undisturbed_one)


def test_a_cache_that_cannot_be_written(lab: Any, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        (tmp_path / "file").write_text("")
        ended = lab.build(tmp_path, "--cache", str(tmp_path / "file"))
    else:
        (tmp_path / "cache").mkdir(0o500)
        ended = lab.build(tmp_path)
    assert ended.code == 2
    assert "the cache cannot be written" in ended.line
    assert "--cache" in ended.line
