"""Packs for Harbor with worlds: the server beside the agent, the record of its calls, and trials of Harbor's own."""

from __future__ import annotations

import io
import json
import os
import runpy
import socket
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import tiny_task as tiny
import tiny_worlds as worlds
import yaml
from pack_files import files_of, task_directories

from envsynth.cache import Cache
from envsynth.exporters._target_env import interpreter_of
from envsynth.exporters.harbor import Harbor
from envsynth.exporters.replay import replay
from envsynth.models import Task
from envsynth.runtime.pack import Pack
from envsynth.runtime.record import graded, read_calls

REFUND = "returns-desk-refund"
AGENTS = Path(__file__).with_name("harbor_attacks.py")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("worlds"))


def exported(store: Cache, out: Path, *names: str, **options: str) -> Path:
    tasks = [worlds.make_world_task(store, name) for name in names or worlds.TASKS]
    return Harbor().export(tasks, store, out, options)


@pytest.fixture(scope="module")
def pack(store: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(store, tmp_path_factory.mktemp("packs") / "desk-tasks")


def unpacked(name: str, content: bytes) -> dict[str, bytes]:
    """A file, or what is in it where it is an archive, those inside opened too; the runtime left out."""
    if not name.endswith(".zip"):
        return {name: content}
    inside: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.namelist():
            if not member.startswith("_envsynth/"):
                inside |= {f"{name}/{path}": found for path, found in unpacked(member, archive.read(member)).items()}
    return inside


def everything(folder: Path) -> bytes:
    return b"\n".join(b"\n".join(unpacked(*file).values()) for file in files_of(folder).items())


def test_a_pack_is_the_same_bytes_each_time(store: Cache, pack: Path, tmp_path: Path) -> None:
    assert files_of(pack) == files_of(exported(store, tmp_path / "desk-tasks"))
    assert "$" not in (pack / "README.md").read_text()
    for directory in task_directories(pack):
        assert set(files_of(directory)) == {
            "task.toml", "instruction.md", "environment/Dockerfile", "environment/docker-compose.yaml",
            "environment/world/Dockerfile", "environment/world/requirements.txt", "environment/world/runtime.zip",
            "environment/world/pack.zip", "environment/world/server.py", "tests/Dockerfile", "tests/test.sh",
            "tests/runtime.zip", "tests/pack.zip", "solution/solve.sh", "solution/client.py", "solution/calls.json",
        }  # fmt: skip
        compile((directory / "environment/world/server.py").read_text(), "server.py", "exec")


def test_both_kinds_are_in_one_pack(store: Cache, cache: Cache, tmp_path: Path) -> None:
    task = worlds.make_world_task(cache, worlds.TASKS[0])
    mixed = Harbor().export([tiny.make_task(cache), task], cache, tmp_path / "mixed-tasks", {})
    readme = (mixed / "README.md").read_text()
    assert "## Workspaces" in readme
    assert "## Worlds" in readme
    assert len(task_directories(mixed)) == 2


def test_the_configuration_gives_the_agent_a_server_and_the_grader_its_record(pack: Path) -> None:
    for directory in task_directories(pack):
        told = tomllib.loads((directory / "task.toml").read_text())
        (artifact,), (server,) = told["artifacts"], told["environment"]["mcp_servers"]
        services = yaml.safe_load((directory / "environment/docker-compose.yaml").read_text())["services"]
        assert artifact["service"] == server["name"]
        assert set(services) == {artifact["service"]}
        assert services["world"]["network_mode"] == "service:main"
        assert artifact["source"] in (directory / "tests/test.sh").read_text()
        assert f'Path("{artifact["source"]}")' in (directory / "environment/world/server.py").read_text()
        assert server["transport"] == "streamable-http"
        assert server["url"] in (directory / "instruction.md").read_text()
        assert told["verifier"]["environment_mode"] == "separate"
        assert told["environment"]["network_mode"] == told["verifier"]["environment"]["network_mode"] == "no-network"
        assert told["agent"]["user"] == "agent"


@pytest.mark.parametrize("name", worlds.TASKS)
def test_the_agents_image_is_made_of_nothing_and_the_servers_of_no_check(pack: Path, name: str) -> None:
    (directory,) = (found for found in task_directories(pack) if found.name.startswith(name))
    words = [line.split()[0] for line in (directory / "environment/Dockerfile").read_text().splitlines() if line]
    assert set(words) <= {"#", "FROM", "RUN", "WORKDIR"}
    served, kept = everything(directory / "environment"), everything(directory / "tests")
    checks = [check["sql"] for check in worlds.entry(name)["verifier"]["checks"] if check.get("sql")]
    for secret in [*(json.dumps(sql)[1:-1] for sql in checks), '"panel"', '"label"', '"reference"', '"checks"']:
        assert secret.encode() not in served
    assert all(json.dumps(sql)[1:-1].encode() in kept for sql in checks)
    assert b'"label":"reference"' in kept
    assert b'"tables"' in served


def test_a_solution_ends_in_any_locale(pack: Path) -> None:
    folder = task_directories(pack)[0] / "solution"
    code = (
        "import client, sys; sys.argv[1:] = ['calls.json']\n"
        "client.post = lambda message: {'result': {'content': [{'text': '\\u0631'}]}}\nclient.main()\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\\u0631") == len(json.loads((folder / "calls.json").read_text()))


def run_alone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the module that a grader's image runs, where nothing of this project can be imported."""
    code = (
        "import runpy, sys; sys.modules['envsynth'] = None; sys.argv[0] = 'record'\n"
        "runpy.run_module('_envsynth.runtime.record', run_name='__main__', alter_sys=True)"
    )
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def laid_out(directory: Path, part: str, place: Path) -> Path:
    for name, folder in (("runtime", place), ("pack", place / "pack")):
        with zipfile.ZipFile(directory / part / f"{name}.zip") as archive:
            archive.extractall(folder)
    return place


def test_what_a_graders_image_has_is_enough_to_grade(pack: Path, tmp_path: Path) -> None:
    (directory,) = (found for found in task_directories(pack) if found.name.startswith(REFUND))
    grader = laid_out(directory, "tests", tmp_path / "grader")
    assert run_alone(grader, "prepare", "pack").returncode == 0
    head = json.dumps({"schema": 1, "task": directory.name})
    calls = json.loads((directory / "solution/calls.json").read_text())
    for number, lines in enumerate(([], calls)):
        record = tmp_path / f"record{number}"
        record.write_text("".join(f"{line}\n" for line in [head, *map(json.dumps, lines)]))
        done = run_alone(grader, "grade", "pack", str(record), str(tmp_path))
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / "reward.json").read_text())["reward"] == float(number)
    record.write_text(record.read_text()[:-1])
    done = run_alone(grader, "grade", "pack", str(record), str(tmp_path))
    assert (done.returncode, (tmp_path / "reward.json").exists()) == (3, False)
    assert "its end is missing" in done.stderr


