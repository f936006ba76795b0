"""Disks that are full, small or read-only: the cause is named, and with room again the same build is made."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Disk = Callable[[Path, int], None]


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Puts a disk of so many kilobytes at a folder, or gives the one that is there another size."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount")
    mounted: list[Path] = []

    def make(place: Path, kilobytes: int) -> None:
        place.mkdir(parents=True, exist_ok=True)
        options = f"size={kilobytes}k" + (",remount" if place in mounted else "")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=False)
        if done.returncode != 0:
            pytest.skip("this machine lets nobody mount")
        if place not in mounted:
            mounted.append(place)

    yield make
    for place in mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


# A whole build takes about 1.3 MB of cache, 5 MB of catalog and 0.4 MB of pack.
@pytest.mark.parametrize(
    ("where", "kilobytes"),
    [("cache", 20), ("cache", 120), ("cache", 200), ("cache", 260), ("out", 100), (".", 900)],
)
def test_a_disk_that_fills_up(
    lab: Any, undisturbed_one: Path, tmp_path: Path, disk: Disk, where: str, kilobytes: int
) -> None:
    folder = tmp_path / "folder"
    disk(folder / where, kilobytes)
    options = () if where != "." else ("--cache", str(tmp_path / "cache"), "--out", str(folder / "out"))
    ended = lab.build(folder, "--limit", "1", *options)
    assert ended.code == 3, ended
    assert "no space left on the disk" in ended.line
    assert str(folder) in ended.line
    disk(folder / where, 200_000)
    assert lab.build(folder, "--limit", "1", *options).code == 0
    assert lab.content(folder) == lab.content(undisturbed_one)
    assert lab.pack(folder) == lab.pack(undisturbed_one)


@pytest.mark.parametrize("kilobytes", [40, 30_000])
def test_a_full_folder_for_temporary_files(
    lab: Any, undisturbed_one: Path, tmp_path: Path, disk: Disk, kilobytes: int
) -> None:
    disk(tmp_path / "tmp", kilobytes)
    ended = lab.build(tmp_path, "--limit", "1", TMPDIR=str(tmp_path / "tmp"))
    assert ended.code == 3, ended
    assert "no space left on the disk" in ended.line
    assert str(tmp_path / "tmp") in ended.line
    disk(tmp_path / "tmp", 500_000)
    assert lab.build(tmp_path, "--limit", "1", TMPDIR=str(tmp_path / "tmp")).code == 0
    assert lab.content(tmp_path) == lab.content(undisturbed_one)


def test_a_cache_on_a_read_only_disk(lab: Any, undisturbed_one: Path, tmp_path: Path, disk: Disk) -> None:
    disk(tmp_path / "cache", 20_000)
    shutil.copytree(undisturbed_one / "cache", tmp_path / "cache", symlinks=True, dirs_exist_ok=True)
    subprocess.run(["mount", "-o", "remount,ro", str(tmp_path / "cache")], check=True)
    ended = lab.build(tmp_path, "--limit", "1")
    assert ended.code == 2, ended
    assert "the cache cannot be written (Read-only file system" in ended.line
    assert "--cache" in ended.line
    subprocess.run(["mount", "-o", "remount,rw", str(tmp_path / "cache")], check=True)
    assert lab.build(tmp_path, "--limit", "1").code == 0
    assert lab.content(tmp_path) == lab.content(undisturbed_one)
