from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import tiny_task as tiny

from envsynth.cache import Cache
from envsynth.errors import ExportError
from envsynth.exporters._folder import manifest_bytes
from envsynth.exporters.gymnasium import Gymnasium
from envsynth.exporters.replay import replay


@pytest.fixture
def pack(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENVSYNTH_CACHE", str(cache.root))
    monkeypatch.delenv("ENVSYNTH_SANDBOX", raising=False)
    return Gymnasium().export([tiny.make_task(cache)], cache, tmp_path / "shop-tasks", {})


def forge(pack: Path, old: str, new: str) -> None:
    """Change the panel, and the manifest with it."""
    panel, manifest = pack / "panel.jsonl", pack / "manifest.json"
    assert old in panel.read_text()
    panel.write_text(panel.read_text().replace(old, new))
    document = json.loads(manifest.read_text())
    document["files"]["panel.jsonl"] = hashlib.sha256(panel.read_bytes()).hexdigest()
    manifest.write_bytes(manifest_bytes(document))


@pytest.fixture
def _bubblewrap() -> None:
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.usefixtures("_bubblewrap")
def test_an_honest_pack_gives_every_reward_again(pack: Path) -> None:
    seen = []
    report = replay(pack, progress=seen.append)
    assert [(line.label, line.expected, line.got, line.verdict) for line in report.lines] == [
        ("idle", 0.0, 0.0, "same"), ("reference", 1.0, 1.0, "same"),
    ]  # fmt: skip
    assert (report.exit_code, report.trouble, tuple(seen)) == (0, "", report.lines)
    assert not list(pack.rglob("__pycache__"))


@pytest.mark.sandbox
@pytest.mark.usefixtures("_bubblewrap")
def test_a_reward_that_differs_is_found(pack: Path) -> None:
    forge(pack, '"label":"idle","outcome":0.0,"reward":0.0', '"label":"idle","outcome":0.0,"reward":1.0')
    report = replay(pack, task=json.loads((pack / "panel.jsonl").read_text().splitlines()[0])["task"])
    assert report.exit_code == 1
    assert [line.verdict for line in report.lines] == ["differs", "same"]


def test_a_failed_environment_is_no_difference(pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ENVSYNTH_CACHE", str(tmp_path / "file"))
    report = replay(pack)
    assert report.exit_code == 3
    assert [(line.got, line.verdict) for line in report.lines] == [(None, "error")] * 2
    assert all(line.error for line in report.lines)


def test_an_unknown_task_or_sandbox_is_named(pack: Path) -> None:
    report = replay(pack, task="nope")
    assert (report.exit_code, report.lines) == (2, ())
    assert "there is no task 'nope'" in report.trouble
    report = replay(pack, sandbox="cellar")
    assert report.exit_code in (2, 3)
    assert "cellar" in (report.trouble or report.lines[0].error)


def test_a_damaged_pack_is_not_played(pack: Path) -> None:
    (pack / "shop_tasks" / "tasks.jsonl").write_text("")
    with pytest.raises(ExportError, match=r"tasks\.jsonl is not as the manifest has it"):
        replay(pack)


@pytest.mark.parametrize("manifest", [None, "", "[]", '{"package": "../x", "files": {}}', '{"package": "x"}'])
def test_another_folder_is_no_pack(tmp_path: Path, manifest: str | None) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(ExportError, match="this is no pack"):
        replay(tmp_path)
