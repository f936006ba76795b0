"""Packs for Harbor: what task directories hold, and what Harbor's own trials make of them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
import tiny_attacks as attacks
import tiny_task as tiny
from pack_files import files_of, task_directories

from envsynth.cache import Cache
from envsynth.errors import ExportError
from envsynth.exporters._target_env import interpreter_of
from envsynth.exporters.harbor import Harbor
from envsynth.exporters.replay import replay


def exported(cache: Cache, out: Path, **options: str) -> Path:
    return Harbor().export([tiny.make_task(cache), tiny.make_task(cache, ref="b" * 10)], cache, out, options)


def test_a_pack_is_the_same_bytes_each_time(cache: Cache, tmp_path: Path) -> None:
    pack = exported(cache, tmp_path / "one" / "shop-tasks")
    assert files_of(pack) == files_of(exported(cache, tmp_path / "two" / "shop-tasks"))
    assert json.loads((pack / "manifest.json").read_text())["format"] == "harbor"
    assert "$" not in (pack / "README.md").read_text()
    for directory in task_directories(pack):
        assert set(files_of(directory)) == {
            "task.toml", "instruction.md", "environment/Dockerfile", "environment/runtime.zip",
            "environment/contents.zip", "environment/task.json", "tests/Dockerfile", "tests/test.sh",
            "tests/runtime.zip", "tests/contents.zip", "tests/task.json", "solution/solve.sh", "solution/changes.tar",
        }  # fmt: skip


def test_the_configuration_keeps_agent_and_grader_apart(cache: Cache, tmp_path: Path) -> None:
    (first, _) = task_directories(exported(cache, tmp_path / "shop-tasks", org="acme"))
    told = tomllib.loads((first / "task.toml").read_text())
    assert told["schema_version"] == "1.4"
    assert told["task"]["name"] == f"acme/{first.name}"
    assert told["artifacts"] == ["/workspace"]
    assert told["verifier"]["environment_mode"] == "separate"
    assert told["agent"]["user"] == "agent"
    assert told["environment"]["network_mode"] == told["verifier"]["environment"]["network_mode"] == "no-network"
    assert told["metadata"]["task_id"] == first.name
    assert "percentage" in (first / "instruction.md").read_text()


def test_the_dataset_names_tasks_by_digests_of_their_files(cache: Cache, tmp_path: Path) -> None:
    pack = exported(cache, tmp_path / "shop-tasks")
    named = {line["name"]: line["digest"] for line in tomllib.loads((pack / "dataset.toml").read_text())["tasks"]}
    assert len(named) == 2
    for directory in task_directories(pack):
        digest = hashlib.sha256()
        for path, content in sorted(files_of(directory).items()):
            digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
        assert named[f"envsynth/{directory.name}"] == f"sha256:{digest.hexdigest()}"


def unpacked(folder: Path) -> bytes:
    """Every byte of a folder's files, archives opened."""
    everything = []
    for name, content in files_of(folder).items():
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                everything += [archive.read(inside) for inside in archive.namelist() if "_envsynth" not in inside]
        else:
            everything.append(content)
    return b"\n".join(everything)


def test_the_agents_image_is_made_of_nothing_hidden(cache: Cache, tmp_path: Path) -> None:
    for directory in task_directories(exported(cache, tmp_path / "shop-tasks")):
        shown, kept = unpacked(directory / "environment"), unpacked(directory / "tests")
        assert tiny.BROKEN.encode() in shown
        for secret in (b"(100 - discount)", b"test_discount", b"fail_to_pass", b"controls", b"reference"):
            assert secret not in shown
            assert secret in kept
        dockerfile = (directory / "environment" / "Dockerfile").read_text()
        last = dockerfile.rpartition("\nFROM ")[2]
        assert "COPY --from=build /build/environment /env" in last
        assert "contents.zip" not in last


