"""What was measured by other code is not reused."""

from __future__ import annotations

import shutil
from pathlib import Path

from envsynth import runtime
from envsynth.runtime.version import _digest, _grading, grader_digest, harness_digest


def copied_runtime(tmp_path: Path) -> Path:
    folder = tmp_path / "runtime"
    shutil.copytree(Path(runtime.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_what_only_carries_calls_and_results_does_not_count(tmp_path: Path) -> None:
    folder = copied_runtime(tmp_path)
    for name in ("gym.py", "gym_actions.py", "observe.py", "pack.py", "play.py", "replay.py", "worlds/episode.py"):
        folder.joinpath(name).write_text("")
    assert _digest(*_grading(folder)) == grader_digest()
    folder.joinpath("rewards.py").write_text("")
    assert _digest(*_grading(folder)) != grader_digest()


def test_every_source_counts_and_byte_code_does_not(tmp_path: Path) -> None:
    folder = copied_runtime(tmp_path)
    assert _digest(*_grading(folder)) == grader_digest()
    (folder / "harness" / "run.cpython.pyc").write_bytes(b"x")
    assert _digest(*_grading(folder)) == grader_digest()
    with folder.joinpath("sql", "workspace.sql").open("a") as file:
        file.write("-- more\n")
    assert _digest(*_grading(folder)) != grader_digest()
    parts = [folder / name for name in ("harness", "testrun.py", "testreport.py", "testkeys.py")]
    assert _digest(*parts) == harness_digest()
    parts[0].joinpath("run.py").write_text("")
    assert _digest(*parts) != harness_digest()
