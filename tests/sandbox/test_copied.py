"""Packs carry a copy of the sandboxes under another name, and have the standard library only."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import envsynth

PLAY = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from carried.runtime.contract import Limits, SandboxSpec
from carried.sandbox import BACKENDS
backend = BACKENDS[sys.argv[2]]()
if backend.unavailable():
    sys.exit(77)
sandbox = backend.open(SandboxSpec((), scratch=Path(sys.argv[1], "scratch")))
sandbox.write("file", b"carried")
print(sandbox.exec(["cat", "file"], limits=Limits()).stdout.decode(), [change.path for change in sandbox.changes()])
sandbox.close()
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("envsynth", "pydantic", "pytest")))
"""


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ["bubblewrap", "local"])
def test_copied_under_another_name(name: str, tmp_path: Path) -> None:
    source, target = Path(envsynth.__file__).parent, tmp_path / "carried"
    for part in ("errors.py", "runtime/contract.py"):
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / part, target / part)
    for folder in (target, target / "runtime"):
        (folder / "__init__.py").touch()
    shutil.copytree(source / "sandbox", target / "sandbox", ignore=shutil.ignore_patterns("conformance", "__pycache__"))
    done = subprocess.run(
        [sys.executable, "-I", "-c", PLAY, str(tmp_path), name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode == 77:
        pytest.skip("bubblewrap does not work without its wheel")
    assert done.stderr == ""
    assert done.stdout == "carried ['file']\n[]\n"
