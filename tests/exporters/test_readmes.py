"""READMEs of packs, read by a stranger: every command and every line of code in them is run as it is written."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import tiny_task as tiny
import tiny_worlds as worlds
from uv import find_uv_bin

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.exporters._target_env import _targets
from envsynth.exporters.chat import export_chat
from envsynth.models import Attempt, AttemptGrade, AttemptStatus, ChatMessage, ChatTool, Ending, Policy
from envsynth.runtime.interpreters import installed_interpreters

_FENCE = re.compile(
    r"(?:<!-- not run: needs (?P<lack>[^\n]+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.S | re.M
)
_REWARDS = r"""['"]reward['"]: 0\.0, ['"]outcome['"]: 0\.0, ['"]gate['"]: 1\.0.*['"]check\.end_state['"]: 0\.0"""
_NOTHING_FOUND = "no rows"
"""What the example's call is answered with: no customer is called so."""
SAYS: Mapping[str, tuple[str, ...]] = {
    "gymnasium": (_NOTHING_FOUND, r"0\.0 \{'end_state': False", r"\[0\. 0\. 0\. 0\.\] no rows"),
    "skyrl-gym": (_NOTHING_FOUND, _REWARDS),
    "trl": (_NOTHING_FOUND, r"^0\.0$"),
    "reasoning-gym": (r"^0\.0 1\.0$", r"'reward': 1\.0"),
    "openenv": (r'"status": ?"healthy"', _NOTHING_FOUND, "^0.0 .*" + _REWARDS, "^{" + _REWARDS),
    "verifiers": (r'"invalid": 0,', rf'"valid": {len(worlds.TASKS)}$', _REWARDS),
    "inspect": ("^0.0 .*" + _REWARDS,),
    "mcp": (_NOTHING_FOUND, _REWARDS),
    "agentlightning": (r'"status": ?"ok"', r"^\w+ queuing$"),
    "verl": (r'"agent_name": ?"desk_tasks"', r"/desk_tasks/rows\.parquet \S+/desk_tasks/agent_loop\.yaml$"),
    "nemo-gym": (r"^returns-desk-\S+ ", r"^\['\w+', ", r"^=+ 1 passed in "),
}
"""What is true of the worlds' README of each target, in the order of its blocks."""
_PLAYED = ("^shop$|shop/prices.py|exit_code: 0", r"^0\.0( \{'fail_to_pass': False, 'pass_to_pass': True.*)?$")
SAYS_OF_WORKSPACES: Mapping[str, tuple[str, ...]] = {
    "gymnasium": _PLAYED, "trl": _PLAYED, "swebench": ("looks well formed",),
}  # fmt: skip
BEGINS: Mapping[str, list[str]] = {"harbor": ["bash", "bash"], "nemo-gym": ["python", "bash"]}
"""Languages of the first blocks that are run, where they are not those of a package: install, then play."""
UNTOLD = ("inspect", "reasoning-gym")
"""Whose README does not print the first task's instruction."""
SILENT = ("inspect", "skyrl-gym", "agentlightning", "verifiers", "reasoning-gym")
"""Whose README does not print the tools."""


class Block(NamedTuple):
    """A fenced block of a README."""

    before: str
    """The text above it."""
    lack: str
    """Why it is not run here; empty where it is."""
    language: str
    text: str


def blocks_of(readme: Path) -> list[Block]:
    text, found, end = readme.read_text("utf-8"), [], 0
    for match in _FENCE.finditer(text):
        found.append(Block(text[end : match.start()], match["lack"] or "", match["language"], match["text"]))
        end = match.end()
    assert text.count("```") == 2 * len(found), "a fence is not closed"
    assert text.count("<!-- not run") == sum(bool(block.lack) for block in found), "a mark stands above no block"
    return found


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("readme-worlds"))


def world_pack(target: str, store: Cache, out: Path, **options: str) -> Path:
    tasks = [worlds.make_world_task(store, name) for name in worlds.TASKS]
    return plugins.load("exporters", target)().export(tasks, store, out / "desk-tasks", options)


def workspace_pack(target: str, cache: Cache, out: Path) -> Path:
    return plugins.load("exporters", target)().export([tiny.make_task(cache)], cache, out / "shop-tasks", {})


def says_what_it_needs(pack: Path, target: str) -> None:
    blocks = blocks_of(pack / "README.md")
    run = [block for block in blocks if not block.lack]
    assert {block.language for block in blocks} <= {"bash", "python", "json"}
    assert [block.language for block in run[:2]] == BEGINS.get(target, ["bash", "python"])
    assert run[0].text.startswith("pip install") or run[0].language == "python"
    for block in run[:2]:
        assert len([line for line in block.text.splitlines() if line.strip()]) <= 15
    for block in blocks:
        if block.lack:
            said = " ".join(block.before.strip().rpartition("\n\n")[2].split())
            assert re.search(rf"\bneeds?\b.*\b{block.lack}\b", said), said