def test_images_have_names_where_they_are_asked_for(store: Cache, tmp_path: Path) -> None:
    pack = exported(store, tmp_path / "desk-tasks", image="registry.example/desk:{task}-{part}-{digest}")
    lines = [line.split() for line in (pack / "images.txt").read_text().splitlines()]
    assert sorted(folder for _, folder in lines) == sorted(
        f"tasks/{directory.name}/{part}"
        for directory in task_directories(pack) for part in ("environment", "environment/world", "tests")
    )  # fmt: skip
    named = dict((folder, image) for image, folder in lines)
    for directory in task_directories(pack):
        told = tomllib.loads((directory / "task.toml").read_text())
        services = yaml.safe_load((directory / "environment/docker-compose.yaml").read_text())["services"]
        assert told["environment"]["docker_image"] == named[f"tasks/{directory.name}/environment"]
        assert told["verifier"]["environment"]["docker_image"] == named[f"tasks/{directory.name}/tests"]
        assert services["world"]["image"] == named[f"tasks/{directory.name}/environment/world"]
    shared = exported(store, tmp_path / "shared-tasks", image="registry.example/desk:{part}-{digest}")
    # The agents' is one for all worlds.
    assert len((shared / "images.txt").read_text().splitlines()) == 1 + 2 * len(worlds.TASKS)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


CLIENT = """
import sys, json, anyio
from mcp import Client

async def play():
    url, calls = sys.argv[1], json.loads(sys.argv[2])
    said = []
    # The first calls in the handshake's way, the others in the sessionless one: it is one episode.
    for mode, part in (("legacy", calls[:3]), ("2026-07-28", calls[3:])):
        async with Client(url, mode=mode) as client:
            tools = (await client.list_tools()).tools
            for call in part:
                told = await client.call_tool(call["tool"], call["arguments"])
                said.append([call["tool"], told.is_error, told.content[0].text])
    print(json.dumps({"tools": [[tool.name, tool.input_schema] for tool in tools], "said": said}))

anyio.run(play)
"""


