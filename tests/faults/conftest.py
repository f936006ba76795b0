"""A tiny project whose builds need no network, and the command line run on it in processes that may be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from envsynth.catalog import Catalog

FIXES = 3
_TABLES = ("outcome", "verdict", "run", "roster", "blob")


class Ended(NamedTuple):
    """A command that ended."""

    code: int
    events: list[dict[str, Any]]
    err: str

    @property
    def report(self) -> dict[str, Any]:
        assert self.events, self.err
        assert self.events[-1]["event"] == "report", (self.events[-1], self.err)
        return self.events[-1]

    def told(self, kind: str) -> list[str]:
        return [event["text"] for event in self.events if event["event"] == kind]

    @property
    def line(self) -> str:
        """The one line that a failed command says."""
        (line,) = self.err.splitlines()
        return line


class Lab:
    """Builds in folders of their own: `c.duckdb`, `out` and `cache` below one."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository

    def command(self, folder: Path, *options: str, source: str = "") -> list[str]:
        words = ["build", "--json", "--source", source or f"{self.repository} trusted=yes"]
        for name, place in (("--catalog", "c.duckdb"), ("--out", "out"), ("--cache", "cache")):
            words += [] if name in options else [name, str(folder / place)]
        words += [] if "--sandbox" in options else ["--sandbox", "local"]
        words += [] if "--jobs" in options else ["--jobs", "1"]
        return [*words, *options]

    def start(
        self, folder: Path, *options: str, source: str = "", fault: Mapping[str, object] | None = None, **variables: str
    ) -> subprocess.Popen[str]:
        """The command in a session of its own. `fault`: see `faulty.py`."""
        program = [str(Path(__file__).with_name("light.py"))]
        if fault is not None:
            given = {"when": "before", "number": 1, "match": "", "mark": str(folder / "struck"), "action": "kill"}
            variables["FAULT"] = json.dumps(given | dict(fault))
            program = [str(Path(__file__).with_name("faulty.py"))]
        folder.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [sys.executable, *program, *self.command(folder, *options, source=source)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            cwd=self.repository.parent, env=os.environ | variables | {"LAB": str(folder)},
        )  # fmt: skip

    def end(self, process: subprocess.Popen[str], timeout: float = 120) -> Ended:
        """What a process came to; one that hangs is killed, and the test fails."""
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            pytest.fail(f"hangs: {process.communicate()}")
        return Ended(process.returncode, [json.loads(line) for line in out.splitlines()], err)

    def build(self, folder: Path, *options: str, timeout: float = 120, **more: Any) -> Ended:
        return self.end(self.start(folder, *options, **more), timeout)

    def survivors(self, folder: Path, seconds: float = 10) -> list[str]:
        """Processes that are still at work for a folder when that long has passed; nobody may be, soon."""
        deadline = time.monotonic() + seconds
        while (found := list(_working_for(folder))) and time.monotonic() < deadline:
            threading.Event().wait(0.05)
        return found

    def statuses(self, folder: Path) -> dict[str, str]:
        """Status by commit, so far."""
        if not (folder / "c.duckdb").exists():
            return {}
        with Catalog.open(folder / "c.duckdb", read_only=True) as catalog:
            return {outcome.lead.ref: outcome.status.value for outcome in catalog.outcomes()}

    def content(self, folder: Path) -> dict[str, object]:
        """All that a catalog says, and how many rows it says it with."""
        with Catalog.open(folder / "c.duckdb", read_only=True) as catalog:
            dump = dict(catalog.dump())
            assert dump["missing"] == []
            rows = {table: catalog.query(f"SELECT count(*) FROM {table}").rows for table in _TABLES}
        return {**dump, "rows": rows}

    def pack(self, folder: Path) -> dict[str, bytes]:
        """Files of the pack, by path below `out`; leftovers would be among them."""
        return {
            str(path.relative_to(folder / "out")): path.read_bytes()
            for path in (folder / "out").rglob("*") if path.is_file()
        }  # fmt: skip


def _working_for(folder: Path) -> Iterator[str]:
    """Command lines of the processes that were started with the folder as their `$LAB`."""
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if f"LAB={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                yield (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


def _git(folder: Path, *words: str) -> None:
    identity = {
        f"GIT_{who}_{what}": "dev@host.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    moment = {"GIT_AUTHOR_DATE": "2026-05-05T12:00:00Z", "GIT_COMMITTER_DATE": "2026-05-05T12:00:00Z"}
    clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, env=os.environ | identity | moment | clean
    )


@pytest.fixture(scope="session")
def make_project() -> Callable[..., Path]:
    """Makes a repository of so many fixes, each with a unittest; `body`: lines that each new test begins with."""

    def make(folder: Path, fixes: int = FIXES, body: str = "", extra: Mapping[str, str] | None = None) -> Path:
        for name in ("calc", "tests"):
            (folder / name).mkdir(parents=True)
        for name, text in {"LICENSE": "MIT\n", "tests/__init__.py": "", **(extra or {})}.items():
            (folder / name).write_text(text)
        functions = [f"def step{number}(x):\n    return x + {number}\n" for number in range(fixes)]

        def commit(message: str) -> None:
            (folder / "calc/__init__.py").write_text("\n\n".join(functions))
            _git(folder, "add", "-A")
            _git(folder, "commit", "-q", "-m", message)

        (folder / "tests/test_old.py").write_text(
            "import unittest\nimport calc\n\n\nclass Old(unittest.TestCase):\n"
            "    def test_step(self):\n        self.assertTrue(callable(calc.step0))\n"
        )
        _git(folder, "init", "-q", "-b", "main")
        commit("First version")
        for number in range(fixes):
            functions[number] = f"def step{number}(x):\n    return x * 2 + {number}\n"
            (folder / f"tests/test_step{number}.py").write_text(
                f"import unittest\nfrom calc import step{number}\n\n\nclass Step{number}(unittest.TestCase):\n"
                f"    def test_step{number}(self):\n{body}        self.assertEqual(step{number}(5), {10 + number})\n"
            )
            commit(
                f"Fix step number {number}\n\nThe function step{number} gave a wrong result: it should double its "
                f"argument before it adds {number}, as the documentation promises.\n"
            )
        return folder

    return make


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, make_project: Callable[..., Path]) -> Lab:
    return Lab(make_project(tmp_path_factory.mktemp("source") / "calc-project"))


@pytest.fixture(scope="session")
def undisturbed(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a build that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    ended = lab.build(folder)
    assert ended.code == 0, ended.err
    assert ended.report["statuses"] == {"admitted": FIXES, "dropped": 1}
    return folder


@pytest.fixture(scope="session")
def undisturbed_one(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with `--limit 1`: one task, for faults that need no more."""
    folder = tmp_path_factory.mktemp("undisturbed-one")
    assert lab.build(folder, "--limit", "1").report["statuses"] == {"admitted": 1}
    return folder
