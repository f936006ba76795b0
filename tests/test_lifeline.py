from __future__ import annotations

import os
import select
import subprocess
import sys

CHILD = "import sys; from envsynth.lifeline import end_with; end_with(int(sys.argv[1])); print('lives'); input()"
PARENT = f"""
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}, str(os.getpid())])
signal.pause()
"""


def test_it_ends_with_its_parent() -> None:
    """Both hold the output open; only one of them is killed, and the input of the other never ends."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "lives\n"
        parent.kill()
        assert select.select([parent.stdout], [], [], 30)[0]
        assert parent.stdout.read() == ""


def test_it_does_not_begin_without_its_parent() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, str(os.getppid())], capture_output=True, check=False, input=b"")
    assert (done.returncode, done.stdout) == (1, b"")
