"""Tests of a project that fork without end, eat memory or disk, leave daemons behind, or kill what runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

HOSTILE = {
    "fork-bomb": """
        import os
        while True:
            os.fork()
""",
    "memory": """
        self.kept = [bytearray(2**20) for _ in range(2**20)]
""",
    "daemon": """
        import os, subprocess, sys
        code = "import os, threading; os.setsid(); threading.Event().wait()"
        subprocess.Popen([sys.executable, "-c", code], stdin=-3, stdout=-3, stderr=-3)
""",
    "disk": """
        with open("/tmp/filler", "wb") as file:
            for _ in range(2**20):
                file.write(bytes(2**20))
""",
    "killer": """
        import os
        os.kill(os.getppid(), 9)
        os.kill(os.getpid(), 9)
""",
}
TEST = "import unittest\n\n\nclass Hostile(unittest.TestCase):\n    def test_hostile(self):\n"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tests_of_a_project(lab: Any, make_project: Any, tmp_path: Path, name: str) -> None:
    """They harm their own project at most: nothing outlives the build, nothing is owed for their sake."""
    project = make_project(tmp_path / "project", 1, extra={"tests/test_hostile.py": TEST + HOSTILE[name]})
    source = f"{project} test_timeout=20"
    ended = lab.build(tmp_path, "--sandbox", "bubblewrap", source=source, timeout=400)
    assert ended.code in (0, 1), ended
    assert lab.survivors(tmp_path) == []
    said = {(row["status"], row["reason"]) for row in ended.report["funnel"]} - {("dropped", "no_parent")}
    # A fork bomb takes processor time until the run's own limit: on a busy machine the reference does not get through.
    fates = {("admitted", "")} | ({("rejected", "reference_report_incomplete")} if name == "fork-bomb" else set())
    assert len(said) == 1, ended.report["funnel"]
    assert said <= fates, ended.report["funnel"]
