from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MEASURE = Path(__file__).with_name("measure.py")


@pytest.mark.slow
@pytest.mark.parametrize("player", ["envsynth", "envsynth gym", "gymnasium"])
def test_a_player_of_the_benchmark_gives_the_answers_of_the_script(player: str) -> None:
    subprocess.run([sys.executable, MEASURE, player, "--check"], check=True)
