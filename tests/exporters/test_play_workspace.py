"""envsynth play on a workspace: the same prompt, with a shell."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_task as tiny

from envsynth.cache import Cache
from envsynth.cli.main import run
from envsynth.exporters.gymnasium import Gymnasium

SOLUTION = tiny.FIXED.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_person_solves_a_workspace_task(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    monkeypatch.setenv("ENVSYNTH_CACHE", str(cache.root))
    monkeypatch.delenv("ENVSYNTH_SANDBOX", raising=False)
    task = tiny.make_task(cache)
    pack = Gymnasium().export([task], cache, tmp_path / "shop-tasks", {})
    script = tmp_path / "lines.txt"
    script.write_text(
        "bash ls shop | sort -r; X=1\n"
        f'{{"tool": "write_file", "arguments": {{"path": "shop/prices.py", "content": "{SOLUTION}"}}}}\n'
        "submit\n"
    )
    assert run(["play", task.id, "--pack", str(pack), "--script", str(script)]) == 0
    out = capsys.readouterr().out
    assert "0/20> bash ls shop" in out
    assert "prices.py\nbasket.py\n__init__.py" in out
    assert "score 1: over after 3 calls" in out
    assert "fail_to_pass\tyes" in out
