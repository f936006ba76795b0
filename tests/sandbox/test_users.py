"""Users of their own for a grader's commands: what they cannot read, write, or leave behind."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsynth.errors import SandboxError, SandboxUnavailable
from envsynth.runtime.contract import Limits, Mount, SandboxSpec
from envsynth.sandbox import users
from envsynth.sandbox.users import SHARED, UserBackend

needs_root = pytest.mark.skipif(bool(UserBackend().unavailable()), reason="needs root and setpriv")


@pytest.fixture
def grader() -> Iterator[Path]:
    """A grader's folder; unlike `tmp_path`, other users can pass through to what is theirs."""
    folder = Path(tempfile.mkdtemp(prefix="grader-"))
    folder.chmod(0o711)
    for name, mode in (("scratch", 0o711), ("layer", 0o700), ("logs", 0o700)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    (folder / "layer" / "own.txt").write_text("own\n")
    (folder / "hidden.txt").write_text("hidden\n")
    (folder / "hidden.txt").chmod(0o600)
    (folder / "report").touch()
    yield folder
    shutil.rmtree(folder)


def spec(grader: Path) -> SandboxSpec:
    mounts = (Mount(grader / "report", "/report", writable=True),)
    return SandboxSpec(layers=(grader / "layer",), mounts=mounts, scratch=grader / "scratch")


def said(backend: UserBackend, grader: Path, command: str) -> str:
    sandbox = backend.open(spec(grader))
    try:
        script = f"G={grader}; R={sandbox.path('/report')}; {command}"
        return sandbox.exec(["sh", "-c", script], limits=Limits(wall_s=20)).stdout.decode()
    finally:
        sandbox.close()


@needs_root
def test_folders_however_deep_are_taken_away(grader: Path) -> None:
    script = (
        "import os\n"
        "for place in ('/tmp', '.'):\n"
        "    here = os.open(place, os.O_RDONLY)\n"
        "    for _ in range(3000):\n"
        "        os.mkdir('deep', dir_fd=here)\n"
        "        below = os.open('deep', os.O_RDONLY, dir_fd=here)\n"
        "        os.close(here)\n"
        "        here = below\n"
        "print('deep enough')"
    )
    (grader / "layer" / "deep.py").write_text(script)
    assert said(UserBackend(), grader, "umask 077; python3 deep.py; ls -d /tmp/deep") == "deep enough\n/tmp/deep\n"
    assert not Path("/tmp/deep").exists()


@needs_root
def test_a_command_has_its_own_files_and_no_others(grader: Path) -> None:
    backend = UserBackend()
    out = said(
        backend, grader,
        "id -u; cat own.txt; echo more >> own.txt && echo wrote; echo line > $R && echo reported; "
        "cat $G/hidden.txt || echo closed; echo x > $G/logs/reward.json || echo kept; ls $G/layer || echo shut",
    )  # fmt: skip
    user, *rest = out.split()
    assert int(user) > 60_000
    assert rest == ["own", "wrote", "reported", "closed", "kept", "shut"]
    assert (grader / "report").read_text() == "line\n"
    assert (grader / "layer" / "own.txt").read_text() == "own\n"
    assert said(backend, grader, "id -u").strip() != user


@needs_root
def test_nothing_stays_of_a_command(grader: Path) -> None:
    backend = UserBackend()
    mark = f"left-{os.getpid()}-{time.monotonic_ns()}"
    command = f"mkdir -p /tmp/{mark}/deep; chmod 0 /tmp/{mark}/deep; echo x > /tmp/{mark}.txt; id -u; "
    command += "setsid sh -c 'while :; do sleep 0.05; done' >/dev/null 2>&1 </dev/null &"
    user = int(said(backend, grader, command).split()[0])
    assert not [path for folder in SHARED if folder.is_dir() for path in folder.iterdir() if mark in path.name]
    assert not users._has_processes(user)


@needs_root
@pytest.mark.skipif(shutil.which("ipcmk") is None, reason="needs ipcmk")
def test_shared_memory_does_not_outlive_its_command(grader: Path) -> None:
    user = said(UserBackend(), grader, "ipcmk -M 64 -Q -S 1 >/dev/null; id -u; grep -c . /proc/sysvipc/shm").split()[0]
    for kind in ("shm", "msg", "sem"):
        assert user not in Path("/proc/sysvipc", kind).read_text().split()


@needs_root
def test_a_graders_sandbox_is_not_forked(grader: Path) -> None:
    sandbox = UserBackend().open(spec(grader))
    with pytest.raises(SandboxError, match="cannot be forked"):
        sandbox.fork()
    sandbox.close()
    assert list((grader / "scratch").iterdir()) == []


def test_without_root_it_says_so(grader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SandboxUnavailable, match="let the grader run as root"):
        UserBackend().open(spec(grader))
