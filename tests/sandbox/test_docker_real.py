"""Docker for real: what a killed owner leaves, tests graded as under bubblewrap, and images that need nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import envsynth
from envsynth.errors import SandboxError
from envsynth.runtime.contract import Limits, SandboxSpec
from envsynth.sandbox._docker_client import API, connect, image_id
from envsynth.sandbox._docker_images import Part, build, import_base, listing, prune, pull_base
from envsynth.sandbox._docker_owner import KIND, sweep
from envsynth.sandbox.conformance._support import mark, running
from envsynth.sandbox.docker import DockerBackend

pytestmark = pytest.mark.docker

OWNER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from envsynth.runtime.contract import Limits, SandboxSpec
from envsynth.sandbox.docker import DockerBackend
sandbox = DockerBackend().open(SandboxSpec((), scratch=Path(sys.argv[2])))
sandbox.exec(["sh", "-c", f"setsid sleep {sys.argv[3]} & sleep {sys.argv[3]}"], limits=Limits(wall_s=600))
"""


@pytest.fixture
def backend() -> DockerBackend:
    backend = DockerBackend()
    if reason := backend.unavailable():
        pytest.skip(reason)
    return backend


@pytest.fixture
def api(backend: DockerBackend) -> API:
    return connect().api


def ours(api: API) -> set[str]:
    return {found["Id"] for found in api.containers(all=True, filters={"label": [f"{KIND}=sandbox"]})}


def test_a_killed_owners_container_is_swept(api: API, tmp_path: Path) -> None:
    token, root, before = mark(), str(Path(envsynth.__file__).parent.parent), ours(api)
    with subprocess.Popen([sys.executable, "-c", OWNER, root, str(tmp_path / "scratch"), token]) as owner:
        deadline = time.monotonic() + 60
        while not running(f"sleep\0{token}") and time.monotonic() < deadline:
            os.sched_yield()
        started = running(f"sleep\0{token}")
        assert sweep(api) == 0, "what a living process uses is left alone"
        owner.send_signal(signal.SIGKILL)
    assert started
    assert sweep(api) >= 1
    assert ours(api) <= before
    assert not running(f"sleep\0{token}")


def test_nothing_stays_after_commands(backend: DockerBackend, api: API, tmp_path: Path) -> None:
    before, volumes = ours(api), {found["Name"] for found in api.volumes()["Volumes"] or []}
    sandbox = backend.open(SandboxSpec((), scratch=tmp_path))
    sandbox.exec(["sh", "-c", "sleep 1000 & exit 3"], limits=Limits())
    sandbox.exec(["sleep", "100"], limits=Limits(wall_s=0.5))
    sandbox.close()
    assert ours(api) <= before
    assert {found["Name"] for found in api.volumes()["Volumes"] or []} <= volumes
    assert list(tmp_path.iterdir()) == []


def test_a_command_ends_though_nobody_watches(backend: DockerBackend, api: API, tmp_path: Path) -> None:
    """The first process itself ends a command that its owner should have ended long ago."""
    sandbox = backend.open(SandboxSpec((), scratch=tmp_path))
    token, script = mark(), Path(sandbox._folder.path, "command", "init.sh")
    script.write_text(script.read_text().replace('sleep "$seconds"', "sleep 1"))
    result = sandbox.exec(["sleep", token], limits=Limits(wall_s=30))
    assert (result.exit_code, result.ended_by) == (137, "exit")
    assert not running(token)
    sandbox.close()


def test_a_container_that_cannot_be_made_is_the_environments_fault(backend: DockerBackend, tmp_path: Path) -> None:
    sandbox = backend.open(SandboxSpec((), scratch=tmp_path))
    with pytest.raises(SandboxError, match=r"(?i)memory"):
        sandbox.exec(["true"], limits=Limits(memory_bytes=1))
    sandbox.close()


@pytest.fixture
def tiny_base(api: API, tmp_path: Path) -> Iterator[str]:
    """A base image of almost nothing, made of an archive."""
    (tmp_path / "root/bin").mkdir(parents=True)
    (tmp_path / "root/bin/marker").write_text("base")
    archive = tmp_path / "base.tar"
    subprocess.run(["tar", "-C", str(tmp_path / "root"), "-cf", str(archive), "."], check=True)
    reference = f"envsynth-test:{os.getpid()}"
    yield import_base(api, archive, reference)
    api.remove_image(reference, force=True)


def test_images_share_layers_and_are_listed_with_their_own_size(api: API, tiny_base: str, tmp_path: Path) -> None:
    for name, size in (("environment", 3_000_000), ("task", 1000), ("other", 2000)):
        (tmp_path / name / "lib/site-packages/deep").mkdir(parents=True)
        (tmp_path / name / "content").write_bytes(bytes(size))
        (tmp_path / name / "lib/site-packages/deep/secret").write_bytes(bytes(500_000))
    folder, settings, left_out = tmp_path / "environment", ("ENV WHERE=/env",), ("lib/site-packages/*",)
    environment = Part(f"{os.getpid()}e", "environment", (folder,), "/env", settings, left_out)
    made: list[str] = []
    try:
        for name in ("task", "other"):
            task = Part(f"{os.getpid()}{name}", "task", (tmp_path / name,), "/workspace")
            made += build(api, tiny_base, [environment, task])
        assert made[0] == made[2], "an environment is built once"
        images = {image.reference: image for image in listing(api)}
        assert [images[reference].kind for reference in made] == ["environment", "task", "environment", "task"]
        assert images[made[0]].own_bytes == pytest.approx(3_000_000, abs=5000)
        assert images[made[1]].own_bytes == pytest.approx(501_000, abs=5000)
        layers = [api.inspect_image(reference)["RootFS"]["Layers"] for reference in (made[1], made[3])]
        assert layers[0][:-1] == layers[1][:-1]
        assert "WHERE=/env" in api.inspect_image(made[1])["Config"]["Env"]
        assert build(api, tiny_base, [environment]) == made[:1]
    finally:
        for reference in dict.fromkeys(reversed(made)):
            api.remove_image(reference)


def test_prune_keeps_the_base(api: API, tiny_base: str, tmp_path: Path) -> None:
    kept = {image.reference for image in listing(api)}
    assert prune(api, every=False).images == 0
    assert {image.reference for image in listing(api)} == kept


def test_a_base_of_a_base(api: API, tiny_base: str) -> None:
    reference = f"envsynth-test:{os.getpid()}-two"
    try:
        assert pull_base(api, tiny_base, reference) == image_id(api, reference)
    finally:
        api.remove_image(reference)
