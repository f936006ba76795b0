"""The same tasks, name and version give the same bytes in every format, whatever the order and the process are like."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_task as tiny
import tiny_worlds as worlds
from pack_files import UNLIKE, files_of

from envsynth import plugins
from envsynth.cache import Cache

WRITER = """
import json, sys, time
from pathlib import Path
moment, order, cache, out = float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
begun, real = time.monotonic(), time.localtime
time.time = lambda: moment
time.localtime = lambda seconds=None: real(moment if seconds is None else seconds)
from envsynth import plugins
from envsynth.cache import Cache
from envsynth.models import Task
tasks = [Task.from_json(line) for line in sys.stdin][::order]
for name in plugins.names("exporters")[::order]:
    exporter = plugins.load("exporters", name)()
    held = [task for task in tasks if task.candidate.environment.kind in exporter.kinds]
    exporter.export(held, Cache(cache), out / name / "shop-tasks", {})
"""


@pytest.fixture(scope="session")
def written(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Every format, twice: in processes with another order, hash seed, clock, time zone, language, umask and folder."""
    tasks = [tiny.make_task(cache), tiny.make_task(cache, ref="f" * 10)]
    tasks += [worlds.make_world_task(cache, name) for name in worlds.TASKS]
    documents = "".join(f"{task.to_json()}\n" for task in tasks).encode()
    folders = (tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two") / "deeper" / "still")
    folders[1].mkdir(parents=True)
    settings = zip(folders, UNLIKE, ("1", "-1"), ("1000000000", "2000000000"), (0o022, 0o077), strict=True)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, moment, order, str(cache.root), str(folder)], cwd=folder, umask=umask,
            env={**os.environ, **variables}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for folder, variables, order, moment, umask in settings
    ]  # fmt: skip
    for writer in started:
        told, _ = writer.communicate(documents)
        assert writer.returncode == 0, told.decode()
    return folders


@pytest.mark.slow
@pytest.mark.parametrize("target", plugins.names("exporters"))
def test_neither_order_nor_process_changes_a_byte(target: str, written: tuple[Path, Path]) -> None:
    one, two = (files_of(folder / target / "shop-tasks") for folder in written)
    assert one.keys() == two.keys()
    assert [path for path in one if one[path] != two[path]] == []
    kinds = getattr(plugins.load("exporters", target), "kinds")  # noqa: B009  (no part of the protocol)
    count = 2 * ("workspace" in kinds) + len(worlds.TASKS) * ("world" in kinds)
    assert len(json.loads(one["manifest.json"])["tasks"]) == count
