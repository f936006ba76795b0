"""kill -9 anywhere: what had finished stays, the rest is made again, and nothing is counted twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

CACHE, CATALOG, CLONES = "envsynth.cache", "envsynth.catalog.store", "envsynth.generators.repository.clones"
RECIPE, TREES, FOLDER = "envsynth.runtime.recipe", "envsynth.runtime.trees", "envsynth.exporters._folder"


def point(module: str, attribute: str, when: str = "before", number: int = 1, match: str = "") -> dict[str, Any]:
    return {"module": module, "attribute": attribute, "when": when, "number": number, "match": match}


# In the order in which a build comes by them; each kill leaves its folder to the next build.
STAGES = [
    point("envsynth.catalog._connection", "_migrate", "after"),
    point(CATALOG, "Catalog.begin_build"),
    point(CATALOG, "Catalog.begin_build", "after"),
    point(CLONES, "Clones._clone"),
    point("pathlib", "Path.rename", match="clones"),
    point(CLONES, "Clones._clone", "after"),
    point(CACHE, "Cache.keep", match="'history'"),
    point(CACHE, "Cache.keep", "after", match="'history'"),
    point(CATALOG, "Catalog.record_source"),
    point(CATALOG, "Catalog.record_source", "after"),
    point(CATALOG, "Catalog.record"),
    point(CATALOG, "Catalog.record", "after"),
    point(RECIPE, "make_venv", "after"),
    point(RECIPE, "_compile", "after"),
    point(RECIPE, "seal", "after"),
    point("pathlib", "Path.rename", "after", match="environments"),
    point(TREES, "_write", "after"),
    point(CACHE, "Cache.keep", match="'python-solution'"),
    point(CACHE, "Cache.keep", "after", match="'python-solution'"),
    point("envsynth.work", "judge"),
    point(CACHE, "Cache.keep", match="'test-runs'"),
    point(CACHE, "Cache.keep", "after", number=2, match="'test-runs'"),
    point("envsynth.admission", "admit", "after"),
    point(CATALOG, "Catalog._record", number=1),
    point(CATALOG, "Catalog._record", "after", number=1),
    point(CATALOG, "Catalog.record", "after", number=1),
    point(CATALOG, "Catalog.record", "after", number=2),
    point("envsynth.pipeline", "_Build._report"),
    point("envsynth.exporters._package", "write_pack"),
    point(FOLDER, "_swap"),
    point(FOLDER, "_swap", "after"),
    point("pathlib", "Path.rename", "after", match="-old-"),
    point(CATALOG, "Catalog.end_build"),
    point(CATALOG, "Catalog.end_build", "after"),
]


def never_less(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """What was settled is settled as it was."""
    assert before.items() <= after.items()
    return after


def test_killed_at_every_stage(lab: Any, undisturbed: Path, tmp_path: Path) -> None:
    known: dict[str, str] = {}
    for number, stage in enumerate(STAGES):
        ended = lab.build(tmp_path, fault=stage | {"mark": str(tmp_path / f"struck-{number}")})
        assert ended.code == -signal.SIGKILL, (stage, ended)
        known = never_less(known, lab.statuses(tmp_path))
    assert lab.build(tmp_path).report["reused"] == len(known) - 1
    assert lab.content(tmp_path) == lab.content(undisturbed)
    assert lab.pack(tmp_path) == lab.pack(undisturbed)
    assert left_over(tmp_path / "cache") == []


def left_over(cache: Path) -> list[str]:
    """What half-done work has left in a cache."""
    halves = [*cache.glob("scratch/*"), *cache.glob("clones/new-*"), *cache.rglob(".new-*")]
    halves += [path for path in (cache / "environments").iterdir() if path.is_dir() and "-" in path.name]
    return sorted(str(path.relative_to(cache)) for path in halves)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_after_each_line(lab: Any, undisturbed: Path, tmp_path: Path, jobs: str) -> None:
    known: dict[str, str] = {}
    for lines in range(1, 40):
        process = lab.start(tmp_path, "--jobs", jobs)
        told = [process.stdout.readline() for _ in range(lines)]
        os.killpg(process.pid, signal.SIGKILL) if lines % 2 else process.kill()
        process.communicate()
        if not told[-1]:
            break
        known = never_less(known, lab.statuses(tmp_path))
    assert lab.build(tmp_path).code == 0
    assert lab.content(tmp_path) == lab.content(undisturbed)
    assert lab.pack(tmp_path) == lab.pack(undisturbed)


def children(process: int) -> Iterator[int]:
    """Worker processes: direct children that run Python code of ours."""
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    yield int(child)
    except (FileNotFoundError, ProcessLookupError):
        return


def strike(whom: str, process: subprocess.Popen[str], moments: random.Random) -> bool:
    """Kill the whole process group, the main process alone, or one worker as soon as there is one."""
    if whom != "worker":
        os.killpg(process.pid, signal.SIGKILL) if whom == "group" else process.kill()
        return True
    while process.poll() is None:
        if workers := list(children(process.pid)):
            os.kill(moments.choice(workers), signal.SIGKILL)
            return True
        process_ended_within(process, 0.02)
    return False


def process_ended_within(process: subprocess.Popen[str], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_twenty_kills_at_random_moments(lab: Any, undisturbed: Path, tmp_path: Path) -> None:
    """A build that comes to its end between two kills is compared, and another one is begun."""
    moments = random.Random(3)
    struck = dict.fromkeys(("worker", "main", "group"), 0)
    builds, known = 1, {}
    while sum(struck.values()) < 20:
        whom = min(struck, key=lambda name: struck[name])
        folder = tmp_path / str(builds)
        process = lab.start(folder, "--jobs", "2")
        if not process_ended_within(process, moments.uniform(0.5, 4)):
            struck[whom] += strike(whom, process, moments)
        ended = lab.end(process)
        assert ended.code == 0 if whom == "worker" else ended.code in (0, -signal.SIGKILL), (whom, ended)
        known = never_less(known, lab.statuses(folder))
        assert lab.survivors(folder) == []
        if ended.code == 0:
            assert lab.content(folder) == lab.content(undisturbed)
            assert lab.pack(folder) == lab.pack(undisturbed)
            builds, known = builds + 1, {}
    folder = tmp_path / str(builds)
    assert lab.build(folder).code == 0
    assert lab.content(folder) == lab.content(undisturbed)
    assert lab.pack(folder) == lab.pack(undisturbed)


def test_a_worker_that_dies_between_two_units_costs_none(lab: Any, undisturbed: Path, tmp_path: Path) -> None:
    """Killed while the main process records: the next unit is refused by a broken pool, and must not be lost."""
    process = lab.start(tmp_path, "--jobs", "2")
    while json.loads(process.stdout.readline())["event"] != "lead":
        pass
    for worker in children(process.pid):
        os.kill(worker, signal.SIGKILL)
    assert lab.end(process).code == 0
    assert lab.content(tmp_path) == lab.content(undisturbed)
