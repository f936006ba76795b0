"""The system call filter: what it decides, run by a small interpreter and by the kernel."""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from envsynth.runtime.contract import ExecResult, Limits, Mount, Sandbox, SandboxSpec
from envsynth.sandbox import _seccomp
from envsynth.sandbox._cgroup import Cgroup
from envsynth.sandbox.bubblewrap import BubblewrapBackend

ALLOWED = 0
X86_64, I386, AARCH64, ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028
INTEL = _seccomp.assembled((_seccomp._X86_64, _seccomp._I386))
ARMS = _seccomp.assembled((_seccomp._AARCH64, _seccomp._ARM))
PYTHON = str(Path(sys.executable).resolve())


def decide(program: bytes, architecture: int, call: int, *arguments: int) -> int:
    """The error a call gets, 0 when it is allowed: the instructions of linux/bpf_common.h that filters here use."""
    padded = (*arguments, *[0] * (6 - len(arguments)))
    seen = struct.pack("=IIQ6Q", call, architecture, 0, *padded)
    lines = list(struct.iter_unpack("=HBBI", program))
    held = at = 0
    while True:
        code, then, otherwise, value = lines[at]
        at += 1
        if code == 0x20:
            (held,) = struct.unpack_from("=I", seen, value)
        elif code == 0x15:
            at += then if held == value else otherwise
        elif code == 0x35:
            at += then if held >= value else otherwise
        else:
            assert code == 0x06
            return ALLOWED if value == 0x7FFF0000 else value - 0x00050000


class Abi(NamedTuple):
    """Numbers of an ABI's calls, from the kernel's tables, and the program that is to know them."""

    program: bytes
    architecture: int
    fadvise: int
    preadv2: int
    madvise: int
    read: int
    getpid: int
    refused: int = 11

    def decide(self, call: int, *arguments: int) -> int:
        return decide(self.program, self.architecture, call, *arguments)


ABIS = {
    "x86_64": Abi(INTEL, X86_64, 221, 327, 28, 0, 39),
    "i386": Abi(INTEL, I386, 250, 378, 219, 3, 20, refused=12),  # it has two fadvise64
    "aarch64": Abi(ARMS, AARCH64, 223, 286, 233, 63, 172),
    "arm": Abi(ARMS, ARM, 270, 392, 220, 3, 20),
}


@pytest.mark.parametrize("abi", ABIS.values(), ids=ABIS)
class TestDecisions:
    def test_advice_on_files_is_refused(self, abi: Abi) -> None:
        assert abi.decide(abi.fadvise, 3, 0, 0, 4) == errno.ENOSYS
        for number in (425, 440, 451):
            assert abi.decide(number) == errno.ENOSYS

    def test_only_flags_make_a_vectored_read_fail(self, abi: Abi) -> None:
        for number in (abi.preadv2, abi.preadv2 + 1):
            assert abi.decide(number, 3, 4, 1, 7, 0, 0) == ALLOWED
            assert abi.decide(number, 3, 4, 1, 7, 0, 8) == errno.EOPNOTSUPP
            # The kernel looks at 32 bits: the others must neither hide a flag nor look like one.
            assert abi.decide(number, 3, 4, 1, 7, 0, 1 << 40) == ALLOWED
            assert abi.decide(number, 3, 4, 1, 7, 0, 1 << 40 | 8) == errno.EOPNOTSUPP

    def test_only_advice_that_drops_pages_fails(self, abi: Abi) -> None:
        refused = {advice for advice in range(128) if abi.decide(abi.madvise, 4096, 4096, advice)}
        assert refused == {20, 21}
        assert abi.decide(abi.madvise, 4096, 4096, 1 << 40 | 21) == errno.EINVAL

    def test_other_calls_pass(self, abi: Abi) -> None:
        assert abi.decide(abi.read, 3, 4, 5, 20, 21, 8) == ALLOWED
        assert abi.decide(abi.getpid) == ALLOWED
        assert sum(abi.decide(number) != ALLOWED for number in range(600)) == abi.refused


def test_another_numbering_of_the_same_calls_is_refused() -> None:
    assert decide(INTEL, X86_64, 0x40000000 | 221) == errno.ENOSYS
    assert decide(INTEL, X86_64, 0x40000000) == errno.ENOSYS
    assert decide(INTEL, AARCH64, 0) == errno.ENOSYS
    assert decide(INTEL, X86_64, 0xFFFFFFFF) == ALLOWED, "a debugger that answers a call gives it this number"


def test_an_unknown_machine_has_no_filter_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*real[:4], "toaster")))
    _seccomp.program.cache_clear()
    try:
        assert _seccomp.program() is None
        assert "toaster" in _seccomp.missing()
        assert not BubblewrapBackend().filters_calls
    finally:
        _seccomp.program.cache_clear()


