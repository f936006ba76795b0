"""Packs for verl: rows, and an agent loop whose episodes do not meet and whose failures are no reward."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import tiny_worlds as worlds
import yaml

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.exporters._target_env import interpreter_of

LOOP = """
import asyncio, sys
sys.modules["envsynth"] = None
from desk_tasks import through
from desk_tasks.agent_loop import TaskAgentLoop
from desk_tasks.pack import PACK
from desk_tasks._envsynth.errors import SandboxError
from desk_tasks._envsynth.runtime.dialogue import Call, turn_text
from desk_tasks._envsynth.runtime.player import Player
panel = {(line["task"], line["label"]): line for line in PACK.panel()}
first, second = [task for task in sorted(PACK.budgets) if task.startswith("returns")]
END = "I have nothing more to do."
def calls(task):
    return [Call(call["tool"], call["arguments"]) for call in panel[task, "reference"]["calls"]]
def turns(task):
    return [turn_text([call]) for call in calls(task)]
def row(task):
    return {"extra_info": {"index": 0, "task": task}, "raw_prompt": [{"role": "user", "content": "Go on."}]}
def played(task, texts):
    return through._played(row(task), texts)
def rewards(output):
    return output.extra_fields["envsynth_rewards"]
def reward(task, texts):
    return asyncio.run(played(task, texts)).reward_score
