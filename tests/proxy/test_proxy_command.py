"""`envsynth proxy` as a process: interrupted and killed, its record is whole and the ledger knows."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from envsynth.cli.main import run
from envsynth.llm import Ledger, Usage
from envsynth.llm.scripted import ScriptedModel
from envsynth.llm.scripted_answers import Answer, hang, text
from envsynth.proxy import read_record

USAGE = Usage(prompt_tokens=1000, completion_tokens=500)


@contextmanager
def proxy(folder: Path, model: ScriptedModel) -> Iterator[tuple[Any, str]]:
    command = [
        sys.executable, "-c", "from envsynth.cli.main import main; main()", "proxy", "--listen", "127.0.0.1:0", "--out",
        "record", "--llm", f"solver=scripted@{model.base_url}", "--catalog", "c.duckdb", "--cache", "cache",
    ]  # fmt: skip
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": folder}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stderr is not None
        found = re.search(r"OPENAI_BASE_URL=(\S+)", process.stderr.readline())
        assert found is not None
        try:
            yield process, found[1]
        finally:
            process.kill()


def ask(url: str, prompt: str) -> str:
    with openai.OpenAI(api_key="none", base_url=url, max_retries=0) as client:
        said: Any = [{"role": "user", "content": prompt}]
        return str(client.chat.completions.create(model="m", messages=said).choices[0].message.content)


@pytest.mark.slow
def test_an_interrupt_waits_for_the_call_under_way(tmp_path: Path) -> None:
    arrived, go = threading.Event(), threading.Event()

    def answer(received: Any) -> Answer:
        if received.prompt == "slow":
            arrived.set()
            go.wait(60)
        return text(received.prompt, usage=USAGE)

    with ScriptedModel(answer) as model, proxy(tmp_path, model) as (process, url):
        assert ask(url, "first") == "first"
        got: list[str] = []
        harness = threading.Thread(target=lambda: got.append(ask(url, "slow")))
        harness.start()
        assert arrived.wait(60)
        process.send_signal(signal.SIGINT)
        assert "waiting for the calls that are under way" in process.stderr.readline()
        go.set()
        harness.join(60)
        out, _ = process.communicate(timeout=60)
        assert (got, process.returncode) == (["slow"], 0)
    assert "calls: 2 answered; recorded in record/calls.jsonl" in out
    assert [call.ending for call in read_record(tmp_path / "record")] == ["answered", "answered"]
    spent = Ledger(tmp_path / "c.spend.sqlite").total()
    assert (spent.settled, spent.uncertain, spent.completion_tokens) == (2, 0, 1000)


@pytest.mark.slow
def test_a_kill_loses_no_call_that_had_ended(tmp_path: Path) -> None:
    arrived = threading.Event()

    def answer(received: Any) -> Answer:
        if received.prompt == "slow":
            arrived.set()
            return hang()
        return text(received.prompt, usage=USAGE)

    with ScriptedModel(answer) as model, proxy(tmp_path, model) as (process, url):
        assert ask(url, "first") == "first"

        def asks() -> None:
            with pytest.raises(openai.APIConnectionError):
                ask(url, "slow")

        harness = threading.Thread(target=asks)
        harness.start()
        assert arrived.wait(60)
        process.kill()
        harness.join(60)
    assert [call.ending for call in read_record(tmp_path / "record")] == ["answered"]
    spent = Ledger(tmp_path / "c.spend.sqlite").total()
    assert (spent.settled, spent.uncertain, spent.reserved) == (1, 1, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "0.0.0.0:80"], "is no address on loopback"),
        (["--listen", "127.0.0.1:99999"], "is no address on loopback"),
        (["--task", "x"], "a task and a command go together"),
        (["--", "true"], "a task and a command go together"),
        (["--task", "x", "--listen", "127.0.0.1:1", "--", "true"], "nothing listens on a port"),
        ([], "there is no model to forward to"),
        (["--llm", "solver=m@https://api.example/v1", "--offline"], "the solver is not on this machine"),
        (["--llm", "solver=m@http://127.0.0.1:1/v1", "--budget", "1"], "the prices of m are not known"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert run(["proxy", "--out", "record", *words]) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "record").exists()
