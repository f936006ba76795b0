"""Packs for NeMo Gym: sessions that do not meet, one episode each, and failures that are no reward."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_worlds as worlds
import yaml

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.errors import ExportError
from envsynth.exporters._target_env import interpreter_of
from envsynth.models import Task

BLOCKED = "import sys; sys.modules['envsynth'] = None\n"
PRELUDE = """
import json
from desk_tasks.pack import PACK
panel = {(line["task"], line["label"]): line for line in PACK.panel()}
first, second = [task for task in sorted(PACK.budgets) if task.startswith("returns")]
def calls(task):
    return panel[task, "reference"]["calls"]
"""
SESSIONS = (
    BLOCKED
    + PRELUDE
    + """
from desk_tasks._envsynth.errors import SandboxError
from desk_tasks._envsynth.runtime.player import Player
from desk_tasks.sessions import OVER, Failed, Refused, Sessions
sessions = Sessions(PACK, most=3)
def tried(made, *given):
    try:
        return made(*given)
    except (Failed, Refused, SandboxError) as error:
        return type(error).__name__
def make(name, call):
    return sessions.call(name, call["tool"], json.dumps(call["arguments"]))
"""
)
SERVER = (
    BLOCKED
    + PRELUDE
    + """
from fastapi.testclient import TestClient
from desk_tasks import server
from desk_tasks.through import _app
app = _app()
def row(task):
    return {"task": task, "responses_create_params": {"input": [{"role": "user", "content": "Go on."}]}}
def body(task, output=()):
    return {**row(task), "response": {
        "id": "r", "created_at": 0, "model": "m", "object": "response", "output": list(output),
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }}
def seeded(task):
    client = TestClient(app)
    assert client.post("/seed_session", json=row(task)).status_code == 200
    return client
def play(client, task):
    for call in calls(task):
        assert client.post("/" + call["tool"], json=call["arguments"]).status_code == 200
