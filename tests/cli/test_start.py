"""The console script, interrupted before its command begins."""

from __future__ import annotations

import subprocess
import sys

import pytest

from envsynth.cli import main

INTERRUPTED_IMPORT = """
import sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from envsynth.cli.start import main
main()
"""


def test_an_interrupt_while_the_program_is_loaded_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "envsynth: interrupted; nothing was begun\n")


def test_an_interrupt_while_commands_are_put_together_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(app: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main.typer.main, "get_command", interrupted)
    assert main.run(["plugins"]) == 130
    assert capsys.readouterr().err.startswith("envsynth: interrupted")
