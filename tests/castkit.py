"""A cast of models for whole builds: one scripted server that plays author, judge and solver, each by its own name."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from envsynth.llm import JudgeSettings, LlmSettings, Prices, RoleSettings, Sampling, SolverSettings, Usage
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import Answer, answer_json, calls, failure, text
from tests.generators.authored_worlds.authored_scripts import KINDS, Script, load
from tests.generators.mechanism.skin_scripts import setter

PEN, READER, PLAYER = "pen", "reader", "player"
"""Names of the models: what they play is told by them alone, as it would be at any endpoint."""
PRICES = Prices(input=1.0, output=2.0)
SEED = 6
"""Of four draws with it, two have an even number."""
SHOP, FREE = "strong_library_fines", "strong_permit_office"
"""The worlds that the author writes: for an industry (with one slip, which it mends), and for `scenario:free`."""

# --- the repository ---------------------------------------------------------------------------------------------

HALVES = "def halve(number):\n    return number // 2\n"
FIXED_HALVES = "def halve(number):\n    exact_half = number / 2\n    return exact_half\n"
LINES = '''def longest(lines, least=0):
    """The longest of some lines, the first of several; nothing below the least length."""
    best = ""
    for line in lines:
        if len(line) > len(best) and len(line) >= least:
            best = line
    return best
'''
TIES = LINES.replace("len(line) > len(best)", "len(line) >= len(best)")
TEST_LINES = """import unittest
from pkg.lines import longest


class TestLongest(unittest.TestCase):
    def test_longest(self):
        self.assertEqual(longest(["a", "bbb", "cc"]), "bbb")

    def test_ties(self):
        self.assertEqual(longest(["aa", "bb"]), "aa")

    def test_least(self):
        self.assertEqual(longest(["a"], least=2), "")

    def test_none(self):
        self.assertEqual(longest([]), "")
"""
TEST_HALVES = """import unittest
from pkg.maths import halve


class TestHalves(unittest.TestCase):
    def test_even(self):
        self.assertEqual(halve(4), 2)
"""
TEST_FIXED = TEST_HALVES + "\n    def test_odd_numbers(self):\n        self.assertEqual(halve(7), 3.5)\n"
MESSAGE = """Fix rounding of odd numbers

halve(7) returned 3, although half of an odd number has a fraction.
The value is now kept in exact_half before it is returned.
"""
ISSUES: dict[str, Any] = {
    "halve": {
        "title": "Half of an odd number loses its fraction",
        "body": "`pkg.maths.halve` drops the fraction when it is given an odd number: `halve(7)` returns `3`. It "
        "should return exactly half of any number, so `halve(7)` is `3.5`. Half of an even number stays as it is.",
        "facts": [
            {"value": "3.5", "found": "instruction", "where": ""},
            {"value": "halve", "found": "symbol", "where": "pkg.maths.halve"},
        ],
    },
    "longest": {
        "title": "Of lines that are equally long the wrong one is returned",
        "body": "Where several lines have the same length, `pkg.lines.longest` should return the first of them. It "
        "returns another one: `longest(['aa', 'bb'])` gives `'bb'`, and `'aa'` is expected. Lines of different lengths "
        "are told apart as they should be.",
        "facts": [
            {"value": "aa", "found": "instruction", "where": ""},
            {"value": "longest", "found": "symbol", "where": "pkg.lines.longest"},
        ],
    },
}
"""What the author writes back from a change, by the function that the change is about."""
REPAIRS = {
    "halve": "printf 'def halve(number):\\n    return number / 2\\n' > pkg/maths.py",
    "longest": "sed -i 's/len(line) >= len(best)/len(line) > len(best)/' pkg/lines.py",
}


def make_repository(folder: Path) -> Path:
    """A project with a function that can be broken, and one commit that fixes behaviour and comes with a test."""
    start = {"pkg/__init__.py": "", "pkg/maths.py": HALVES, "pkg/lines.py": LINES, "tests/__init__.py": "",
             "tests/test_lines.py": TEST_LINES, "tests/test_maths.py": TEST_HALVES, "LICENSE": "MIT\n"}  # fmt: skip
    folder.mkdir(parents=True)
    _git(folder, "init", "-q", "-b", "main")
    fixed = {"pkg/maths.py": FIXED_HALVES, "tests/test_maths.py": TEST_FIXED}
    for message, files in (("First version", start), (MESSAGE, fixed)):
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content, "utf-8")
        _git(folder, "add", "-A")
        _git(folder, "commit", "-q", "-m", message)
    return folder


def _git(folder: Path, *words: str) -> None:
    fixed = {f"GIT_{who}_{what}": "dev@host.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    fixed |= {f"GIT_{who}_DATE": "2026-05-05T12:00:00Z" for who in ("AUTHOR", "COMMITTER")}
    fixed |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env=os.environ | fixed)


# --- what they answer -------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """What the server was asked, and what the answer costs."""

    model: str
    body: str
    """Canonical JSON of the request's body: the same question has the same."""
    cost: int
    """Picodollars."""