"""
)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = Cache(tmp_path_factory.mktemp("worlds"))
    tasks = [worlds.make_world_task(store, name) for name in worlds.TASKS]
    return plugins.load("exporters", "nemo-gym")().export(
        tasks, store, tmp_path_factory.mktemp("out") / "desk-tasks", {}
    )


def run(code: str, pack: Path, python: Path | str = sys.executable) -> list[str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [str(python), "-c", code], cwd=pack, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_folder_is_a_resources_server(pack: Path) -> None:
    folder = pack / "resources_servers" / "desk_tasks"
    rows = [json.loads(line) for line in (folder / "data" / "train.jsonl").read_text().splitlines()]
    assert [row["task"] for row in rows] == sorted(row["task"] for row in rows)
    assert len(rows) == len(worlds.TASKS)
    for row in rows:
        assert set(row) == {"responses_create_params", "task"}
        (said,) = row["responses_create_params"]["input"]
        assert said["role"] == "user"
        assert said["content"]
        for tool in row["responses_create_params"]["tools"]:
            assert set(tool) == {"type", "name", "description", "parameters", "strict"}
            assert tool["parameters"]["type"] == "object"
    config = yaml.safe_load((folder / "configs" / "desk_tasks.yaml").read_text())
    agent = config["desk_tasks_simple_agent"]["responses_api_agents"]["simple_agent"]
    assert agent["resources_server"] == {"type": "resources_servers", "name": "desk_tasks"}
    assert agent["max_steps"] == 1 + max(worlds.entry(name)["budget"]["turns"] for name in worlds.TASKS)
    for dataset in agent["datasets"]:
        assert (pack / dataset["jsonl_fpath"]).is_file()
    assert (folder / config["desk_tasks"]["resources_servers"]["desk_tasks"]["entrypoint"]).is_file()


def test_a_tool_that_a_route_hides_is_refused(tmp_path: Path) -> None:
    store = Cache(tmp_path / "worlds")
    task = worlds.make_world_task(store, worlds.TASKS[0])
    document = json.loads(store.get(task.candidate.environment.world))
    document["tools"][0]["name"] = "verify"
    changed = json.loads(task.to_json())
    changed["candidate"]["environment"]["world"] = store.put(json.dumps(document).encode())
    with pytest.raises(ExportError, match="the tool verify cannot be reached"):
        plugins.load("exporters", "nemo-gym")().export(
            [Task.model_validate(changed)], store, tmp_path / "out-tasks", {}
        )


def test_interleaved_sessions_do_not_meet_and_are_freed(pack: Path) -> None:
    code = SESSIONS + (
        "sessions.seed('a', first); sessions.seed('b', second); sessions.seed('c', first)\n"
        "for a, b in zip(calls(first), calls(second)):\n    make('a', a); make('b', b)\n"
        "for call in calls(first)[len(calls(second)):]:\n    make('a', call)\n"
        "for call in calls(second)[len(calls(first)):]:\n    make('b', call)\n"
        "print(*(sessions.grade(name).rewards['reward'] for name in 'abc'), len(sessions))\n"
    )
    assert run(code, pack) == ["1.0 1.0 0.0 0"]


def test_a_session_has_one_episode_whatever_is_called(pack: Path) -> None:
    code = SESSIONS + (
        "print(tried(make, 'a', calls(first)[0]))\n"
        "sessions.seed('a', first); make('a', calls(first)[0]); sessions.seed('a', first)\n"
        "print(tried(sessions.seed, 'a', second))\n"
        "bad = sessions.grade('a')\n"
        "print(tried(sessions.seed, 'a', first), make('a', calls(first)[0]) == OVER)\n"
        "sessions.close('a')\n"
        "print(bad.rewards['reward'], sessions.grade('a') == bad, bad.failure_kind == '')\n"
        "sessions.close('never'); print(tried(sessions.seed, 'never', first))\n"
    )
    assert run(code, pack) == ["Refused", "Refused", "Refused True", "0.0 True True", "Refused"]


def test_an_unreadable_call_ends_an_episode_with_nothing(pack: Path) -> None:
    code = SESSIONS + (
        "*before, last = calls(first)\n"
        "for name in ('arrives', 'does not', 'is readable'):\n"
        "    sessions.seed(name, first)\n    [make(name, call) for call in before]\n"
        "sessions.call('arrives', last['tool'], '[1]'); print(make('arrives', last) == OVER)\n"
        "make('is readable', last)\n"
        "print(sessions.grade('arrives').rewards['gate'], sessions.grade('does not', ['{no']).rewards['gate'],"
        " sessions.grade('is readable').rewards['gate'])\n"
    )
    assert run(code, pack) == ["True", "0.0 0.0 1.0"]


def test_a_grade_that_an_agent_asked_for_forgets_no_unreadable_call(pack: Path) -> None:
    # Nothing tells an agent's call of the route from the trainer's, but the trainer has what the model wrote.
    code = SESSIONS + (
        "for name in 'ab':\n    sessions.seed(name, first)\n    [make(name, call) for call in calls(first)]\n"
        "early = sessions.grade('a')\nlate = sessions.grade('a', ['{no'])\n"
        "same = sessions.grade('b', ['{no']).rewards\n"
        "print(early.rewards['reward'], late.rewards['reward'])\n"
        "print(*(late.rewards[name] == same[name] for name in ('reward', 'gate', 'gate.valid_transcript')))\n"
    )
    assert run(code, pack) == ["1.0 0.0", "True True True"]


def test_a_failing_environment_gives_no_reward(pack: Path) -> None:
    code = SESSIONS + (
        "def failing(*_):\n    raise SandboxError('gone', where='HOST-PATH')\n"
        "def told(name):\n    found = sessions.grade(name); return found.rewards, found.failure_kind\n"
        "for name in 'ab':\n    sessions.seed(name, first)\n    [make(name, call) for call in calls(first)]\n"
        "sessions.seed('c', first)\n"
        "whole, Player.call_text = Player.call_text, failing\n"
        "try:\n    make('c', calls(first)[0])\nexcept Failed as error:\n    print('HOST-PATH' in str(error))\n"
        "Player.call_text = whole\n"
        "print(tried(make, 'c', calls(first)[0]), *told('c'))\n"
        "graded, Player.rewards = Player.rewards, failing\nprint(*told('a'))\nPlayer.rewards = graded\n"
        "print(*told('a')); print(told('b')[0]['reward'])\n"
        "Player.begin = failing\nprint(tried(sessions.seed, 'd', first), *told('d'))\nprint(*told('unknown'))\n"
        "print(len(sessions))\n"
    )
    assert run(code, pack) == [
        "False", "Failed {} provider_unavailable", "{} verifier_error", "{} verifier_error", "1.0",
        "SandboxError {} provider_unavailable", "{} session_lost", "0",
    ]  # fmt: skip


def test_no_more_episodes_are_kept_than_allowed(pack: Path) -> None:
    code = SESSIONS + (
        "for name in 'abc':\n    sessions.seed(name, first)\n"
        "make('a', calls(first)[0]); sessions.seed('d', second)\n"
        "print(len(sessions), sessions.grade('b').failure_kind, make('b', calls(first)[0]) == OVER)\n"
        "[make('a', call) for call in calls(first)[1:]]\nprint(sessions.grade('a').rewards['reward'])\n"
    )
    assert run(code, pack) == ["3 session_expired True", "1.0"]


@pytest.mark.slow
@pytest.mark.network
def test_the_server_as_agents_and_environment_servers_use_it(
    pack: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    code = SERVER + (
        "a, b = seeded(first), seeded(second); play(a, first)\n"
        "told = [client.post('/verify', json=body(task)).json() for client, task in ((a, first), (b, second))]\n"
        "print(*(one['reward'] for one in told), told[0]['reward_components'], told[0]['task'] == first)\n"
        "print(a.post('/seed_session', json=row(first)).status_code,"
        " a.post('/seed_session', json={'resources_session_id': 'x', 'task_data': {'task': first}}).status_code)\n"
        "c = seeded(first); c.post('/close_session', json={})\n"
        "print(c.post('/verify', json=body(first)).json()['reward'])\n"
        "d = seeded(first); print(d.post('/verify', json=body(second)).status_code)\n"
        "seed = {'resources_session_id': 'e', 'episode_id': {}, 'task_id': {}, 'task_data': {'task': first}}\n"
        "e = TestClient(app); print(e.post('/seed_session', json=seed).json()); play(e, first)\n"
        "print(e.post('/verify', json=body(first)).json()['reward'],"
        " e.post('/close_session', json={'resources_session_id': 'e'}).json())\n"
        "print(TestClient(app).post('/seed_session', json=seed).status_code)\n"
        "lost = TestClient(app).post('/verify', json=body(first))\n"
        "print(lost.status_code == 503 if not server.MASKS else lost.json()['mask_sample'])\n"
        "print(TestClient(app).post('/view', json={}).status_code)\n"
        "from types import SimpleNamespace\n"
        "crowd = SimpleNamespace(num_workers=2, sandbox='', most_sessions=1)\n"
        "try:\n    server.TaskServer.model_construct(config=crowd)\n"
        "except ValueError as error:\n    print('num_workers must be 1' in str(error))\n"
    )
    cache = tmp_path_factory.getbasetemp() / "targets-cache"
    assert run(code, pack, interpreter_of("nemo-gym", cache)) == [
        "1.0 0.0 {'outcome': 1.0, 'gate': 1.0} True", "409 409", "0.0", "409", "{'resources_session_id': 'e'}",
        "1.0 {'resources_session_id': 'e'}", "409", "True", "400", "True",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.network
def test_a_session_outlives_a_request_that_fails_and_calls_without_arguments(
    pack: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Agents keep the cookies of the latest answer, and hand every name that a model calls to the server as a route.
    code = SERVER + (
        "answer = seeded(first).post('/aggregate_metrics', json={'verify_responses': [{}]})\n"
        "agent = TestClient(app, cookies=dict(answer.cookies))\n"
        "print(answer.status_code, agent.post('/verify', json=body(first)).json()['reward'])\n"
        "for text in ('', '{', '[]'):\n"
        "    call = {'type': 'function_call', 'call_id': 'c', 'name': 'view', 'arguments': text}\n"
        "    print(seeded(first).post('/verify', json=body(first, [call])).json()['gate'])\n"
    )
    cache = tmp_path_factory.getbasetemp() / "targets-cache"
    # Elsewhere a call without arguments is one, so here, where agents do not pass it on, it ends nothing.
    assert run(code, pack, interpreter_of("nemo-gym", cache)) == ["500 0.0", "1.0", "0.0", "0.0"]
