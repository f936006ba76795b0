"""A system call filter against what one sandbox could leave in the kernel for the next one to read.

Files that all sandboxes mount share their pages in memory, so which pages are there is a note: written by dropping
and reading pages, read by asking what is cached. Refused are the calls that drop pages or tell, those that can carry
the same requests where a filter cannot look (rings, asynchronous I/O), and the keyring of the user's login, which
the kernel does not keep apart. A refused call fails as on a kernel built without it, so that programs have a way on;
`posix_fadvise` is advice, and programs ignore its failing.

This makes notes hard to keep, not impossible: pages that nobody has read yet can be read, and the time or the count
of page faults of the next read tells. No filter helps there; `Cgroup.drop_pages` does, where there are control groups.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

# linux/bpf_common.h and linux/filter.h
_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
# linux/seccomp.h
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_CALL, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Offsets in `struct seccomp_data`."""

_X32 = 0x40000000
"""Marks calls of the x32 ABI, which has numbers of its own for some."""
_SKIPPED = 0xFFFFFFFF
"""The number of a call that a debugger has answered itself."""
_FLAGS = 5
"""Which argument of `preadv2` and `pwritev2` holds the flags; among them are "only what is cached" and "drop it"."""
_ADVICE = 2
"""Which argument of `madvise` holds the advice."""
_DROPPING = (20, 21)
"""MADV_COLD and MADV_PAGEOUT."""


class _Calls(NamedTuple):
    """What is refused of an ABI, by number."""

    architecture: int
    """AUDIT_ARCH_*, linux/audit.h."""
    refused: tuple[int, ...]
    """Whatever the arguments are."""
    vectored: tuple[int, int]
    """preadv2, pwritev2."""
    madvise: int
    x32: bool = False


_EVERYWHERE = (425, 440, 451)
"""io_uring_setup, process_madvise, cachestat: newer than the common numbering."""
# In this order: fadvise64 (and fadvise64_64 where there is one), mincore, userfaultfd, perf_event_open, io_setup,
# add_key, request_key, keyctl.
_X86_64 = _Calls(0xC000003E, (221, 27, 323, 298, 206, 248, 249, 250), (327, 328), 28, x32=True)
_I386 = _Calls(0x40000003, (250, 272, 218, 374, 336, 245, 286, 287, 288), (378, 379), 219)
_AARCH64 = _Calls(0xC00000B7, (223, 232, 282, 241, 0, 217, 218, 219), (286, 287), 233)
_ARM = _Calls(0x40000028, (270, 219, 388, 364, 243, 309, 310, 311), (392, 393), 220)
_MACHINES = {
    **dict.fromkeys(("x86_64", "i386", "i486", "i586", "i686"), (_X86_64, _I386)),
    **dict.fromkeys(("aarch64", "armv7l", "armv8l"), (_AARCH64, _ARM)),
}
"""By what `uname` says; a 64-bit kernel runs 32-bit programs, and says to some that it is a 32-bit one."""


@cache
def program() -> bytes | None:
    """The filter of this machine, in the form that `bwrap --seccomp` reads; None where there is none for it."""
    abis = _MACHINES.get(os.uname().machine) if sys.byteorder == "little" else None
    return None if abis is None else assembled(abis)


def missing() -> str:
    """What a user should know where there is no filter; empty where there is one."""
    if program() is not None:
        return ""
    return f"without a system call filter (none for {os.uname().machine}: runs can drop cached pages and ask for them)"


def assembled(abis: tuple[_Calls, ...]) -> bytes:
    """A program of `struct sock_filter`; calls of any other ABI are refused."""
    lines: list[bytes] = []
    for abi in abis:
        body = list(_section(abi))
        lines += [_load(_ARCHITECTURE), _line(_EQUAL, abi.architecture, 0, len(body)), *body]
    return b"".join([*lines, _refuse(errno.ENOSYS)])


def _section(abi: _Calls) -> Iterator[bytes]:
    yield _load(_CALL)
    if abi.x32:
        yield _line(_AT_LEAST, _X32, 0, 2)
        yield _line(_EQUAL, _SKIPPED, 1, 0)
        yield _refuse(errno.ENOSYS)
    for number in (*abi.refused, *_EVERYWHERE):
        yield _line(_EQUAL, number, 0, 1)
        yield _refuse(errno.ENOSYS)
    for number in abi.vectored:
        yield _line(_EQUAL, number, 0, 4)
        yield _argument(_FLAGS)
        yield _line(_EQUAL, 0, 0, 1)
        yield _line(_RETURN, _ALLOW)
        yield _refuse(errno.EOPNOTSUPP)
    yield _line(_EQUAL, abi.madvise, 0, 1 + 2 * len(_DROPPING))
    yield _argument(_ADVICE)
    for advice in _DROPPING:
        yield _line(_EQUAL, advice, 0, 1)
        yield _refuse(errno.EINVAL)
    yield _line(_RETURN, _ALLOW)


def _line(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction: what it does, with what, and how many lines a comparison skips when true and when false."""
    return struct.pack("=HBBI", code, then, otherwise, value)


def _load(offset: int) -> bytes:
    return _line(_LOAD, offset)


def _argument(index: int) -> bytes:
    """Load the low half of an argument; the kernel looks at no more of flags and advice."""
    return _load(_ARGUMENTS + 8 * index)


def _refuse(error: int) -> bytes:
    return _line(_RETURN, _ERRNO | error)
