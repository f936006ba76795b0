"""The README says what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from envsynth.generators.business.config import FreeSettings
from envsynth.generators.business.config import Settings as Scenarios
from envsynth.generators.mechanism.config import Settings as Mechanisms
from envsynth.generators.repository.config import Settings
from envsynth.models import SourceOptions

ROOT = Path(__file__).parents[2]
README = ROOT.joinpath("README.md").read_text("utf-8")


def test_the_help_in_the_readme_is_the_commands_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from envsynth.cli.main import main; main()", "--help"], capture_output=True, text=True,
        check=True, env={**os.environ, "COLUMNS": "80", "TERM": "dumb"},
    )  # fmt: skip
    shown = re.search(r"```text\n(Usage: .*?)\n```", README, re.DOTALL)
    assert shown is not None
    assert shown[1].split() == done.stdout.split()


def test_every_option_of_a_source_is_in_the_readme() -> None:
    table = README[README.index("| option | meaning |") : README.index("## Commands")]
    named = set(re.findall(r"`(\w+)=", table))
    of_kinds = (Settings, Mechanisms, Scenarios, FreeSettings, SourceOptions)
    assert named == {field for kind in of_kinds for field in kind.model_fields} - {"timeout"}


def test_both_commands_are_marked() -> None:
    assert re.findall(r"<!-- command: (\w+) -->\n```sh\n", README) == ["quickstart", "tests"]
