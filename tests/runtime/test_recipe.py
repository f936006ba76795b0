"""Environments: identity, mounts, variables, and rebuilding without a registry."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.errors import ConfigError, SandboxError
from envsynth.models import FileMode, Recipe, Tree, TreeEntry
from envsynth.runtime import installer
from envsynth.runtime.contract import SandboxSpec
from envsynth.runtime.recipe import (
    ensure_environment,
    environment_covers,
    environment_id,
    environment_mounts,
    environment_variables,
    look_closely,
)
from envsynth.runtime.scripts import make_relocatable
from envsynth.sandbox.local import LocalBackend

RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"


def recipe(cache: Cache, files: dict[str, str], **fields: object) -> Recipe:
    entries = tuple(
        TreeEntry(path=path, mode=FileMode.FILE, blob=cache.put(text.encode()), size=len(text))
        for path, text in files.items()
    )
    site = cache.put_tree(Tree(entries=entries)) if entries else None
    settings = {"language": "python", "interpreter": RUNNING, "requirements": (), "newest": "2024-01-01", "site": site}
    return Recipe.model_validate(settings | fields)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_the_id_is_the_models_digest(cache: Cache) -> None:
    one = recipe(cache, {}, requires=">=3.8 # é")
    assert environment_id(one.document()) == one.digest()


def test_equal_pins_are_one_environment_however_they_were_asked_for(cache: Cache) -> None:
    one = recipe(cache, {}, requirements=("six==1.17.0",))
    assert one.model_copy(update={"newest": "2020-02-02", "requires": ">=3.9"}).digest() == one.digest()
    assert one.model_copy(update={"requirements": ("six==1.16.0",)}).digest() != one.digest()


def test_build_reuse_and_scripts(cache: Cache) -> None:
    files = {
        "tool-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n",
        "tool-1.0.dist-info/entry_points.txt": "[console_scripts]\nthe-tool = tool:main\nodd = not a target\n",
        "tool.py": "def main():\n    print('hello')\n",
    }
    one = recipe(cache, files, requirements=("tool==1.0",))
    notes: list[str] = []
    place = ensure_environment(one.document(), cache.get, cache.root, note=notes.append)
    assert place == cache.root / "environments" / one.digest()
    assert ensure_environment(one.document(), cache.get, cache.root, note=notes.append) == place
    assert len(notes) == 1
    moved = place.parent / "moved"
    moved.symlink_to(place)
    done = subprocess.run([str(moved / "bin/the-tool")], capture_output=True, check=True)
    assert done.stdout == b"hello\n"
    assert not (place / "bin/odd").exists()
    assert list(place.glob("lib/python3*/site-packages/__pycache__/tool.*.pyc"))


def test_a_half_built_environment_is_built_again(cache: Cache) -> None:
    one = recipe(cache, {})
    half = cache.root / "environments" / one.digest()
    half.mkdir(parents=True)
    (half / "rubbish").write_text("")
    place = ensure_environment(one.document(), cache.get, cache.root, note=lambda _: None)
    assert not (place / "rubbish").exists()
    assert (place / "bin/python").exists()
    assert [path.name for path in place.parent.iterdir() if not path.name.endswith(".lock")] == [one.digest()]


@pytest.mark.parametrize("damage", ["cut", "removed", "added", "byte code", "marker"])
def test_a_damaged_environment_is_built_again(cache: Cache, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    one = recipe(cache, {"tool.py": "print('hello')\n"})
    notes: list[str] = []
    place = ensure_environment(one.document(), cache.get, cache.root, note=notes.append)
    (tool,) = place.glob("lib/python3*/site-packages/tool.py")
    (compiled,) = tool.parent.glob("__pycache__/tool.*.pyc")
    match damage:
        case "cut":
            tool.write_text("")
        case "removed":
            tool.unlink()
        case "added":
            (tool.parent / "more.py").write_text("")
        case "byte code":
            compiled.write_bytes(compiled.read_bytes()[:20])
        case "marker":
            (place / ".envsynth-ready").write_text("")
    assert ensure_environment(one.document(), cache.get, cache.root, note=notes.append) == place
    assert len(notes) == 1, "looked over once a process"
    monkeypatch.setattr("envsynth.runtime.recipe._known_whole", set())
    assert ensure_environment(one.document(), cache.get, cache.root, note=notes.append) == place
    assert notes[1:] == [f"environment {place.name[:12]} is damaged and is built again", notes[0]]
    assert tool.read_text() == "print('hello')\n"
    assert not (tool.parent / "more.py").exists()


def test_damage_that_keeps_every_size_is_found_where_nothing_starts(cache: Cache) -> None:
    one = recipe(cache, {"tool.py": "print('hello')\n"})
    notes: list[str] = []
    place = ensure_environment(one.document(), cache.get, cache.root, note=notes.append)
    (tool,) = place.glob("lib/python3*/site-packages/tool.py")
    assert look_closely(place) == ""
    tool.write_text("print('HELLO')\n")
    assert "damaged and is built again" in look_closely(place)
    assert look_closely(place) == "", "said once"
    assert ensure_environment(one.document(), cache.get, cache.root, note=notes.append) == place
    assert tool.read_text() == "print('hello')\n"
    assert look_closely(place) == ""


def test_byte_code_of_others_is_no_damage(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    one = recipe(cache, {"tool.py": ""})
    notes: list[str] = []
    place = ensure_environment(one.document(), cache.get, cache.root, note=notes.append)
    (folder,) = place.glob("lib/python3*/site-packages/__pycache__")
    (folder / "tool.cpython-311-pytest-8.0.0.pyc").write_text("")
    monkeypatch.setattr("envsynth.runtime.recipe._known_whole", set())
    ensure_environment(one.document(), cache.get, cache.root, note=notes.append)
    assert len(notes) == 1


def test_an_interpreter_that_is_not_installed(cache: Cache) -> None:
    with pytest.raises(ConfigError, match=r"Python 3\.99 is not installed.*Next: install it"):
        ensure_environment(recipe(cache, {}, interpreter="3.99").document(), cache.get, cache.root, note=print)


def test_mounts_reach_the_interpreter_through_every_link(tmp_path: Path) -> None:
    real = tmp_path / "pythons/3.11.9"
    (real / "bin").mkdir(parents=True)
    (real / "bin/python3.11").write_text("")
    (tmp_path / "pythons/3.11").symlink_to("3.11.9")
    environment = tmp_path / "env"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python3").symlink_to(tmp_path / "pythons/3.11/bin/python3.11")
    (environment / "bin/python").symlink_to("python3")
    found = {mount.target: mount.source for mount in environment_mounts(environment)}
    assert found == {
        "/env": environment,
        str(tmp_path / "pythons/3.11"): tmp_path / "pythons/3.11",
        str(real): real,
    }
    (environment / "bin/python").unlink()
    (environment / "bin/python").symlink_to("/usr/bin/python3")
    assert {mount.target for mount in environment_mounts(environment)} == {"/env"}


def test_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    layer = tmp_path / "layer"
    layer.mkdir()
    mounts = environment_mounts(Path(sys.prefix))
    sandbox = LocalBackend().open(SandboxSpec(layers=(layer,), mounts=mounts, scratch=tmp_path))
    try:
        found = environment_variables(sandbox, {"roots": ["src", "."], "variables": [["TZ", "Asia/Seoul"]]})
        assert found["PATH"].startswith(sandbox.path("/env") + "/bin:")
        assert found["PYTHONPATH"] == os.pathsep.join([f"{sandbox.workdir}/src", sandbox.workdir])
        assert (found["TZ"], found["PYTHONHASHSEED"], found["LANG"]) == ("Asia/Seoul", "0", "C.UTF-8")
        assert "SECRET_OF_THE_HOST" not in found
    finally:
        sandbox.close()


def test_absolute_interpreter_lines_become_relocatable(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    (tmp_path / "tool").write_text(f"#!{tmp_path}/python3.11\nprint('ran')\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "shell").write_text("#!/bin/sh\n")
    make_relocatable(tmp_path)
    assert subprocess.run([str(tmp_path / "tool")], capture_output=True, check=True).stdout == b"ran\n"
    assert (tmp_path / "shell").read_text() == "#!/bin/sh\n"


def test_an_installer_that_hangs_is_retryable() -> None:
    with pytest.raises(SandboxError, match="no end after") as caught:
        installer.run([sys.executable, "-c", "import threading; threading.Event().wait()"], 0.5, "hung")
    assert caught.value.retryable


def test_an_unreachable_registry_is_named(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    # Port 9 of the own machine answers nobody; no name is looked up.
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    one = recipe(cache, {}, requirements=("no-such-distribution==1.0",))
    with pytest.raises(SandboxError, match=r"package registry: .*cannot be reached") as caught:
        ensure_environment(one.document(), cache.get, cache.root, note=lambda _: None)
    assert caught.value.retryable
    assert not (cache.root / "environments" / one.digest()).exists()


@pytest.mark.network
def test_neither_uv_nor_pip_is_needed(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(installer, "find_uv", lambda: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name))
    one = recipe(cache, {}, requirements=("iniconfig==2.0.0",))
    place = ensure_environment(one.document(), cache.get, cache.root, note=lambda _: None)
    done = subprocess.run([str(place / "bin/python"), "-c", "import iniconfig"], check=False)
    assert done.returncode == 0


def test_without_any_installer_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "find_uv", lambda: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(sys, "_base_executable", "false", raising=False)
    with pytest.raises(SandboxError, match=r"neither uv nor pip.*Next: install one of them"):
        installer.install_wheels(tmp_path, ["iniconfig==2.0.0"])


def test_the_interpreters_own_libraries_are_covered(tmp_path: Path) -> None:
    library = tmp_path / "python/lib/python3.99"
    (library / "site-packages").mkdir(parents=True)
    (library / "ensurepip/_bundled").mkdir(parents=True)
    (tmp_path / "python/bin").mkdir()
    (tmp_path / "python/bin/python3").touch()
    (tmp_path / "environment/bin").mkdir(parents=True)
    (tmp_path / "environment/bin/python").symlink_to(tmp_path / "python/bin/python3")
    assert environment_covers(tmp_path / "environment") == (
        str(library / "site-packages"), str(library / "ensurepip/_bundled"),
    )  # fmt: skip
    assert [mount.source for mount in environment_mounts(tmp_path / "environment")][1:] == [tmp_path / "python"]