def test_an_old_interpreter_has_the_runtimes_own_beside_it(cache: Cache, tmp_path: Path) -> None:
    task = attacks.with_recipe(tiny.make_task(cache), interpreter="3.8")
    (directory,) = task_directories(Harbor().export([task], cache, tmp_path / "shop-tasks", {}))
    for part in ("environment", "tests"):
        dockerfile = (directory / part / "Dockerfile").read_text()
        assert "FROM python:3.8-bookworm" in dockerfile
        assert "COPY --from=runtime /usr/local /opt/python" in dockerfile
        assert "/opt/python/bin/python3 -m _envsynth.runtime.container" in dockerfile


def test_the_base_image_can_be_another(cache: Cache, tmp_path: Path) -> None:
    (first, _) = task_directories(exported(cache, tmp_path / "shop-tasks", base="mine:{python}@sha256:1"))
    version = tiny.recipe().interpreter
    assert f"FROM mine:{version}@sha256:1 AS build" in (first / "environment" / "Dockerfile").read_text()
    assert f"FROM mine:{version}@sha256:1\n" in (first / "tests" / "Dockerfile").read_text()


def test_what_cannot_be_held_is_a_line(cache: Cache, tmp_path: Path) -> None:
    for image in ("tasks:{task}", "tasks:{part}", "tasks:{part}-{tsk}"):
        with pytest.raises(ExportError, match="does not name one image for each part of each task"):
            exported(cache, tmp_path / "a", image=image)
    task = tiny.make_task(cache)
    checks = (*tiny.CHECKS, tiny.Check(id="looked", sql="SELECT count(*) > 0 FROM trace"))
    verifier = task.candidate.verifier.model_copy(update={"checks": checks})
    asking = task.model_copy(update={"candidate": task.candidate.model_copy(update={"verifier": verifier})})
    with pytest.raises(ExportError, match="'looked' asks for an episode's calls"):
        Harbor().export([asking], cache, tmp_path / "b", {})
    with pytest.raises(ExportError, match="cannot be an organisation"):
        exported(cache, tmp_path / "c", org="a/b")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def tried(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack to be run by Harbor, which is installed where it is missing."""
    if os.geteuid() != 0:
        pytest.skip("namespaces of Harbor's trials need root")
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    return Harbor().export([attacks.attacked(cache)], cache, tmp_path_factory.mktemp("harbor") / "shop-tasks", {})


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.usefixtures("targets_kept")
def test_harbors_own_agents_and_linter(tried: Path) -> None:
    code = (
        "import json\nfrom pathlib import Path\nfrom harbor.lint.task import lint_task\n"
        "from harbor.models.trial.config import AgentConfig\nfrom harbor.publisher.packager import Packager\n"
        "from shop_tasks.through import TASKS, run\n"
        "(task,) = TASKS.iterdir()\n"
        "told = {name: run(task.name, AgentConfig(name=name)) for name in ('oracle', 'nop')}\n"
        "told['findings'] = [one.rule for one in lint_task(task)]\n"
        "told['digest'] = Packager.compute_content_hash(task)[0]\n"
        "print(json.dumps(told))\n"
    )
    done = subprocess.run(
        [str(interpreter_of("harbor")), "-c", code], cwd=tried, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["oracle"] == {"reward": 1.0, "outcome": 1.0, "gate": 1.0} | {
        f"check.{check.id}": 1.0 for check in tiny.CHECKS
    }
    assert (told["nop"]["reward"], told["nop"]["check.fail_to_pass"], told["nop"]["gate"]) == (0.0, 0.0, 1.0)
    # Whose digest an image has is for who exports to say, with the option `base`.
    assert set(told["findings"]) <= {"unpinned-image"}
    assert f"sha256:{told['digest']}" in (tried / "dataset.toml").read_text()


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.usefixtures("targets_kept")
def test_the_panel_earns_the_same_in_harbors_trials_and_no_attack_anything(
    tried: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    report = replay(tried, target="harbor")
    assert report.trouble == ""
    assert [line for line in report.lines if line.verdict != "same" or line.error] == []
    got = {line.label: line.got for line in report.lines}
    assert got.keys() == {"reference", "idle", "alternative", "attack:grader", *attacks.FORGERY}
    assert {label for label, reward in got.items() if reward} == {"reference", "alternative"}