"""


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = Cache(tmp_path_factory.mktemp("worlds"))
    tasks = [worlds.make_world_task(store, name) for name in worlds.TASKS]
    return plugins.load("exporters", "verl")().export(tasks, store, tmp_path_factory.mktemp("out") / "desk-tasks", {})


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interpreter_of("verl", tmp_path_factory.getbasetemp() / "targets-cache")


def run(code: str, pack: Path, python: Path | str = sys.executable) -> list[str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), "-c", code]
    done = subprocess.run(command, cwd=pack, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_table_has_the_rows_that_the_text_has(pack: Path) -> None:
    package = pack / "desk_tasks"
    rows = [json.loads(line) for line in (package / "rows.jsonl").read_text().splitlines()]
    table = duckdb.execute("SELECT * FROM read_parquet(?)", [str(package / "rows.parquet")])
    names = [column[0] for column in table.description or ()]
    assert [dict(zip(names, values, strict=True)) for values in table.fetchall()] == rows
    assert [row["extra_info"]["index"] for row in rows] == list(range(len(worlds.TASKS)))
    assert {row["agent_name"] for row in rows} == {"desk_tasks"}
    for row in rows:
        assert [message["role"] for message in row["prompt"]] == ["user"]
        assert set(row["reward_model"]) == {"style", "ground_truth"}


def test_rows_name_the_loop_that_the_configuration_has(pack: Path) -> None:
    (loop,) = yaml.safe_load((pack / "desk_tasks" / "agent_loop.yaml").read_text())
    assert loop["name"] == "desk_tasks"
    module, _, name = loop["_target_"].rpartition(".")
    assert f"class {name}(" in pack.joinpath(*module.split(".")).with_suffix(".py").read_text()


def test_a_trajectory_without_a_grade_is_no_score(pack: Path) -> None:
    code = (
        "import sys; sys.modules['verl'] = sys.modules['envsynth'] = None\n"
        "from desk_tasks import AGENT_LOOPS, ROWS, compute_score\nfrom pathlib import Path\n"
        "print(Path(ROWS).is_file(), Path(AGENT_LOOPS).is_file())\n"
        "grade = {'reward': 0.5, 'outcome': 0.5, 'gate': 1.0, 'check.x': 0.0}\n"
        "print(compute_score('a', 'b', 'c', {'task': 't', 'envsynth_rewards': grade}, reward_router_address=None))\n"
        "for given in ({'task': 't'}, None):\n"
        "    try:\n        print(compute_score('a', 'b', 'c', given))\n"
        "    except RuntimeError as error:\n        print('has no grade' in str(error), chr(10) in str(error))\n"
    )
    scored = "{'score': 0.5, 'outcome': 0.5, 'gate': 1.0}"
    assert run(code, pack) == ["True True", scored, "True False", "True False"]


@pytest.mark.slow
@pytest.mark.network
def test_episodes_side_by_side_do_not_meet(pack: Path, python: Path) -> None:
    code = LOOP + (
        "async def all():\n    return await asyncio.gather(\n"
        "        played(first, [*turns(first), END]), played(second, [*turns(second), END]), played(first, [END]),\n"
        "        played(first, turns(first)[:1] + [END]), played(second, [*turns(second), END]))\n"
        "outputs = asyncio.run(all())\nprint(*(output.reward_score for output in outputs))\n"
        "print(len({repr(rewards(output)) for output in outputs[1::3]}))\n"
        "alone = asyncio.run(played(second, [*turns(second), END]))\n"
        "print(rewards(alone) == rewards(outputs[1]) == rewards(outputs[4]))\n"
    )
    assert run(code, pack, python)[0] == "1.0 1.0 0.0 0.0 1.0"
    assert run(code, pack, python)[-1] == "True"


@pytest.mark.slow
@pytest.mark.network
def test_calls_of_one_turn_are_made_in_order_and_none_is_dropped(pack: Path, python: Path) -> None:
    code = LOOP + (
        "seen, call_text = [], Player.call_text\n"
        "def slower(self, tool, arguments):\n"
        "    seen.append(tool); return call_text(self, tool, arguments)\n"
        "Player.call_text = slower\n"
        "print(reward(first, [turn_text(calls(first)), END]), seen == [call.tool for call in calls(first)])\n"
        "seen.clear(); print(reward(first, [turn_text([Call('no_such_tool', {}), *calls(first)]), END]), seen[0])\n"
    )
    assert run(code, pack, python) == ["1.0 True", "1.0 no_such_tool"]


@pytest.mark.slow
@pytest.mark.network
def test_a_call_that_cannot_be_read_ends_the_episode_with_nothing(pack: Path, python: Path) -> None:
    code = LOOP + (
        "whole = turn_text(calls(first))\n"
        "texts = ['<tool_call>{no}</tool_call>', '<tool_call>{\"name\": 1', whole + '<tool_call>x</tool_call>']\n"
        'for text in [*texts, \'<tool_call>{"name": "view", "arguments": [1]}</tool_call>\']:\n'
        "    output = asyncio.run(played(first, [text, whole, END]))\n"
        "    print(output.reward_score, rewards(output)['gate'])\n"
        "print(reward(first, [whole, '<think>a <tool_call> would do no good</think>Done.']))\n"
        "print(reward(first, [f'<think>{texts[0]}</think>{whole}', END]))\n"
        "output = asyncio.run(played(first, [f'<think>{turn_text(calls(first)[:1])}</think>{texts[0]}', whole, END]))\n"
        "print(output.reward_score, rewards(output)['gate'])\n"
    )
    assert run(code, pack, python) == ["0.0 0.0"] * 4 + ["1.0", "1.0", "0.0 0.0"]


@pytest.mark.slow
@pytest.mark.network
def test_an_episode_that_the_trainers_limit_ends_is_graded_as_it_stands(pack: Path, python: Path) -> None:
    code = LOOP + (
        "texts = turns(first); through.LENGTH = len(texts[0])\n"
        "output = asyncio.run(played(first, [texts[0], *texts[1:], END]))\n"
        "print(output.reward_score, rewards(output)['gate'], output.num_turns)\n"
        "through.LENGTH = 5\n"
        "try:\n    print(reward(first, [END]))\n"
        "except ValueError as error:\n    print('max_prompt_length' in str(error))\n"
    )
    assert run(code, pack, python) == ["0.0 1.0 2", "True"]


@pytest.mark.slow
@pytest.mark.network
def test_a_reward_function_is_given_what_the_loop_would_have_said(pack: Path, python: Path) -> None:
    code = LOOP + (
        "from pathlib import Path\nfrom desk_tasks import compute_score\n"
        "said = asyncio.run(played(first, [*turns(first), END]))\n"
        "changed = Path('by_function.yaml')\n"
        "changed.write_text(Path(through.AGENT_LOOPS).read_text().replace('function: false', 'function: true'))\n"
        "through.AGENT_LOOPS = str(changed)\n"
        "left = asyncio.run(played(first, [*turns(first), END]))\nchanged.unlink()\n"
        "print(said.reward_score, left.reward_score, 'reward_extra_info' in left.extra_fields)\n"
        "print(compute_score('', '', '', left.extra_fields) == said.extra_fields['reward_extra_info'])\n"
    )
    assert run(code, pack, python) == ["1.0 None False", "True"]


@pytest.mark.slow
@pytest.mark.network
def test_an_environment_that_fails_gives_no_output(pack: Path, python: Path) -> None:
    code = LOOP + (
        "def failing(*_):\n    raise SandboxError('gone')\n"
        "closed, close = [], Player.close\n"
        "Player.close = lambda self: (closed.append(1), close(self))\n"
        "for name in ('begin', 'call_text', 'rewards'):\n"
        "    whole = getattr(Player, name); setattr(Player, name, failing)\n"
        "    try:\n        print(reward(first, [turn_text(calls(first)), END]))\n"
        "    except SandboxError:\n        print('failed', bool(closed))\n"
        "    closed.clear(); setattr(Player, name, whole)\n"
        "print(reward(first, [turn_text(calls(first)), END]), bool(closed))\n"
    )
    assert run(code, pack, python) == ["failed True"] * 3 + ["1.0 True"]


@pytest.mark.slow
@pytest.mark.network
def test_what_the_model_is_shown_is_the_rows_own_tools_and_results(pack: Path, python: Path) -> None:
    code = LOOP + (
        "shown, template = [], through.Letters.apply_chat_template\n"
        "def kept(self, messages, tools=None, **options):\n"
        "    shown.append((messages, tools)); return template(self, messages, tools=tools, **options)\n"
        "through.Letters.apply_chat_template = kept\n"
        "for task in (first, next(task for task in PACK.budgets if task.startswith('two-armed'))):\n"
        "    shown.clear(); asyncio.run(played(task, [END]))\n"
        "    print([tool['function'] for tool in shown[0][1]] == PACK.tools(task))\n"
        "shown.clear(); asyncio.run(played(first, [*turns(first), END]))\n"
        "results = [message['content'] for messages, _ in shown for message in messages if message['role'] == 'tool']\n"
        "player = Player(PACK); player.begin(first)\n"
        "expected = [player.call(call.tool, call.arguments) for call in calls(first)]\n"
        "print(list(dict.fromkeys(results)) == list(dict.fromkeys(expected)))\n"
    )
    assert run(code, pack, python) == ["True"] * 3
