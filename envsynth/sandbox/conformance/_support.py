"""What the conformance suite shares: layers, a sandbox that must leave nothing behind, and ways to look at the host."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ...runtime.contract import Backend, ExecResult, Limits, Mount, Sandbox, SandboxSpec

MIB = 2**20
LIMITS = Limits(wall_s=20.0, memory_bytes=512 * MIB, processes=64, file_bytes=64 * MIB, disk_bytes=128 * MIB)
PYTHON = str(Path(sys.executable).resolve())


class ConformanceFixtures:
    """Fixtures around the backend under test."""

    def make_backend(self) -> Backend:
        """The backend under test."""
        raise NotImplementedError

    @pytest.fixture
    def backend(self) -> Backend:
        """The backend; the tests are skipped where it does not work."""
        backend = self.make_backend()
        reason = backend.unavailable()
        if reason is not None:
            pytest.skip(reason)
        return backend

    @pytest.fixture
    def isolated(self, backend: Backend) -> None:
        """Skips what only isolation can do."""
        if not backend.isolates:
            pytest.skip(f"{backend.name} does not isolate")

    @pytest.fixture
    def layers(self, tmp_path: Path) -> tuple[Path, ...]:
        """Two layers."""
        base, top = tmp_path / "base", tmp_path / "top"
        for path, text in {"keep": "keep", "both": "base", "folder/one": "1", "folder/deep/two": "2"}.items():
            put(base / path, text)
        for path, text in {"both": "top", "tool": "#!/bin/sh\necho ran\n"}.items():
            put(top / path, text)
        (top / "tool").chmod(0o755)
        (base / "link").symlink_to("keep")
        return base, top

    @pytest.fixture
    def spec(self, layers: tuple[Path, ...], tmp_path: Path) -> SandboxSpec:
        """A workspace of the layers, and an interpreter."""
        prefix = Path(sys.base_prefix)
        mounts = () if prefix == Path("/usr") else (Mount(prefix, str(prefix)),)
        return SandboxSpec(layers, mounts, scratch=tmp_path / "scratch", variables={"GIVEN": "yes"})

    @pytest.fixture
    def sandbox(self, backend: Backend, spec: SandboxSpec) -> Iterator[Sandbox]:
        """A sandbox; afterwards nothing of it may be left."""
        # Other tests of the same process may have helpers of their own.
        before = set(children())
        sandbox = backend.open(spec)
        yield sandbox
        sandbox.close()
        assert spec.scratch is not None
        assert list(spec.scratch.iterdir()) == []
        assert set(children()) <= before


def shell(sandbox: Sandbox, script: str, *, limits: Limits = LIMITS) -> ExecResult:
    """Run a shell script inside."""
    return sandbox.exec(["sh", "-c", script], limits=limits)


def python(sandbox: Sandbox, code: str, *words: str, limits: Limits = LIMITS) -> ExecResult:
    """Run Python code inside."""
    return sandbox.exec([PYTHON, "-I", "-S", "-c", code, *words], limits=limits)


def limits(**changed: Any) -> Limits:
    """The suite's limits with some changed."""
    return replace(LIMITS, **changed)


def mark() -> str:
    """A number of seconds that no other process sleeps."""
    return f"{random.randint(10**6, 10**7)}.{random.randint(10**6, 10**7)}"


def running(marked: str) -> bool:
    """Whether any process of the host has the mark among its arguments."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if marked.encode() in path.read_bytes() and path.parent.name != str(os.getpid()):
                return True
    return False


def children() -> list[int]:
    """Child processes of ours, zombies included."""
    found = []
    for path in Path("/proc/self/task").glob("*/children"):
        found += [int(word) for word in path.read_text().split()]
    return found


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def put(path: Path, text: str) -> None:
    """Write a file and its parents."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def content(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time and content of everything in a host folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        text = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, text)
    return found