WAIT = """
import socket, sys, time
for _ in range(600):
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close()
        break
    except OSError:
        time.sleep(0.1)
"""


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.usefixtures("targets_kept")
def test_clients_of_both_kinds_of_protocol_play_one_episode(pack: Path, tmp_path: Path) -> None:
    python = str(interpreter_of("mcp"))
    (directory,) = (found for found in task_directories(pack) if found.name.startswith(REFUND))
    server, record, port = (
        laid_out(directory, "environment/world", tmp_path / "world"),
        tmp_path / "record",
        free_port(),
    )
    text = (directory / "environment/world/server.py").read_text()
    text = text.replace('Path("/var/lib/envsynth/record.jsonl")', f"Path({str(record)!r})").replace("8731", str(port))
    (server / "server.py").write_text(text)
    calls = json.loads((directory / "solution/calls.json").read_text())
    process = subprocess.Popen([python, "server.py"], cwd=server, stderr=subprocess.PIPE, text=True)
    try:
        subprocess.run([python, "-c", WAIT, str(port)], check=True)
        done = subprocess.run(
            [python, "-c", CLIENT, f"http://127.0.0.1:{port}/mcp", json.dumps(calls)], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    finally:
        process.kill()
        process.communicate()
    told = json.loads(done.stdout)
    graders = Pack(laid_out(directory, "tests", tmp_path / "grader") / "pack", name="desk")
    assert told["tools"] == [[tool["name"], tool["parameters"]] for tool in graders.tools(directory.name)]
    assert [name for name, refused, _ in told["said"] if refused] == []
    assert read_calls(record, directory.name, turns=graders.budgets[directory.name]) == calls
    assert graded(graders, directory.name, record)["reward"] == 1.0


def few(store: Cache) -> Task:
    """A task with three trajectories of its panel: more take Harbor's trials too long."""
    task = worlds.make_world_task(store, REFUND)
    chosen = [line for line in task.panel if line.label in ("alternative:policy_first", "mutant:no_fee")]
    long = chosen[0].model_copy(update={"label": "attack:too_many", "outcome": 0.0, "calls": chosen[0].calls * 9})
    reference = [line for line in task.panel if line.label == "reference"]
    return task.model_copy(update={"panel": (*reference, *chosen, long)})


@pytest.fixture(scope="module")
def tried(store: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack to be run by Harbor, which is installed where it is missing."""
    if os.geteuid() != 0:
        pytest.skip("namespaces of Harbor's trials need root")
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    return Harbor().export([few(store)], store, tmp_path_factory.mktemp("harbor") / "desk-tasks", {})


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.usefixtures("targets_kept")
def test_trajectories_earn_every_component_in_harbors_trials(tried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    report = replay(tried, target="harbor")
    assert report.trouble == ""
    assert [line for line in report.lines if line.verdict != "same" or line.error] == []
    assert {line.label: line.got for line in report.lines} == {
        "reference": 1.0, "alternative:policy_first": 1.0, "mutant:no_fee": 0.0, "attack:too_many": 0.0,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.usefixtures("targets_kept")
def test_an_agent_with_root_earns_by_its_calls_alone(tried: Path, tmp_path: Path) -> None:
    attacks = runpy.run_path(str(AGENTS))["ATTACKS"]
    code = (
        "import json, sys\nfrom harbor.models.trial.config import AgentConfig\n"
        "from desk_tasks.through import TASKS, run\n"
        f"sys.path.insert(0, {str(AGENTS.parent)!r})\n(task,) = TASKS.iterdir()\ntold = {{}}\n"
        "def tried(what, **given):\n    told[what] = run(task.name, AgentConfig(**given))\n"
        "tried('oracle', name='oracle')\ntried('nop', name='nop')\n"
        f"for name in {sorted(attacks)!r}:\n"
        "    tried(name, import_path='harbor_attacks:Attacker', kwargs={'attack': name, 'task': str(task)})\n"
        "print(json.dumps(told))\n"
    )
    done = subprocess.run(
        [str(interpreter_of("harbor")), "-c", code], cwd=tried, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    earned = {name: rewards["reward"] for name, rewards in told.items()}
    assert earned == {"oracle": 1.0, "nop": 0.0, **{name: attack.reward for name, attack in attacks.items()}}
    assert told["forged"] == told["nop"]
    assert told["flooded"]["gate"] == 0.0
