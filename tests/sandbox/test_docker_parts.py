"""What the Docker backend does without a daemon: streams, words, labels, and what it says where nothing answers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.errors import SandboxError
from envsynth.runtime.contract import Limits
from envsynth.sandbox import _docker_client, _docker_owner
from envsynth.sandbox._docker_args import Profile, Workspace, container, mountable, stubs, words
from envsynth.sandbox._docker_client import Daemon
from envsynth.sandbox._docker_owner import Owner, labels, sweep
from envsynth.sandbox._docker_run import Streams
from envsynth.sandbox.docker import DockerBackend

PROFILE = Profile("sha256:base", "7:8", "", (), ("/usr/lib/python3/dist-packages",))


def frames(parts: list[tuple[int, bytes]]) -> bytes:
    return b"".join(bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text for stream, text in parts)


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=12),
    st.lists(st.integers(1, 50), min_size=1, max_size=10),
    st.integers(0, 200),
)
def test_streams_are_the_same_however_they_arrive(parts: list[tuple[int, bytes]], cuts: list[int], limit: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        streams = Streams(ours, b"", limit)
        rest, number = frames(parts), 0
        while rest:
            size = cuts[number % len(cuts)]
            theirs.sendall(rest[:size])
            streams.pump(0)
            rest, number = rest[size:], number + 1
        theirs.close()
        while not streams.ended:
            streams.pump(1)
    everything = {stream: b"".join(text for kind, text in parts if kind == stream) for stream in (1, 2)}
    assert streams.total == sum(map(len, everything.values()))
    assert len(streams.stdout) + len(streams.stderr) == min(limit, streams.total)
    assert everything[1].startswith(streams.stdout)
    assert everything[2].startswith(streams.stderr)


def test_input_is_fed_and_ended() -> None:
    ours, theirs = socket.socketpair()
    content = bytes(range(256)) * 10_000
    got = b""
    with ours, theirs:
        theirs.setblocking(False)
        streams = Streams(ours, content, 10)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            streams.pump(0)
            try:
                chunk = theirs.recv(2**20)
            except BlockingIOError:
                continue
            if not chunk:
                break
            got += chunk
    assert got == content


@given(st.lists(st.binary(max_size=20).map(lambda word: os.fsdecode(word.replace(b"\0", b""))), min_size=1, max_size=5))
def test_words_reach_a_shell_unchanged(command: list[str]) -> None:
    text = words("/some where/it's", 3.2, {"GIVEN": "a 'b'\nc", "odd.name": "x"}, ["printf", "%s\\0", *command])
    script = text + b'[ "$folder" = "/some where/it\'s" ] && [ "$seconds" = 3 ] && exec "$@"\n'
    done = subprocess.run(["/bin/sh"], input=script, capture_output=True, check=True)
    assert done.stdout == b"".join(os.fsencode(word) + b"\0" for word in command)


def test_a_container_may_do_nothing_that_it_need_not(tmp_path: Path) -> None:
    place = Workspace(tmp_path, tmp_path / "state", "/workspace", ["/below", "/above"], (), ("/opt/x/site-packages",))
    body = container(PROFILE, place, Limits(memory_bytes=2**28, processes=9, file_bytes=11), network=False)
    host = body["HostConfig"]
    assert (host["NetworkMode"], host["CapDrop"], host["ReadonlyRootfs"]) == ("none", ["ALL"], True)
    assert "no-new-privileges" in host["SecurityOpt"]
    assert body["User"] == "7:8"
    assert (host["Memory"], host["MemorySwap"]) == (2**28, 2**28)
    assert {limit["Name"]: limit["Hard"] for limit in host["Ulimits"]}["fsize"] == 11
    assert host["Tmpfs"].keys() == {"/run", "/usr/lib/python3/dist-packages", "/opt/x/site-packages"}
    (volume,) = [mount for mount in host["Mounts"] if mount["Type"] == "volume"]
    options = volume["VolumeOptions"]["DriverConfig"]["Options"]["o"]
    assert options.startswith("lowerdir=/above:/below,")  # an overlay names the highest first
    written = {mount["Target"] for mount in host["Mounts"] if mount["Type"] == "bind" and not mount["ReadOnly"]}
    assert written == {"/tmp", "/home/user"}
    assert container(PROFILE, place, Limits(), network=True)["HostConfig"]["NetworkMode"] == "host"


def test_the_user_inside_has_a_name() -> None:
    assert stubs("0:0")["passwd"].startswith("user:x:0:0:")
    assert stubs("7:8")["passwd"].splitlines()[:2] == ["user:x:7:8:user:/home/user:/bin/sh", "root:x:0:0:root:/root:/bin/sh"]  # fmt: skip  # noqa: E501
    assert not mountable(Path("/a,b"))
    assert mountable(Path("/a b"))


class FakeDaemon:
    """Lists containers and remembers which were removed."""

    def __init__(self, marks: dict[str, dict[str, str]]) -> None:
        self.marks = marks

    def containers(self, **_: Any) -> list[dict[str, Any]]:
        return [{"Id": name, "Labels": labels} for name, labels in self.marks.items()]

    def volumes(self, **_: Any) -> dict[str, Any]:
        return {"Volumes": None}

    def remove_container(self, container: str, **_: Any) -> None:
        del self.marks[container]


def test_only_leftovers_are_swept() -> None:
    mine = labels(60)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        dead = Owner.present()._replace(process=ended.pid, started="1")
    reused = Owner.present()._replace(started="1")
    elsewhere = Owner.present()._replace(namespace="pid:[1]", process=ended.pid)
    daemon = FakeDaemon(
        {
            "mine": mine,
            "dead": {**mine, _docker_owner.OWNER: str(dead)},
            "reused": {**mine, _docker_owner.OWNER: str(reused)},
            "elsewhere": {**mine, _docker_owner.OWNER: str(elsewhere)},
            "expired": {**mine, _docker_owner.OWNER: str(elsewhere), _docker_owner.DEADLINE: "1"},
            "garbled": {_docker_owner.KIND: "sandbox", _docker_owner.OWNER: "x"},
        }
    )
    assert sweep(daemon) == 3
    assert sorted(daemon.marks) == ["elsewhere", "garbled", "mine"]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_docker_client, "_connected", {})
    monkeypatch.setattr(DockerBackend, "_known", {})
    monkeypatch.setitem(sys.modules, "docker", None)
    reason = DockerBackend().unavailable()
    assert reason == "the Python package docker is not installed. Next: pip install docker"


def test_without_a_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_docker_client, "_connected", {})
    monkeypatch.setattr(DockerBackend, "_known", {})
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    reason = DockerBackend().unavailable()
    assert reason is not None
    assert reason.startswith(f"unix://{tmp_path}/none.sock: no Docker daemon answers")
    assert "Next: " in reason
    assert "\n" not in reason


@pytest.mark.parametrize(
    ("information", "said"),
    [
        ({"OSType": "windows"}, "Linux"),
        ({"OSType": "linux", "Runtimes": {"runc": {}}}, "no runtime 'runsc' (it knows runc). Next: install it"),
        ({"OSType": "linux", "Runtimes": {"runsc": {}}}, "there is no base image. Next: envsynth image build --base"),
    ],
)
def test_what_a_daemon_lacks_is_named(
    information: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    class Empty:
        def inspect_image(self, reference: str) -> dict[str, Any]:
            error = LookupError(reference)
            error.response = type("Response", (), {"status_code": 404})  # type: ignore[attr-defined]
            raise error

    monkeypatch.setattr(DockerBackend, "_known", {})
    monkeypatch.delenv("ENVSYNTH_DOCKER_BASE", raising=False)
    monkeypatch.setattr("envsynth.sandbox.docker.connect", lambda: Daemon(Empty(), "unix:///x", information))
    assert said in str(DockerBackend("runsc").unavailable())


def test_a_daemon_that_fails_is_not_an_image_that_is_missing() -> None:
    class Broken:
        def inspect_image(self, reference: str) -> dict[str, Any]:
            raise OSError(5, "Input/output error")

    with pytest.raises(SandboxError, match="looked up"):
        _docker_client.image_id(Broken(), "x")