class Cast:
    """The script of a server that plays them all.

    Args:
        before: what is done, or answered instead, before a request is answered; None: nothing.
    """

    def __init__(self, before: Callable[[Received], Answer | None] = lambda received: None) -> None:
        self.before = before
        self.answered: list[Call] = []
        """Answers that were given, in order; each tells its usage, so that sums can be held against the ledger."""
        self.asked: Counter[str] = Counter()
        """How often each kind of artefact was asked for."""
        self.lost: list[Received] = []
        """Requests that the script has no answer to: a test that leads there is wrong."""
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> Answer:
        instead = self.before(received)
        if instead is not None:
            return instead
        try:
            answer = {PEN: _pen, READER: _reader, PLAYER: _player}[_role(received)](received)
        except (LookupError, StopIteration, ValueError) as exc:
            self.lost.append(received)
            return failure(401, f"the script has no answer: {exc!r}")
        body = json.dumps(received.body, sort_keys=True)
        usage = Usage(prompt_tokens=len(body) // 4, completion_tokens=len(json.dumps(answer.message)) // 4)
        cost = PRICES.cost(usage.prompt_tokens, 0, usage.completion_tokens)
        with self._lock:
            self.asked[_wanted(received)] += 1
            self.answered.append(Call(str(received.body["model"]), body, cost))
        return answer._replace(usage=usage)

    def sums(self) -> dict[str, tuple[int, int]]:
        """Calls and picodollars by model."""
        models = {call.model for call in self.answered}
        by_model = {name: [call.cost for call in self.answered if call.model == name] for name in models}
        return {name: (len(costs), sum(costs)) for name, costs in by_model.items()}

    def repeated(self) -> int:
        """Answers to questions that had been answered before."""
        return len(self.answered) - len({call.body for call in self.answered})


def _role(received: Received) -> str:
    """Models of other names play what the name begins with: `pen-2` is another author."""
    return str(received.body["model"]).partition("-")[0]


def _wanted(received: Received) -> str:
    asked = received.body.get("response_format") or {}
    return str(asked.get("json_schema", {}).get("name", "turn"))


def _said(received: Received) -> str:
    return "\n".join(str(turn.get("content") or "") for turn in received.messages)


def _pen(received: Received) -> Answer:
    kind = _wanted(received)
    if kind.lower() in KINDS:
        return answer_json(_artefact(received, kind.lower()))
    if kind == "Issue":
        return answer_json(next(issue for name, issue in ISSUES.items() if f"def {name}(" in _said(received)))
    if kind == "ModifiedFunction":
        return answer_json({"function": TIES, "fault": "Of several longest lines it keeps the last."})
    return setter(received)


def _artefact(received: Received, kind: str) -> Any:
    """What the author hands in: first as it slipped, then, told what was found, as it should be."""
    asked = _said(received)
    about_the_shop = kind == "brief" and "Mail-order shop" in asked
    name = SHOP if about_the_shop else FREE if kind == "brief" else _world_of(asked)
    mends = any(turn["role"] == "assistant" for turn in received.messages)
    return (script(name).good if mends else script(name).first)[kind]


def _world_of(asked: str) -> str:
    """The world that a conversation is about: it shows the brief, a page or the request. Empty: neither."""
    for name in (SHOP, FREE):
        good = script(name).good
        told = good["brief"]["title"], good["policies"]["pages"][0]["title"], good["instruction"]["text"][:60]
        if any(words in asked for words in told):
            return name
    return ""


@cache
def script(name: str) -> Script:
    """One of the worlds."""
    return load(name)


def _writes(name: str) -> frozenset[str]:
    return frozenset(tool["name"] for tool in script(name).good["tools"]["tools"] if tool["kind"] != "read")


def _reader(received: Received) -> Answer:
    """A judge that is right about runs in the author's worlds, by what was written in them, and heeds no orders."""
    prompt = received.prompt
    trace = [json.loads(line) for line in prompt.splitlines() if line.startswith('{"turn": ')]
    name = _world_of(prompt)
    right = bool(name) and _done(trace, name) == _done(script(name).good["plan"]["reference"], name)
    pointer: JsonValue = {"turn": None, "table": "run", "row": 1, "column": "calls"}
    ids = next(line for line in prompt.splitlines() if "for each of these ids: " in line).rpartition(": ")[2]
    marks: list[JsonValue] = [
        {"id": one, "why": "so", "pointer": pointer,
         "score": "PASS" if right or one != "did_what_was_asked" else "FAIL"}
        for one in ids.rstrip(".").split(", ")
    ]  # fmt: skip
    return answer_json({"reading": "It did things.", "scores": marks})


def _done(trace: Any, name: str) -> list[str]:
    """What calls wrote, whatever the order and the words."""
    writes = _writes(name)
    made = [(step["tool"], step["arguments"]) for step in trace if step.get("ok", True) and step["tool"] in writes]
    return sorted(
        f"{tool} {json.dumps({key: value for key, value in given.items() if not _is_prose(value)}, sort_keys=True)}"
        for tool, given in made
    )


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and " " in value


def _player(received: Received) -> Answer:
    """A solver that does well with every other seed, and whenever it has a hint; the game in a new skin it gives up."""
    done = sum(turn["role"] == "assistant" for turn in received.messages)
    right = received.body["seed"] % 2 == 0 or "What helps with this task" in _said(received)
    offered = {tool["function"]["name"] for tool in received.body["tools"]}
    turns: list[Answer] = []
    if "bash" in offered:
        repair = next(command for name, command in REPAIRS.items() if f"{name}(" in _said(received))
        turns = [calls(("bash", {"command": repair if right else "ls"})), calls(("submit", {}))]
    for name in (SHOP, FREE):
        if _writes(name) <= offered:
            made = script(name).good["plan"]["reference"]
            turns = [calls(*((step["tool"], step["arguments"]) for step in made))] if right else []
    return turns[done] if done < len(turns) else text("That is all.")


# --- builds -----------------------------------------------------------------------------------------------------


def cast_settings(
    model: ScriptedModel,
    changed: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    author: str = PEN,
    budget: float | None = None,
) -> LlmSettings:
    """All roles at one server. A seed each, so that no two draws are the same question.

    Args:
        model: the server, in front of a `Cast`.
        changed: other settings, by the names above.
        author: name of the author's model.
        budget: as for `LlmSettings`.
    """

    def role(name: str, max_tokens: int) -> dict[str, Any]:
        sampling = Sampling(max_tokens=max_tokens, seed=SEED)
        settings = model.settings(sampling=sampling, prices=PRICES, timeout=60.0).model_dump()
        return {**settings, "model": name, **(changed or {}).get(name, {})}

    return LlmSettings(
        author=RoleSettings(**{**role(PEN, 32_000), "model": author}),
        judge=JudgeSettings(**{"repeats": 2, "runs": 6, "overrides": 2, **role(READER, 4000)}),
        solver=SolverSettings(**{"attempts": 4, "group": 4, **role(PLAYER, 4000)}), budget=budget,
    )  # fmt: skip


def toml_of(llm: LlmSettings) -> str:
    """The `[llm]` table as people write it."""
    tables = {name: role.document() for name in ("author", "judge", "solver") if (role := llm.role(name))}
    return "\n".join(line for name, table in tables.items() for line in _table(f"llm.{name}", table))


def _table(name: str, fields: Mapping[str, Any]) -> Iterator[str]:
    yield f"[{name}]"
    inner = {key: value for key, value in fields.items() if isinstance(value, dict)}
    for key, value in fields.items():
        if value is not None and key not in inner:
            yield f"{key} = {json.dumps(value)}"
    for key, value in inner.items():
        yield from _table(f"{name}.{key}", value)
