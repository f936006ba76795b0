from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tiny_task as tiny

from envsynth.cache import Cache
from envsynth.errors import ExportError
from envsynth.exporters._folder import manifest_bytes, write_pack
from envsynth.exporters.gymnasium import Gymnasium
from envsynth.models import Strength, Task


def export(cache: Cache, out: Path, *tasks: Task, **options: str) -> Path:
    return Gymnasium().export(tasks or [tiny.make_task(cache)], cache, out, options)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(code: str, pack: Path, **variables: str) -> str:
    """Run Python in a process that sees the pack and not this project."""
    blocker = "import sys; sys.modules['envsynth'] = None\n"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = [sys.executable, "-W", "error", "-c", blocker + code]
    done = subprocess.run(command, cwd=pack, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_same_tasks_give_the_same_bytes(cache: Cache, tmp_path: Path) -> None:
    tasks = [tiny.make_task(cache, ref=ref) for ref in ("aaaa", "bbbb")]
    first = export(cache, tmp_path / "one" / "shop-tasks", *tasks)
    second = export(cache, tmp_path / "two" / "shop-tasks", *reversed(tasks))
    assert contents(first) == contents(second)


def test_the_manifest_names_tasks_and_every_file(cache: Cache, tmp_path: Path) -> None:
    strength = Strength(attacks=40, attacks_worked=0, mutants=8, killed=6)
    task = tiny.make_task(cache).model_copy(update={"strength": strength})
    pack = export(cache, tmp_path / "shop-tasks", task)
    manifest = json.loads((pack / "manifest.json").read_text())
    assert (manifest["name"], manifest["package"], manifest["format"]) == ("shop-tasks", "shop_tasks", "gymnasium")
    (line,) = manifest["tasks"]
    assert (line["id"], line["sha256"], line["tier"]) == (task.id, task.digest(), "verified")
    assert Strength.model_validate(line["strength"]) == strength
    files = contents(pack)
    del files["manifest.json"]
    assert manifest["files"] == {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    (licence,) = manifest["licences"]
    assert files[licence["path"]].decode() == tiny.START["LICENSE"]
    stored = json.loads((pack / "shop_tasks/hidden/tasks.jsonl").read_text())
    assert [stored["task"].pop("panel"), stored["task"]["candidate"].pop("panel")] == [[], []]  # once, beside it
    kept = json.loads(task.to_json())
    del kept["panel"], kept["candidate"]["panel"]
    assert stored["task"] == kept
    lines = [json.loads(line) for line in (pack / "panel.jsonl").read_text().splitlines()]
    assert {line["label"]: line["calls"] for line in lines} == {
        line.label: [call.document() for call in line.calls] for line in task.panel
    }


def test_what_an_agent_may_see_holds_no_test_and_no_solution(cache: Cache, tmp_path: Path) -> None:
    package = export(cache, tmp_path / "shop-tasks") / "shop_tasks"
    visible = (package / "tasks.jsonl").read_text()
    assert json.loads(visible).keys() == {"id", "kind", "instruction", "tools", "budget", "reward"}
    with zipfile.ZipFile(package / "blobs.zip") as archive:
        seen = b"".join(archive.read(name) for name in archive.namelist())
    with zipfile.ZipFile(package / "hidden/blobs.zip") as archive:
        kept = b"".join(archive.read(name) for name in archive.namelist())
    for secret in (tiny.FIXED, tiny.HIDDEN["tests/test_prices.py"]):
        assert secret.encode() not in seen
        assert secret.encode() in kept
    assert tiny.BROKEN.encode() in seen


def test_contents_are_stored_once_for_all_tasks(cache: Cache, tmp_path: Path) -> None:
    tasks = [tiny.make_task(cache, ref=f"{number:04}") for number in range(20)]
    one = export(cache, tmp_path / "one", tasks[0])
    many = export(cache, tmp_path / "many", *tasks)
    assert (many / "many/blobs.zip").read_bytes() == (one / "one/blobs.zip").read_bytes()


def test_the_panel_has_calls_and_rewards(cache: Cache, tmp_path: Path) -> None:
    pack = export(cache, tmp_path / "shop-tasks", tiny.make_task(cache, turns=1))
    lines = [json.loads(line) for line in (pack / "panel.jsonl").read_text().splitlines()]
    assert [(line["label"], line["outcome"], line["reward"]) for line in lines] == [
        ("idle", 0.0, 0.0), ("reference", 1.0, 0.0),
    ]  # fmt: skip
    assert lines[0]["calls"] == [tiny.SUBMIT]


def test_the_vendored_runtime_needs_nothing_of_the_project(cache: Cache, tmp_path: Path) -> None:
    pack = export(cache, tmp_path / "shop-tasks")
    code = (
        "import importlib, pkgutil, shop_tasks._envsynth as root\n"
        "names = [m.name for m in pkgutil.walk_packages(root.__path__, 'shop_tasks._envsynth.')]\n"
        "for name in names:\n"
        "    if '.harness.' not in name: importlib.import_module(name)\n"
        "print(len(names), 'pydantic' in sys.modules)"
    )
    count, pydantic = run(code, pack).split()
    assert int(count) > 20
    assert pydantic == "False"


def test_tasks_are_registered_when_the_package_is_imported(cache: Cache, tmp_path: Path) -> None:
    task = tiny.make_task(cache)
    pack = export(cache, tmp_path / "shop-tasks", task)
    code = (
        "import gymnasium as gym, shop_tasks\n"
        f"one = gym.make('shop_tasks:{task.id}-v0')\n"
        f"two = gym.make('shop_tasks:shop_tasks/Task-v0', task='{task.id}')\n"
        "import pickle; one = pickle.loads(pickle.dumps(one))\n"
        "print(one.unwrapped.task_id, two.unwrapped.task_id, [t['id'] for t in shop_tasks.tasks()])\n"
        "try: gym.make('shop_tasks:shop_tasks/Task-v0', task='nope')\n"
        "except Exception as exc: print(exc)"
    )
    first, second = run(code, pack).splitlines()
    assert first == f"{task.id} {task.id} ['{task.id}']"
    assert "there is no task 'nope' in this pack" in second


@pytest.mark.sandbox
def test_a_task_is_played_through_gymnasium(cache: Cache, tmp_path: Path) -> None:
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    task = tiny.make_task(cache)
    pack = export(cache, tmp_path / "shop-tasks", task)
    code = (
        f"import json, gymnasium as gym\nenv = gym.make('shop_tasks:{task.id}-v0')\n"
        "observation, info = env.reset(seed=3)\nprint(json.dumps(observation['text']))\n"
        f"env.step(json.dumps({tiny.SOLVE!r}))\n"
        f"observation, reward, terminated, truncated, info = env.step(json.dumps({tiny.SUBMIT!r}))\n"
        "print(reward, terminated, truncated, info['grade']['checks'])\n"
        "assert env.render() is None\nenv.close()"
    )
    instruction, end = run(code, pack, ENVSYNTH_CACHE=str(cache.root)).splitlines()
    assert json.loads(instruction) == task.candidate.instruction
    assert end == f"1.0 True False {dict.fromkeys(('fail_to_pass', 'pass_to_pass', 'controls', 'no_tampering'), True)}"


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize("how", ["{}", "{'vector_kwargs': {'context': 'spawn'}}"], ids=["default", "spawn"])
def test_tasks_are_played_in_asynchronous_vectors(cache: Cache, tmp_path: Path, how: str) -> None:
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    task = tiny.make_task(cache)
    pack = export(cache, tmp_path / "shop-tasks", task)
    look = {"tool": "bash", "arguments": {"command": "cat LICENSE; echo é"}}
    code = (
        "import json, gymnasium as gym\n"
        f"envs = gym.make_vec('shop_tasks:{task.id}-v0', 2, vectorization_mode='async', **{how})\n"
        "observation, info = envs.reset(seed=3)\nprint(json.dumps(observation['text']))\n"
        f"observation, *_ = envs.step((json.dumps({look!r}), json.dumps({tiny.SOLVE!r})))\n"
        "print(json.dumps(observation['text']))\n"
        f"observation, reward, *_ = envs.step((json.dumps({tiny.SUBMIT!r}),) * 2)\n"
        "print(json.dumps(list(reward)))\nenvs.close()"
    )
    texts, answers, rewards = map(json.loads, run(code, pack, ENVSYNTH_CACHE=str(cache.root)).splitlines())
    assert texts == [task.candidate.instruction] * 2
    assert f"{tiny.START['LICENSE']}é\n" in answers[0]
    assert answers[1].startswith("written_bytes")
    assert rewards == [0.0, 1.0]


def test_an_earlier_pack_is_replaced_whole_and_nothing_else_is(cache: Cache, tmp_path: Path) -> None:
    out = tmp_path / "shop-tasks"
    export(cache, out)
    left_over = out / "shop_tasks" / "left-over"
    left_over.touch()
    (out / "uv.lock").touch()
    export(cache, out, version="0.2.0")
    assert not left_over.exists()
    assert 'version = "0.2.0"' in (out / "pyproject.toml").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["shop-tasks"]
    with pytest.raises(ExportError, match="something else"):
        export(cache, out, name="other")
    strange = tmp_path / "strange"
    strange.mkdir()
    export(cache, strange)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "link").symlink_to(out)
    for taken in (tmp_path / "full", tmp_path / "full" / "file", tmp_path / "link"):
        with pytest.raises(ExportError, match="something else"):
            export(cache, taken, name="shop-tasks")
    assert (tmp_path / "full" / "file").exists()


def test_what_was_made_beside_an_earlier_pack_is_not_lost(cache: Cache, tmp_path: Path) -> None:
    out = export(cache, tmp_path / "shop-tasks")
    before = contents(out)
    (out / "logs").mkdir()
    (out / "logs" / "run.txt").write_text("hours of it")
    with pytest.raises(ExportError, match=r"would be lost with it \(logs\)") as raised:
        export(cache, out, version="0.2.0")
    assert "\n" not in str(raised.value)
    assert contents(out) == {**before, "logs/run.txt": b"hours of it"}


def test_a_long_name_of_a_folder_is_no_bug(cache: Cache, tmp_path: Path) -> None:
    for _ in ("new", "replaced"):
        assert export(cache, tmp_path / ("ü" * 127), name="shop-tasks").is_dir()
    with pytest.raises(ExportError, match=r"cannot be written .*too long"):
        export(cache, tmp_path / ("a" * 256))


def test_who_writes_last_does_not_take_another_pack_away(cache: Cache, tmp_path: Path) -> None:
    out = export(cache, tmp_path / "shop-tasks")
    before = contents(out)
    with pytest.raises(ExportError, match="something else"):
        write_pack(out, {"manifest.json": manifest_bytes({"name": "shop-tasks", "format": "harbor"})})
    assert contents(out) == before


def test_a_failed_export_leaves_the_earlier_pack(cache: Cache, tmp_path: Path) -> None:
    out = export(cache, tmp_path / "shop-tasks")
    before = contents(out)
    empty = Cache(tmp_path / "empty")
    with pytest.raises(ExportError, match="missing"):
        Gymnasium().export([tiny.make_task(cache)], empty, out, {})
    assert contents(out) == before


@pytest.mark.parametrize("name", ["json", "gymnasium", "Shop", "9lives", "a_b", "class", "../x", "a--b", ""])
def test_a_bad_name_is_refused_and_a_folders_name_is_mended(cache: Cache, tmp_path: Path, name: str) -> None:
    if name:
        with pytest.raises(ExportError, match="cannot be a pack's name"):
            export(cache, tmp_path / "out", name=name)
    mended = export(cache, tmp_path / (name.replace("/", "") or "x") / "9 Lives!")
    assert json.loads((mended / "manifest.json").read_text())["name"] == "pack-9-lives"


def test_what_cannot_be_exported_says_so(cache: Cache, tmp_path: Path) -> None:
    task = tiny.make_task(cache)
    with pytest.raises(ExportError, match="no task to export"):
        Gymnasium().export([], cache, tmp_path / "out", {})
    with pytest.raises(ExportError, match="same id"):
        export(cache, tmp_path / "out", task, task)
    with pytest.raises(ExportError, match="no version"):
        export(cache, tmp_path / "out", version="soon")
    with pytest.raises(ExportError, match="unknown option 'colour'"):
        export(cache, tmp_path / "out", colour="red")
    (tmp_path / "file").touch()
    with pytest.raises(ExportError, match="cannot be written"):
        export(cache, tmp_path / "file" / "out")


@pytest.mark.slow
def test_a_wheel_of_the_pack_holds_everything(cache: Cache, tmp_path: Path) -> None:
    # A folder that version control ignores is the usual place of packs.
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*\n")
    pack = export(cache, tmp_path / "shop-tasks")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=pack, check=True, capture_output=True
    )
    (wheel,) = (pack / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    inside = {path for path in contents(pack) if path.startswith("shop_tasks/") and not path.startswith("dist/")}
    assert inside | {"shop_tasks/panel.jsonl", "shop_tasks/manifest.json"} <= names
