"""What a killed owner leaves behind, and who takes it away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import envsynth
from envsynth.errors import SandboxError
from envsynth.runtime.contract import Limits, SandboxSpec
from envsynth.sandbox import _bwrap_sandbox, _cgroup, _folder
from envsynth.sandbox._bwrap import SetupFailed
from envsynth.sandbox.bubblewrap import BubblewrapBackend
from envsynth.sandbox.conformance._support import mark, running
from envsynth.sandbox.local import LocalBackend

OWNER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from envsynth.runtime.contract import Limits, SandboxSpec
from envsynth.sandbox import BACKENDS
sandbox = BACKENDS[sys.argv[2]]().open(SandboxSpec((), scratch=Path(sys.argv[3])))
sandbox.exec(["sh", "-c", f"setsid sleep {sys.argv[4]} & sleep {sys.argv[4]}"], limits=Limits(wall_s=600))
"""


def wait_for(condition: object, wanted: bool) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if bool(condition()) is wanted:  # type: ignore[operator]
            return True
        os.sched_yield()
    return False


def swept(place: Path, owner: int) -> bool:
    """Sweep; the kernel keeps a group until its last process is reaped."""
    _cgroup._sweep(place)
    return list(place.glob(f"envsynth-{owner}-*")) == []


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ["bubblewrap", "local"])
def test_killed_owner(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "bubblewrap" and (reason := BubblewrapBackend().unavailable()):
        pytest.skip(reason)
    token, root = mark(), str(Path(envsynth.__file__).parent.parent)
    scratch = tmp_path / "scratch"
    with subprocess.Popen([sys.executable, "-c", OWNER, root, name, str(scratch), token]) as owner:
        started = wait_for(lambda: running(f"sleep\0{token}"), True)
        owner.send_signal(signal.SIGKILL)
    assert started
    assert wait_for(lambda: running(f"sleep\0{token}"), False), "the tree outlives its owner"
    assert len(list(scratch.iterdir())) == 1
    monkeypatch.setattr(_folder, "_swept", set())
    LocalBackend().open(SandboxSpec((), scratch=scratch)).close()
    assert list(scratch.iterdir()) == []
    monkeypatch.setattr(_cgroup, "_YOUNG_S", 0.0)
    _, places = _cgroup._parents() or (False, {})
    for place in places.values():
        assert wait_for(lambda place=place: swept(place, owner.pid), True), "a control group stays"


def test_folders_in_use_are_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = LocalBackend().open(SandboxSpec((), scratch=tmp_path))
    first.write("kept", b"x")
    monkeypatch.setattr(_folder, "_swept", set())
    LocalBackend().open(SandboxSpec((), scratch=tmp_path)).close()
    assert first.read("kept") == b"x"
    first.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sandbox
def test_setup_failures_are_the_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = BubblewrapBackend()
    if reason := backend.unavailable():
        pytest.skip(reason)
    (tmp_path / "layer").mkdir()
    sandbox = backend.open(SandboxSpec((tmp_path / "layer",), scratch=tmp_path / "scratch"))
    bad = ["--ro-bind", "/no/such/place", "/x"]
    monkeypatch.setattr(_bwrap_sandbox.arguments, "system", lambda: (*bad,))
    with pytest.raises(SandboxError, match="/no/such/place"):
        sandbox.exec(["true"], limits=Limits())
    sandbox.close()


@pytest.mark.sandbox
def test_a_refused_overlay_becomes_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = BubblewrapBackend()
    if reason := backend.unavailable():
        pytest.skip(reason)
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer/file").write_text("below")
    real = _bwrap_sandbox.run

    def refuse(what: object, *rest: object) -> object:
        if "--overlay" in what.args:  # type: ignore[attr-defined]
            raise SetupFailed("a sandbox could not be made", cause="Can't make overlay mount on /workspace")
        return real(what, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(_bwrap_sandbox, "run", refuse)
    sandbox = backend.open(SandboxSpec((tmp_path / "layer",), scratch=tmp_path / "scratch"))
    assert sandbox.exec(["sh", "-c", "cat file; echo x > file"], limits=Limits()).stdout == b"below"
    assert [tuple(change) for change in sandbox.changes()] == [("file", "present")]
    assert (tmp_path / "layer/file").read_text() == "below"
    fork = sandbox.fork()
    assert fork.read("file") == b"x\n"
    fork.close()
    sandbox.close()