def sandbox_in(folder: Path, *, cgroups: bool = True, shared: tuple[Mount, ...] = ()) -> Sandbox:
    backend = BubblewrapBackend(cgroups=cgroups)
    reason = backend.unavailable()
    if reason is not None:
        pytest.skip(reason)
    (folder / "layer").mkdir(exist_ok=True)
    prefix = Path(sys.base_prefix)
    mounts = () if prefix == Path("/usr") else (Mount(prefix, str(prefix)),)
    return backend.open(SandboxSpec((folder / "layer",), (*mounts, *shared), scratch=folder / "scratch"))


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    opened = sandbox_in(tmp_path)
    yield opened
    opened.close()


def run(sandbox: Sandbox, *command: str) -> ExecResult:
    return sandbox.exec(command, limits=Limits(wall_s=20.0))


def cached(path: Path) -> bool:
    """Whether the first page of a file is in memory."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.preadv(file, [bytearray(1)], 0, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False
    finally:
        os.close(file)


def drop(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


@pytest.mark.sandbox
def test_what_a_command_was_the_first_to_read_is_not_cached_after_it(tmp_path: Path) -> None:
    group = Cgroup.make(2**30, 100)
    if group is None:
        pytest.skip("no control groups can be made here")
    group.close()
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "file").write_bytes(b"x" * 2**20)
    drop(shared / "file")
    if cached(shared / "file"):
        pytest.skip("this file system is memory")
    for cgroups in (False, True):
        sandbox = sandbox_in(tmp_path, cgroups=cgroups, shared=(Mount(shared, "/shared"),))
        assert run(sandbox, "cat", "/shared/file").stdout.startswith(b"xx")
        sandbox.close()
        assert cached(shared / "file") is not cgroups
        drop(shared / "file")
    (shared / "file").read_bytes()
    sandbox = sandbox_in(tmp_path, shared=(Mount(shared, "/shared"),))
    run(sandbox, "cat", "/shared/file")
    sandbox.close()
    assert cached(shared / "file"), "what others have read stays"


@pytest.mark.sandbox
class TestInside:
    def test_programs_that_give_advice_work(self, sandbox: Sandbox) -> None:
        script = (
            "set -e; seq 50000 | sort -R > numbers; sort -n numbers > sorted; cp sorted copy; cat copy | cmp - sorted\n"
            "tar cf all.tar sorted copy; mkdir out; tar xf all.tar -C out; cmp out/copy copy; sha256sum copy > sums\n"
            "sha256sum -c sums; gzip -k copy; gzip -dc copy.gz | cmp - copy; dd if=copy of=again status=none\n"
            "wc -l again"
        )
        result = run(sandbox, "sh", "-c", script)
        assert (result.exit_code, result.stderr) == (0, b"")
        assert result.stdout.endswith(b"50000 again\n")

    def test_without_a_filter_the_machine_is_named(
        self, tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "filter" not in BubblewrapBackend().explain()
        advise = "import os; os.posix_fadvise(os.open('/usr/bin/env', os.O_RDONLY), 0, 0, 2)"
        assert b"Errno 38" in run(sandbox, PYTHON, "-I", "-S", "-c", advise).stderr
        monkeypatch.setattr("envsynth.sandbox._bwrap.program", lambda: None)
        monkeypatch.setattr(_seccomp, "program", lambda: None)
        assert "without a system call filter" in BubblewrapBackend().explain()
        assert run(sandbox, PYTHON, "-I", "-S", "-c", advise).exit_code == 0

    @pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers and machine code of x86-64")
    def test_every_way_into_the_kernel_is_filtered(self, sandbox: Sandbox) -> None:
        code = """
import ctypes, mmap, sys
libc = ctypes.CDLL(None, use_errno=True)
def error(*call):
    ctypes.set_errno(0)
    return ctypes.get_errno() if libc.syscall(*call) < 0 else 0
# fadvise64, mincore, cachestat, process_madvise, io_uring, io_setup, userfaultfd, perf_event_open, three of keys
print([error(n, -1, 0, 0, 0, 0) for n in (221, 27, 451, 440, 425, 206, 323, 298, 248, 249, 250)])
print(error(0x40000000 | 221, -1, 0, 0, 4), error(39))
page = mmap.mmap(-1, 4096)
address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print([error(28, address, ctypes.c_size_t(4096), advice) for advice in (4, 20, 21)])
sys.stdout.flush()
# mov eax, 250 (fadvise64); mov ebx, -1; xor ecx, edx, esi; int 0x80; ret, with ebx kept
body = bytes.fromhex("53 b8fa000000 bbffffffff 31c9 31d2 31f6 cd80 5b c3")
text = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
text.write(body)
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(text)))())
"""
        result = run(sandbox, PYTHON, "-I", "-c", code)
        lines = result.stdout.decode().splitlines()
        assert lines[:3] == [str([38] * 11), "38 0", "[0, 22, 22]"], result.stderr
        # A kernel without 32-bit calls ends the process.
        assert lines[3:] == ["-38"] or result.exit_code == 139