@pytest.mark.parametrize("target", [*SAYS, "parquet", "harbor"])
def test_a_readme_says_what_it_needs_before_what_it_shows(target: str, store: Cache, tmp_path: Path) -> None:
    says_what_it_needs(world_pack(target, store, tmp_path), target)


@pytest.mark.parametrize("target", [*SAYS_OF_WORKSPACES, "swesmith", "harbor", "verl", "nemo-gym"])
def test_a_readme_of_workspaces_says_what_it_needs(target: str, cache: Cache, tmp_path: Path) -> None:
    says_what_it_needs(workspace_pack(target, cache, tmp_path), target)


def test_a_readme_says_that_naming_images_takes_docker(store: Cache, tmp_path: Path) -> None:
    pack = world_pack("harbor", store, tmp_path, image="registry.example/desk:{task}-{part}-{digest}")
    says_what_it_needs(pack, "harbor")
    (block,) = (block for block in blocks_of(pack / "README.md") if "docker build" in block.text)
    assert block.lack == "Docker"


class Stranger:
    """Somebody in a virtual environment of their own, with nothing but the pack and its README."""

    def __init__(self, venv: Path, pack: Path, cache: Path) -> None:
        self._pack = pack
        blocks = [block.text for block in blocks_of(pack / "README.md") if not block.lack]
        self.installs = [text for text in blocks if "pip install" in text]
        self._groups: list[int] = []
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ENVSYNTH"))},
            "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(venv),
            "ENVSYNTH_CACHE": str(cache), "HF_HOME": str(cache / "hub"), "PIP_QUIET": "1",
        }  # fmt: skip
        if any("pip install ." in text for text in self.installs):
            # So that it is the installed package that is imported, and not this folder.
            self.variables["PYTHONSAFEPATH"] = "1"

    def run(self, block: Block, log: Path) -> str:
        """What a block prints."""
        command = ["bash", "-e", "-o", "pipefail", "-c"] if block.language == "bash" else ["python", "-c"]
        with log.open("w+", encoding="utf-8") as printed:
            # Into a file, since a server that a block leaves behind would hold a pipe open.
            process = subprocess.Popen(
                [*command, block.text], cwd=self._pack, env=self.variables, stdin=subprocess.DEVNULL, stdout=printed,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            self._groups.append(process.pid)
            code = process.wait(timeout=600)
            printed.seek(0)
            text = printed.read()
        assert code == 0, f"{block.text}\nended with {code}:\n{text}"
        return text

    def read(self, folder: Path) -> str:
        """What all blocks of the README print, those left out that say why."""
        runnable = [block for block in blocks_of(self._pack / "README.md") if block.language != "json"]
        return "\n".join(
            self.run(block, folder / f"{number}.log") for number, block in enumerate(runnable) if not block.lack
        )

    def leave(self) -> None:
        """End what the blocks have left running."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


@contextmanager
def stranger(target: str, pack: Path, folder: Path, cache: Path) -> Iterator[Stranger]:
    """A stranger whose environment has pip, and what the pack asks for: uv installs that much quicker than pip."""
    readme = (pack / "README.md").read_text("utf-8")
    if "curl" in readme and shutil.which("curl") is None:
        pytest.skip("the README's command needs curl")
    for port in map(int, re.findall(r"http://127\.0\.0\.1:(\d+)", readme)):
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                pytest.skip(f"port {port}, which the README names, is taken")
    known = {one.version: str(one.path) for one in installed_interpreters()}
    versions = _targets()[target]["python"] if target in _targets() else ["3.11", "3.12", "3.13"]
    python = next((known[version] for version in versions if version in known), versions[0])
    uv = find_uv_bin()
    subprocess.run([uv, "venv", "--quiet", "--no-config", "--seed", "--python", python, folder / "venv"], check=True)
    one, project = Stranger(folder / "venv", pack, cache), pack / "pyproject.toml"
    needed = tomllib.loads(project.read_text("utf-8"))["project"]["dependencies"] if project.is_file() else []
    if needed and one.installs:
        install = [uv, "pip", "install", "--quiet", "--no-config", "--python", str(folder / "venv" / "bin" / "python")]
        subprocess.run([*install, *needed], check=True)
    try:
        yield one
    finally:
        one.leave()


def compared(printed: str) -> list[str]:
    """Labels of the trajectories that the pack's own replay has found the same."""
    return re.findall(r"^same +\S+ +(\S+) +expected", printed, re.M)


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("target", SAYS)
def test_a_readme_of_worlds_runs_as_written(target: str, store: Cache, tmp_path: Path) -> None:
    pack = world_pack(target, store, tmp_path)
    name = min(worlds.TASKS, key=lambda name: worlds.make_world_task(store, name).id)
    with stranger(target, pack, tmp_path, tmp_path / "cache") as reader:
        printed = reader.read(tmp_path)
    assert compared(printed) == sorted(worlds.entry(name)["panel"])
    assert "differs" not in printed
    place = 0
    for words in SAYS[target]:
        found = re.compile(words, re.M).search(printed, place)
        assert found, f"{words!r} is not said after {place} of {printed}"
        place = found.end()
    if target not in UNTOLD:
        assert worlds.entry(name)["instruction"].split("\n")[0][:100] in printed
    if target not in SILENT:
        assert [tool.name for tool in worlds.world(name).tools if tool.name not in printed] == []


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.skipif(bool(tiny.no_bubblewrap()), reason=tiny.no_bubblewrap())
@pytest.mark.parametrize("target", SAYS_OF_WORKSPACES)
def test_a_readme_of_workspaces_runs_as_written(target: str, cache: Cache, tmp_path: Path) -> None:
    pack = workspace_pack(target, cache, tmp_path)
    with stranger(target, pack, tmp_path, cache.root) as reader:
        printed = reader.read(tmp_path)
    assert compared(printed) == ["idle", "reference"]
    assert "It must be a percentage" in printed
    assert [words for words in SAYS_OF_WORKSPACES[target] if not re.search(words, printed, re.M)] == []


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of Harbor's trials need root")
@pytest.mark.skipif(bool(tiny.no_bubblewrap()), reason=tiny.no_bubblewrap())
def test_a_readme_of_trials_runs_as_written(store: Cache, tmp_path: Path) -> None:
    task = worlds.make_world_task(store, "returns-desk-refund")
    pack = plugins.load("exporters", "harbor")().export([task], store, tmp_path / "desk-tasks", {})
    with stranger("harbor", pack, tmp_path, tmp_path / "cache") as reader:
        printed = reader.read(tmp_path)
    trials = [json.loads(path.read_text("utf-8")) for path in pack.glob("jobs/*/*/result.json")]
    earned = [(trial["agent_info"]["name"], trial["verifier_result"]["rewards"]["reward"]) for trial in trials]
    assert sorted(earned) == [("nop", 0.0), ("oracle", 1.0)], printed
    assert compared(printed) == sorted(worlds.entry("returns-desk-refund")["panel"])


@pytest.mark.slow
@pytest.mark.network
def test_a_readme_of_repairs_runs_as_written(cache: Cache, tmp_path: Path) -> None:
    pack = workspace_pack("swesmith", cache, tmp_path)
    with stranger("swesmith", pack, tmp_path, tmp_path / "cache") as reader:
        printed = reader.read(tmp_path)
    assert f"{tiny.make_task(cache).id} {tiny.make_task(cache).candidate.instruction[:100]}" in printed


@pytest.mark.slow
@pytest.mark.network
def test_a_readme_of_tables_runs_as_written(store: Cache, tmp_path: Path) -> None:
    pack = world_pack("parquet", store, tmp_path)
    name = min(worlds.TASKS, key=lambda name: worlds.make_world_task(store, name).id)
    with stranger("parquet", pack, tmp_path, tmp_path / "cache") as reader:
        printed = reader.read(tmp_path)
    assert f"{worlds.make_world_task(store, name).id} {worlds.entry(name)['instruction'][:100]}" in printed


def test_a_readme_of_chat_runs_as_written(tmp_path: Path) -> None:
    grade = AttemptGrade(
        reward=1.0, outcome=1.0, process=None, gate=1.0, checks={"right": True}, criteria={}, penalties={}, detail={}
    )
    said = (ChatMessage(role="user", content="Look."), ChatMessage(role="assistant", content="I looked."))
    attempt = Attempt(
        task="shop-1", lead="l", played="a" * 64, policy=Policy.MODEL, model="small", settings="b" * 64, k=0,
        status=AttemptStatus.FINISHED, ending=Ending.SUBMITTED, grade=grade, conversation=said,
        tools=(ChatTool(name="look", description="Look.", parameters={"type": "object", "properties": {}}),),
    )  # fmt: skip
    pack = export_chat([attempt], tmp_path / "talks").folder
    (block,) = blocks_of(pack / "README.md")
    printed = Stranger(Path(os.__file__), pack, tmp_path).run(block, tmp_path / "log")
    assert printed == "shop-1 1.0 True 1 of 2 messages\n"
