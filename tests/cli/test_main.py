"""The boundary: every error is one line with the right exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from envsynth import plugins
from envsynth.errors import ConfigError, SandboxError
from envsynth.exporters.replay import ReplayLine, ReplayReport

COMMANDS = [
    "build",
    "validate",
    "sources check",
    "catalog ls",
    "catalog show",
    "catalog stats",
    "catalog sql",
    "catalog merge",
    "catalog rm",
    "export",
    "replay",
    "play",
    "plugins",
    "plugins check",
    "doctor",
    "image build",
    "image ls",
    "image prune",
]
HEAVY = ("duckdb", "pydantic", "git", "docker", "openai", "networkx", "libcst", "pydriller", "gymnasium", "numpy")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(envsynth, command):
    printed = envsynth(*command.split(), "--help")
    assert printed.code == 0
    assert f"Usage: envsynth {command}" in printed.out


@pytest.mark.parametrize(
    "arguments", ["bogus", "build --foo", "build --jobs x", "catalog show", "catalog", "sources", "build"]
)
def test_usage_errors_are_one_line(envsynth, arguments):
    printed = envsynth(*arguments.split())
    assert (printed.code, printed.out) == (2, "")
    assert printed.err.startswith("envsynth: ")
    assert printed.err.count("\n") == 1
    assert "Next: envsynth" in printed.err


def test_version_and_bare_call(envsynth):
    assert envsynth("--version").out.startswith("envsynth 0.")
    assert envsynth().code == 2


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ConfigError("it is wrong", next_step="right it"), 2, "envsynth: it is wrong. Next: right it\n"),
        (SandboxError("no sandbox"), 3, "envsynth: no sandbox\n"),
        (KeyError("x"), 3, "envsynth: envsynth itself failed, which is a bug; --debug shows where (KeyError: 'x')\n"),
        (
            KeyboardInterrupt(),
            130,
            "envsynth: interrupted; finished work is kept, the same command goes on with the rest\n",
        ),
    ],
)
def test_errors_and_exit_codes(envsynth, monkeypatch, error, code, line):
    def fail(group: str) -> None:
        raise error

    monkeypatch.setattr(plugins, "listing", fail)
    printed = envsynth("plugins")
    assert (printed.code, printed.err) == (code, line)
    debugged = envsynth("plugins", "--debug")
    assert debugged.code == code
    assert ("Traceback" in debugged.err) == (code != 130)


@pytest.mark.parametrize(
    "statement", ["import envsynth, envsynth.errors", "import envsynth.cli.main as m; m.run(['--help'])"]
)
def test_starting_imports_nothing_heavy(statement):
    code = f"{statement}\nimport sys; print(sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr == "[]\n"


def test_a_reader_that_goes_away_is_no_error(task_ids):
    code = (
        "import sys; from envsynth.cli.main import main;"
        "sys.argv[1:] = ['catalog', 'sql', 'SELECT range FROM range(100000)']; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "range\n"
        child.stdout.close()
        assert child.stderr.read() == ""
    assert child.returncode == 141


def test_plugins_lists_and_loads(envsynth):
    rows = json.loads(envsynth("plugins", "--json").out)
    assert {"group": "exporters", "name": "gymnasium"}.items() <= next(
        r for r in rows if r["name"] == "gymnasium"
    ).items()
    assert "generators\trepository\tenvsynth.generators.repository" in envsynth("plugins").out


def test_sources_check(envsynth):
    Path("repo/.git").mkdir(parents=True)
    Path("list.txt").write_text("repo trusted=yes limit=3\nnothing\nhttps://host/o/r@v1\n")
    printed = envsynth("sources", "check", "list.txt")
    assert printed.code == 2
    assert "list.txt:1\tgit\trepo\t\tlimit=3 trusted=yes\n" in printed.out
    assert "list.txt:3\tgit\thttps://host/o/r\tv1\t\n" in printed.out
    assert "envsynth: list.txt:2: there is no 'nothing'" in printed.err
    assert printed.err.endswith("2 good, 1 bad\n")
    assert envsynth("sources", "check", "repo").code == 0
    documents = [json.loads(line) for line in envsynth("sources", "check", "list.txt", "--json").out.splitlines()]
    assert [next(iter(document)) for document in documents] == ["source", "source", "error"]


def test_sources_check_misses_the_generator(envsynth, monkeypatch):
    known = {"repository": plugins._registry("generators")["repository"]}
    monkeypatch.setattr(plugins, "_registry", lambda group: known)
    printed = envsynth("sources", "check", "mechanism:bandit")
    assert printed.code == 2
    assert "no generator named 'mechanism'" in printed.err


def test_export_selects_and_hands_over(envsynth, task_ids, monkeypatch):
    calls = []

    class Recording:
        name = "recording"

        def export(self, tasks, blobs, out, options):
            calls.append(([task.id for task in tasks], out, options))
            assert blobs.get(tasks[0].candidate.reference.patch)
            return out

    monkeypatch.setattr(plugins, "load", lambda group, name: Recording)
    printed = envsynth("export", "--where", "flickering > 0", "--out", "here", "--option", "version=2")
    assert (printed.code, printed.out) == (0, "1 tasks in here\n")
    assert envsynth("export").code == 0
    assert calls[0] == ([task_ids[0]], Path("here"), {"version": "2"})
    assert (calls[1][0], calls[1][1].name) == (task_ids, "envsynth-gymnasium")
    nothing = envsynth("export", "--where", "false")
    assert nothing.code == 2
    assert "no task is selected (none fits false)" in nothing.err
    assert envsynth("export", "--option", "version").code == 2


@pytest.mark.parametrize("code", [0, 1, 3])
def test_replay_shows_lines_and_passes_the_code_on(envsynth, monkeypatch, code):
    line = ReplayLine("t-1", "reference", 1.0, None if code == 3 else 1.0 - code, "same", "no registry")

    def fake(pack, *, task, sandbox, target, progress):
        progress(line)
        return ReplayReport((line,), code, "broke off" if code == 3 else "")

    monkeypatch.setattr("envsynth.exporters.replay.replay", fake)
    printed = envsynth("replay", "pack")
    assert printed.code == code
    assert "t-1  reference  expected 1, got " in printed.out
    assert ("no registry" in printed.out) == (code == 3)
    assert ("broke off" in printed.err) == (code == 3)
    assert json.loads(envsynth("replay", "pack", "--json").out)["label"] == "reference"


def test_doctor_says_what_is_missing(envsynth, monkeypatch):
    rows = json.loads(envsynth("doctor", "--json").out)
    assert {"system", "git", "uv", "pythons", "disk", "cache"} <= {row["what"] for row in rows}
    monkeypatch.setenv("PATH", "/nonexistent")
    printed = envsynth("doctor")
    assert printed.code == 3
    assert "fails\tgit\tnot found. Next: install git" in printed.out
