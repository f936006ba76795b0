"""The report in headless Chromium: what its script makes of it."""

from __future__ import annotations

import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no chromium: apt-get install chromium"),
]


def _browse(folder: Path, url: str, *options: str) -> str:
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--no-first-run", f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=3000", *options, url,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=240, check=True)
    return done.stdout.decode("utf-8")


def test_a_tasks_page_steps_through_its_panel(made, tmp_path):
    found = unescape(_browse(tmp_path, f"{made.file.as_uri()}#task={made.shop}", "--dump-dom"))
    assert '<div id="overview" hidden="">' in found
    assert f"<title>{made.shop} – envsynth report</title>" in found
    for part in ("Order four lamps for the shop today", "alternative:note_first", "scripted skill=0.6", "Tables (7)"):
        assert part in found


def test_what_a_task_says_does_not_become_a_script(made, tmp_path):
    found = _browse(tmp_path, f"{made.file.as_uri()}#task={made.evil}", "--dump-dom")
    assert f"<title>{made.evil} – envsynth report</title>" in found
    assert "<img" not in found
    # Shown twice, as instruction and as hint, and in the rubric; each time as text.
    assert found.count("&lt;img src=x onerror=") >= 3


def test_every_trajectory_can_be_stepped_through(made, tmp_path):
    driver = tmp_path / "driver.html"
    text = made.file.read_text("utf-8")
    press = """<script>
      const said = [];
      for (const button of [...document.querySelectorAll("#task td button, #task th button")]) {
        button.click();
        const box = document.querySelector("#task section");
        const next = [...box.querySelectorAll("button")].find((one) => one.textContent.startsWith("Next"));
        let steps = next ? 1 : 0;
        while (next && !next.disabled) { next.click(); steps += 1; }
        const focus = document.activeElement === box ? "focus" : "lost";
        said.push(`${button.textContent}=${steps}:${focus}`);
      }
      document.body.setAttribute("data-said", said.join(";"));
    </script></body>"""
    # The page lets no script run but its own, so its policy goes for this test.
    head, policy, tail = text.partition('<meta http-equiv="Content-Security-Policy"')
    driver.write_text(head + tail.partition(">")[2].replace("</body>", press), "utf-8")
    assert policy
    found = _browse(tmp_path, f"{driver.as_uri()}#task={made.shop}", "--dump-dom")
    said = unescape(found.split('data-said="')[1].split('"')[0]).split(";")
    counts = {one.split("=")[0]: one.rpartition("=")[2].split(":") for one in said}
    assert counts["reference"] == ["4", "focus"]
    assert counts["idle"] == ["0", "focus"]
    assert counts["mutant:five"][0] == "3"
    assert len(said) == 4 + 4


def test_it_prints(made, tmp_path):
    out = tmp_path / "page.pdf"
    _browse(tmp_path, f"{made.file.as_uri()}#task={made.shop}", f"--print-to-pdf={out}", "--no-pdf-header-footer")
    assert out.read_bytes().startswith(b"%PDF-")
    assert out.stat().st_size > 10_000
