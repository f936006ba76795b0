"""The whole command on a real repository, installed from the registry: built, built again, killed, replayed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from envsynth.catalog import Catalog
from envsynth.exporters.replay import replay

pytestmark = [pytest.mark.slow, pytest.mark.network]

FIXES = [
    (
        "the mean of nothing",
        "def mean(xs):\n    return sum(xs) / len(xs)\n",
        "def mean(xs):\n    return sum(xs) / max(1, len(xs))\n",
        "from calc import mean\n\n\ndef test_mean_of_nothing_is_zero():\n    assert mean([]) == 0\n",
    ),
    (
        "a value below the lower bound",
        "def clamp(x, low, high):\n    return min(x, high)\n",
        "def clamp(x, low, high):\n    return max(low, min(x, high))\n",
        "from calc import clamp\n\n\ndef test_clamp_holds_the_lower_bound():\n    assert clamp(-3, 0, 9) == 0\n",
    ),
    (
        "letters after an apostrophe",
        "def title(text):\n    return text.title()\n",
        "def title(text):\n    return ' '.join(w.capitalize() for w in text.split())\n",
        'from calc import title\n\n\ndef test_title_keeps_them_small():\n    assert title("it\'s") == "It\'s"\n',
    ),
]
OLD_TEST = "from calc import clamp\n\n\ndef test_clamp():\n    assert clamp(5, 0, 3) == 3\n"


def git(folder: Path, *words: str) -> None:
    identity = {
        f"GIT_{who}_{what}": "dev@host.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    moment = {"GIT_AUTHOR_DATE": "2026-05-05T12:00:00Z", "GIT_COMMITTER_DATE": "2026-05-05T12:00:00Z"}
    subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, env=os.environ | identity | moment
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "calc"
    (folder / "calc").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "LICENSE").write_text("MIT\n")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "calc"\nversion = "1"\nrequires-python = ">=3.8"\n'
        '[project.optional-dependencies]\ntest = ["pytest"]\n'
    )
    broken = [fix[1] for fix in FIXES]
    (folder / "calc/__init__.py").write_text("\n\n".join(broken))
    (folder / "tests/test_old.py").write_text(
        "from calc import clamp\n\n\ndef test_clamp():\n    assert clamp(5, 0, 3) == 3\n"
    )
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "First version")
    for number, (what, _, fixed, test) in enumerate(FIXES):
        broken[number] = fixed
        (folder / "calc/__init__.py").write_text("\n\n".join(broken))
        (folder / f"tests/test_{number}.py").write_text(test)
        git(folder, "add", "-A")
        body = f"The function gave a wrong result for {what}; it should give the one that the documentation promises."
        git(folder, "commit", "-q", "-m", f"Fix {what}\n\n{body}")
    return folder


def command(repository: Path, folder: Path) -> list[str]:
    return [
        sys.executable, "-c", "from envsynth.cli.main import main; main()", "build", "--json", "--source",
        f"{repository} trusted=yes", "--catalog", str(folder / "c.duckdb"), "--out", str(folder / "out"), "--cache",
        str(folder / "cache"),
    ]  # fmt: skip


def build(repository: Path, folder: Path) -> dict[str, object]:
    done = subprocess.run(
        command(repository, folder), capture_output=True, text=True, check=False, cwd=repository.parent
    )
    assert done.returncode == 0, done.stderr + done.stdout
    report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return report


def dump(folder: Path) -> dict[str, object]:
    with Catalog.open(folder / "c.duckdb", read_only=True) as catalog:
        return dict(catalog.dump())


@pytest.fixture(scope="module")
def undisturbed(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    report = build(repository, folder)
    assert (report["statuses"], report["reused"]) == ({"admitted": 3, "dropped": 1}, 0)
    return folder


def test_a_second_build_does_nothing_again(repository: Path, undisturbed: Path) -> None:
    before = dump(undisturbed)
    pack = {path: path.read_bytes() for path in (undisturbed / "out").rglob("*") if path.is_file()}
    report = build(repository, undisturbed)
    assert report["reused"] == 3
    assert dump(undisturbed) == before
    assert pack == {path: path.read_bytes() for path in (undisturbed / "out").rglob("*") if path.is_file()}


def test_a_build_that_is_killed_again_and_again_ends_as_an_undisturbed_one(
    repository: Path, undisturbed: Path, tmp_path: Path
) -> None:
    moments = random.Random(7)
    for _ in range(6):
        process = subprocess.Popen(
            command(repository, tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=repository.parent,
            start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(timeout=moments.uniform(0.5, 6))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    build(repository, tmp_path)
    assert dump(tmp_path) == dump(undisturbed)


def test_the_pack_gives_every_reward_again(undisturbed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSYNTH_CACHE", str(undisturbed / "cache"))
    monkeypatch.setenv("ENVSYNTH_SANDBOX", os.environ.get("ENVSYNTH_SANDBOX", "auto"))
    (pack,) = (undisturbed / "out").iterdir()
    report = replay(pack)
    assert (report.exit_code, report.trouble) == (0, "")
    labels = [line.label.partition(":")[0] for line in report.lines]
    assert {"reference", "idle", "attack"} <= set(labels)
    assert (labels.count("reference"), labels.count("idle")) == (3, 3)
