"""envsynth report."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def test_report(envsynth, task_ids):
    printed = envsynth("report")
    assert printed.code == 0
    text = Path("outputs/report/report.html").read_text("utf-8")
    assert re.fullmatch(r".*report\.html: [\d.]+ kB, pages of 2 of 2 tasks\n", printed.out)
    for part in ("no_tests_touched", "fail_rule", "tests/test_a.py::test_time", "same patch", "75.0%", *task_ids):
        assert part in text
    assert str(Path.cwd()) not in text


def test_pages_of_workspaces_have_what_is_recorded(envsynth, task_ids):
    assert envsynth("report", "--out", "here", "--tasks", "1", "--where", f"id = '{task_ids[1]}'").code == 0
    text = Path("here/report.html").read_text("utf-8")
    assert re.findall(r'data-task="([^"]+)"', text) == [task_ids[1]]
    assert "--- a/src/changing.py" in text
    assert "1 of 2 tasks have a page" in " ".join(text.split())


def test_without_what_it_is_drawn_with(envsynth, task_ids, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    printed = envsynth("report")
    assert (printed.code, printed.err.count("\n")) == (2, 1)
    assert 'pip install "envsynth[report]"' in printed.err
    assert "vl_convert" in printed.err
    assert not Path("outputs").exists()


def test_no_catalog(envsynth):
    assert envsynth("report", "--catalog", "none.duckdb").code == 2
