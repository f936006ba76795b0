"""Processes of ours that end when the one that started them does, however that came about."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Have the kernel kill this process once the thread that started it is no more.

    Args:
        parent: process id of whoever started it; where that is gone already, this process ends here and now.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before this could be asked for
        os._exit(1)
