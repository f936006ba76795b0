"""A harness attempts a task inside the workspace's sandbox, with the proxy as its only way out."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.cli.main import run
from envsynth.errors import BudgetSpent, ConfigError
from envsynth.llm import Ledger, Usage
from envsynth.llm.scripted import Script, ScriptedModel
from envsynth.llm.scripted_answers import Answer, calls, failure, text
from envsynth.models import Ending, FailureKind, Origin, Outcome, Policy, Source, SourceKind
from envsynth.proxy import Upstream, read_record
from envsynth.proxy.episode import Harness, Played, Venue, attempted_by, key_of_draw
from envsynth.runtime.contract import Backend
from envsynth.runtime.seal import seal
from envsynth.sandbox.bubblewrap import BubblewrapBackend

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


def _load(path: Path) -> Any:
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec
        assert spec.loader
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    return sys.modules[path.stem]


tiny = _load(Path(__file__).parents[1] / "runtime" / "tiny_task.py")
USAGE = Usage(prompt_tokens=1000, completion_tokens=500)
FIX = "cat > shop/prices.py <<'END'\n" + tiny.FIXED + "END"
TEST = "python -m pytest -q tests > /dev/null; echo tests exit $?"


def bash(command: str) -> Answer:
    return calls(("bash", {"command": command}))._replace(usage=USAGE)


DONE = text("It is done.", usage=USAGE)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    cache = Cache(tmp_path_factory.mktemp("cache"))
    environment = cache.root / "environments" / tiny.recipe().digest()
    environment.parent.mkdir()
    tiny.make_environment(environment)
    seal(environment, "tiny")
    return cache


@pytest.fixture
def backend() -> Backend:
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    return BubblewrapBackend()


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    folder = tmp_path / "agent"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("small_harness.py"), folder)
    return Harness(command=("python", "/agent/small_harness.py"), mounts=((str(folder), "/agent"),), max_seconds=60)


@contextmanager
def upstream(script: Script, folder: Path, *, budget: float | None = None, **more: Any) -> Iterator[Upstream]:
    with ScriptedModel(script) as model:
        found = Upstream(model.settings(**more), Cache(folder / "llm"), Ledger(folder / "spend.sqlite", budget))
        try:
            yield found
        finally:
            found.close()


Play = Callable[..., Played]


@pytest.fixture
def play(cache: Cache, backend: Backend, harness: Harness, tmp_path: Path) -> Play:
    """What becomes of a script."""

    def attempt(script: Script, *, turns: int = 20, out: str = "out", **more: Any) -> Played:
        changed = harness.model_copy(update=more.pop("harness", {}))
        with upstream(script, tmp_path, **more) as way:
            task = tiny.make_task(cache, turns=turns)
            return attempted_by(changed, task, way, Venue(backend, cache.get, cache.root, tmp_path / out), 0)

    return attempt


def test_what_a_harness_leaves_is_graded_and_kept_with_the_conversation(play: Play, tmp_path: Path) -> None:
    look = "python -c 'import shop; assert shop.total([9], 10) == 8.1'; ls / /envsynth; ls -la .git"
    played = play([bash(look), bash(FIX), bash(TEST), DONE])
    attempt = played.attempt
    assert attempt.finished, attempt.trouble
    assert (attempt.grade.outcome, attempt.grade.gate) == (1.0, 1.0)
    assert (attempt.ending, attempt.failure) == (Ending.STOPPED, None)
    assert (attempt.policy, attempt.model, attempt.turns) == (Policy.HARNESS, "scripted", 4)
    assert (attempt.tokens.prompt, attempt.tokens.completion) == (4000, 2000)
    assert attempt.cost_usd == pytest.approx(4 * 0.002)
    said = attempt.conversation
    told = ["system", "user", "assistant", "user"]
    assert [one.role for one in said] == [*told, *["assistant", "tool"] * 3, "assistant"]
    assert [one.given for one in said if one.role == "assistant"] == [True, False, False, False, False]
    assert said[3].content.startswith("`total` takes the discount off")
    assert [tool.name for tool in attempt.tools] == ["bash"]
    assert [(step.tool, step.arguments["command"]) for step in attempt.trace] == [
        ("bash", look), ("bash", FIX), ("bash", TEST),
    ]  # fmt: skip
    assert "AssertionError" in attempt.trace[0].result["output"]
    assert attempt.trace[2].result["output"] == "tests exit 0\nexit code 0"
    assert len(list(read_record(tmp_path / "out"))) == 4

    # The record, answered again in its order, leads to the same end.
    recorded = sorted(read_record(tmp_path / "out"), key=lambda call: call.number)
    again = play([Answer(body=json.dumps(call.response).encode()) for call in recorded], out="again").attempt
    assert (again.grade, again.conversation, again.trace) == (attempt.grade, said, attempt.trace)


def test_work_that_is_not_done_is_a_failure_of_the_agent(play: Play) -> None:
    attempt = play([DONE]).attempt
    assert (attempt.finished, attempt.grade.outcome, attempt.failure) == (True, 0.0, FailureKind.MISREAD_STATE)


def test_only_the_proxy_can_be_reached_and_the_grader_is_out_of_sight(play: Play) -> None:
    probe = (
        "import socket, os, urllib.request\n"
        "base = os.environ['OPENAI_BASE_URL']\n"
        "for place in [('1.1.1.1', 80), ('127.0.0.1', 22), ('10.0.0.1', 80)]:\n"
        "    try: socket.create_connection(place, 2); print('REACHED', place)\n"
        "    except OSError as error: print('closed', place)\n"
        "for path in ['/files', '/embeddings', '/../admin']:\n"
        "    try: urllib.request.urlopen(base + path); print('REACHED', path)\n"
        "    except OSError as error: print('closed', path, getattr(error, 'code', ''))\n"
        "found = [os.path.join(at, name) for at, _, names in os.walk('/envsynth') for name in names]\n"
        "print('FILES', sorted(found))\n"
        "try: open('/envsynth/proxy/inside.py', 'a'); print('WRITABLE')\n"
        "except OSError: print('read-only')\n"
    )
    played = play([bash(f"python - <<'END'\n{probe}END\ngrep -rl discount=10 . /tmp /envsynth 2>/dev/null; env"), DONE])
    shown = played.attempt.trace[0].result["output"]
    assert "REACHED" not in shown
    assert shown.count("closed") == 6
    inside = ["/envsynth/proxy/inside.py", "/envsynth/proxy/proxy.sock", "/envsynth/proxy/task.md"]
    assert f"FILES {inside}" in shown
    assert "read-only" in shown
    assert "test_prices" not in shown
    assert "OPENAI_API_KEY=none" in shown


@pytest.mark.parametrize("turns", [2, 3])
def test_more_turns_than_the_task_allows_close_the_gate(play: Play, turns: int) -> None:
    played = play([bash(FIX), bash("true"), DONE], turns=turns)
    grade = played.attempt.grade
    assert (grade.outcome, grade.gate, grade.reward) == ((1.0, 1.0, 1.0) if turns == 3 else (1.0, 0.0, 0.0))
    assert played.attempt.ending is (Ending.STOPPED if turns == 3 else Ending.TURN_BUDGET)
    assert (len(played.calls), played.attempt.turns) == (3, turns)


def test_tokens_and_time_end_an_attempt_which_is_graded_as_it_was(play: Play) -> None:
    attempt = play([bash(FIX), DONE], harness={"max_tokens": 400}).attempt
    assert (attempt.ending, attempt.grade.reward, attempt.turns) == (Ending.TOKEN_BUDGET, 1.0, 1)
    attempt = play([bash(FIX), bash("sleep 600")], harness={"max_seconds": 6.0}, out="late").attempt
    assert (attempt.ending, attempt.grade.reward) == (Ending.TIME_BUDGET, 1.0)


def test_what_is_not_the_agent_s_fault_is_never_graded(play: Play) -> None:
    attempt = play([bash(FIX), failure(500, "down")]).attempt
    assert (attempt.finished, attempt.grade) == (False, None)
    assert attempt.trouble == "the endpoint failed the last call: HTTP 500"
    attempt = play([failure(401, "bad key")], out="key").attempt
    assert "the model answered nothing: HTTP 401; exit code 3: the endpoint says 401" in attempt.trouble
    attempt = play([], out="none", harness={"command": ("no-such-program",)}).attempt
    assert "it made no call; exit code 127: envsynth proxy: the command cannot be started" in attempt.trouble
    # A request that the endpoint does not take is the program's own doing.
    attempt = play([bash(FIX), failure(400, "the context is too long")], out="long").attempt
    assert (attempt.finished, attempt.grade.reward) == (True, 1.0)
    with pytest.raises(BudgetSpent):
        play([bash(FIX), DONE], budget=0.0045, out="poor")
    with pytest.raises(ConfigError, match="no such folder to mount"):
        play([], out="mount", harness={"mounts": (("/no/such/folder", "/agent"),)})


def test_the_command_stores_each_draw_once_and_says_how_it_ended(
    cache: Cache, backend: Backend, harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    task = tiny.make_task(cache)
    source = Source(uri=task.candidate.provenance.lead.source, kind=SourceKind.GIT, location="x",
                    origin=Origin(file="--source", line=1))  # fmt: skip
    with Catalog.open(tmp_path / "c.duckdb") as catalog:
        number = catalog.begin_build({})
        catalog.record_source(number, source, "1" * 40, 1)
        outcome = Outcome(lead=task.candidate.provenance.lead, ladder="l", candidate=task.candidate, task=task)
        catalog.record(number, [outcome], cache)
    monkeypatch.chdir(tmp_path)
    # Another cache: what the task needs comes from the catalog, but for the environment, which would be installed.
    monkeypatch.setenv("ENVSYNTH_CACHE", str(cache.root))
    mount = f"{harness.mounts[0][0]}:/agent"

    def attempt(script: Script, out: str) -> tuple[int, str]:
        with ScriptedModel(script) as model:
            llm = f"solver=scripted@{model.base_url}"
            code = run(["proxy", "--catalog", "c.duckdb", "--task", task.id[:9], "--out", out, "--mount", mount,
                        "--sandbox", "bubblewrap", "--llm", llm, "--", *harness.command])  # fmt: skip
        return code, capsys.readouterr().out

    code, printed = attempt([bash(FIX), DONE], "first")
    assert code == 0
    assert "calls: 2 answered; recorded in first/calls.jsonl" in printed
    assert f"{task.id}: outcome 1, reward 1, stopped, 1 calls of tools; stored as draw 0" in printed
    code, printed = attempt([DONE], "second")
    assert (code, "outcome 0" in printed, "stored as draw 1" in printed) == (0, True, True)
    code, printed = attempt([failure(500)], "third")
    assert (code, "environment error, which counts for nothing" in printed) == (3, True)
    with Catalog.open(tmp_path / "c.duckdb", read_only=True) as catalog:
        stored = {one.k: one for one in catalog.attempts("policy = 'harness'")}
    assert [(k, one.finished) for k, one in sorted(stored.items())] == [(0, True), (1, True), (2, False)]
    assert json.loads((tmp_path / "first" / "attempt.json").read_text()) == stored[0].document()
    assert run(["proxy", "--catalog", "c.duckdb", "--task", task.id, "--out", "first", "--", "true"]) == 2
    assert "there is no model to forward to" in capsys.readouterr().err


def test_another_model_or_command_means_other_draws(cache: Cache, harness: Harness, tmp_path: Path) -> None:
    task = tiny.make_task(cache)
    with upstream([], tmp_path) as one, upstream([], tmp_path, max_tokens=5) as other:
        keys = {key_of_draw(task, harness, one, 0), key_of_draw(task, harness, one, 1)}
        keys |= {key_of_draw(task, harness, other, 0)}
        keys |= {key_of_draw(task, harness.model_copy(update={"command": ("x",)}), one, 0)}
    assert len(keys) == 4
