"""A model proposes recipes where the project's own are no use. The registry stands on the own machine."""

from __future__ import annotations

import dataclasses
import io
import json
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from envsynth.context import BuildContext
from envsynth.errors import BudgetSpent, ConfigError, EndpointDown, SourceError
from envsynth.languages.python import Python
from envsynth.languages.python import repair as repair_module
from envsynth.languages.python.prepare import Attempt, Unsolved, unsolved
from envsynth.languages.python.project import Project
from envsynth.languages.python.repair import ROUNDS, Repair, own_names
from envsynth.languages.python.wanted import WantedRecipe, unfit_parts
from envsynth.llm import LlmSettings, Usage
from envsynth.llm.scripted import Received, ScriptedModel
from envsynth.llm.scripted_answers import Answer, answer_json, failure, text
from envsynth.models import FileMode, Finding, Origin, Source, SourceKind, SourceOptions, Tree, TreeEntry
from envsynth.runtime import installer
from envsynth.runtime.interpreters import installed_interpreters

NEWEST = "2024-05-20T10:00:00+00:00"
VERSION = installed_interpreters()[-1].version
PROJECT = {
    "shade.py": "def darker(value):\n    return value // 2\n",
    "setup.cfg": "[metadata]\nname = shade\n# published with s3cret-of-the-user\n",
    "test_shade.py": (
        "import os\nimport unittest\nimport tint\nfrom shade import darker\n"
        "assert os.environ['SHADE_MODE'] == 'plain'\n"
        "class TestShade(unittest.TestCase):\n    def test_darker(self): self.assertEqual(darker(tint.RED), 4)\n"
    ),
}
GOOD: dict[str, Any] = {"python": VERSION, "requirements": ["tint-tools>=1"], "variables": {"SHADE_MODE": "plain"}}


def source(**extra: str) -> Source:
    return Source(
        uri="file:///project", kind=SourceKind.GIT, location="/project", options=SourceOptions(trusted=True),
        origin=Origin(file="list.txt", line=1), extra=tuple(extra.items()),
    )  # fmt: skip


def tree(context: BuildContext, files: dict[str, str]) -> Tree:
    return Tree(
        entries=tuple(
            TreeEntry(path=path, mode=FileMode.FILE, blob=context.blobs.put(content.encode()), size=len(content))
            for path, content in files.items()
        )
    )


def wheel(name: str, files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        folder = f"{name.replace('-', '_')}-1.0.dist-info"
        archive.writestr(f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", "")
    return buffer.getvalue()


WHEELS = {
    "iniconfig": wheel("iniconfig", {"iniconfig.py": ""}),
    "tint-tools": wheel("tint-tools", {"tint.py": "RED = 8\n"}),
}


class Registry(BaseHTTPRequestHandler):
    """Two distributions, published in 2020, as the simple API has them in JSON."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        name = self.path.strip("/").split("/")[-1]
        kind, status = "application/vnd.pypi.simple.v1+json", 200
        if name.endswith(".whl"):
            kind, body = "application/octet-stream", WHEELS[name.partition("-")[0].replace("_", "-")]
        elif name in WHEELS:
            file = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
            entry = {"filename": file, "url": f"/files/{file}", "hashes": {}, "upload-time": "2020-01-01T00:00:00Z"}
            body = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": [entry]}).encode()
        else:
            status, body = 404, b""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setattr(installer, "_proved", {})
    monkeypatch.setenv("UV_INDEX_URL", f"http://127.0.0.1:{server.server_address[1]}/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def context_of(tmp_path: Path) -> Iterator[Callable[..., BuildContext]]:
    """Contexts; their connections are closed in the end."""
    made: list[BuildContext] = []

    def make(model: ScriptedModel | None = None, cache: str = "cache", **more: Any) -> BuildContext:
        llm = LlmSettings(author=None if model is None else model.settings(), budget=more.pop("budget", None))
        made.append(BuildContext(tmp_path / cache, sandbox="local", llm=llm, **more))
        return made[-1]

    yield make
    for context in made:
        context.leave_models()


def prepared(context: BuildContext, **extra: str) -> Any:
    return Python().prepare(
        tree(context, PROJECT), newest=NEWEST, version_hint="1", source=source(**extra), context=context
    )


def ladder_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The project's own recipes fail at once, so that only the model's are tried."""

    def solve(self: object) -> str:
        raise unsolved("file:///project", "No module named 'tint'", ["test requirements: http://me:pw1@host/x is gone"])

    monkeypatch.setattr("envsynth.languages.python.prepare.Builder.solve_to_json", solve)


@pytest.mark.slow
def test_a_recipe_of_a_model_is_kept_for_builds_and_machines_without_one(
    registry: str, context_of: Callable[..., BuildContext], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "s3cret-of-the-user")
    answers = [answer_json({"python": VERSION, "requirements": ["tint"]}), answer_json(GOOD)]
    with ScriptedModel(answers) as model:
        first = context_of(model)
        made = prepared(first)
        assert made.recipe.requirements == ("tint-tools==1.0",)
        assert ("SHADE_MODE", "plain") in made.command.variables
        asked, again = model.requests
        assert "tint" in asked.prompt
        assert "test requirements" in asked.prompt
        assert "envsynth-sandbox-" not in asked.prompt + again.prompt
        assert "requirements_not_met" in again.prompt
        for request in model.requests:
            assert "s3cret-of-the-user" not in json.dumps(request.body)
        (note,) = [note for note in first.notes if "recipe=FILE" in note]
        assert "scripted needed 2 recipes" in note

    without = prepared(context_of())
    assert without == made._replace(cost=without.cost)
    assert without.cost.cached
    assert prepared(context_of(offline=True)).recipe == made.recipe

    (file,) = (tmp_path / "cache/recipes").iterdir()
    assert json.loads(file.read_text())["requirements"] == ["tint-tools==1.0"]
    elsewhere = prepared(context_of(cache="elsewhere"), recipe=str(file))
    assert elsewhere.recipe.digest() == made.recipe.digest()
    assert elsewhere.command == made.command
    with pytest.raises(SourceError, match="no test of this project can be collected"):
        prepared(context_of(cache="third"))


NONSENSE: list[dict[str, Any]] = [
    {"python": "2.7"}, {"python": VERSION, "requirements": ["-e ."]},
    {"python": VERSION, "requirements": ["tint @ file:///etc/passwd"]},
    {"python": VERSION, "variables": {"LD_PRELOAD": "x.so"}}, {"python": VERSION, "requirements": ["Shade[all]>1"]},
]  # fmt: skip


def nonsense(number: int) -> dict[str, Any]:
    """Each time another one: what was answered once is not asked again."""
    return {**NONSENSE[number % len(NONSENSE)], "newest": f"2020-01-{number + 1:02d}"}


def test_ten_recipes_of_nonsense_leave_the_error_as_it_was(
    context_of: Callable[..., BuildContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder_fails(monkeypatch)
    with ScriptedModel(lambda received: answer_json(nonsense(received.number))) as model:
        for _ in range(2):
            context = context_of(model)
            with pytest.raises(
                SourceError, match=r"No module named 'tint'; and 10 recipes by scripted\)\. Next: leave"
            ):
                prepared(context)
        assert len(model.requests) == ROUNDS == 10
        assert "***@host" in model.requests[0].prompt
        assert "pw1" not in json.dumps([request.body for request in model.requests])


def test_an_answer_that_is_no_recipe_leaves_the_error_as_it_was(
    context_of: Callable[..., BuildContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder_fails(monkeypatch)
    with (
        ScriptedModel(lambda received: text("Just run curl host | sh")) as model,
        pytest.raises(SourceError, match="and 0 recipes by scripted"),
    ):
        prepared(context_of(model))


def test_endpoints_and_budgets_stop_and_offline_asks_nobody(
    context_of: Callable[..., BuildContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder_fails(monkeypatch)

    def answer(received: Received) -> Answer:
        return failure(401, "the key has expired")

    with ScriptedModel(answer) as model:
        with pytest.raises(Unsolved, match=r"No module named 'tint'\)"):
            prepared(context_of(model, offline=True))
        assert not model.requests
        with pytest.raises(EndpointDown):
            prepared(context_of(model))
    dear = Usage(prompt_tokens=4000, completion_tokens=1000)
    with (
        ScriptedModel(lambda received: answer_json(nonsense(received.number), usage=dear)) as model,
        pytest.raises(BudgetSpent),
    ):
        prepared(context_of(model, cache="poor", budget=0.02))
    with pytest.raises(Unsolved, match=r"No module named 'tint'\)"):
        prepared(context_of())


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("requirements", ("x @ https://host/x.whl",)), ("requirements", ("x @ git+https://host/x",)),
        ("requirements", ("./x",)), ("requirements", ("x\n--index-url http://host",)), 
        ("requirements", ("-r /etc/passwd",)),
        ("requirements", ("x==${A_TOKEN}",)), ("requirements", ('x; python_version > "$A_TOKEN"',)),
        ("requirements", ("x --config-settings=y",)), ("requirements", ("x # y",)), ("requirements", ("x" * 400,)),
        ("newest", "2999-01-01"), ("newest", "yesterday"), ("newest", "2024-13-01"),
        ("python", "2.7"), ("python", "3"),
        ("variables", {"PATH": "/tmp"}), ("variables", {"PYTHONSTARTUP": "x.py"}), ("variables", {"ld_preload": "x"}),
        ("variables", {"PYTEST_ADDOPTS": "-p x"}), ("variables", {"HTTPS_PROXY": "http://host"}),
        ("variables", {"A=B": "x"}), ("variables", {"A": "x\ny"}), ("variables", {"BASH_ENV": "x"}),
    ],
)  # fmt: skip
def test_what_no_recipe_may_hold(part: str, value: object) -> None:
    wanted = WantedRecipe.model_validate({"python": VERSION, part: value})
    assert [finding.where for finding in unfit_parts(wanted, [VERSION])] == [part]


def test_no_recipe_fills_the_environment_of_every_command() -> None:
    many = {f"A{number}": "x" for number in range(51)}
    with pytest.raises(ValidationError, match="at most 50"):
        WantedRecipe(python=VERSION, variables=many)


def test_what_a_recipe_may_hold() -> None:
    wanted = WantedRecipe(
        python=VERSION, requirements=("attrs[tests]>=22,<23", 'tomli; python_version < "3.11"', "x==1.0.post1"),
        newest="2024-02-29", variables={"DJANGO_SETTINGS_MODULE": "tests.settings"},
    )  # fmt: skip
    assert not list(unfit_parts(wanted, [VERSION]))


@pytest.mark.parametrize(("index", "expected"), [("https://me:pw1@host/simple", True), ("https://host/simple", False)])
def test_nothing_is_built_from_source_where_it_would_see_a_login(
    context_of: Callable[..., BuildContext], monkeypatch: pytest.MonkeyPatch, index: str, expected: bool
) -> None:
    monkeypatch.setattr(repair_module, "registry_settings", lambda: {"UV_INDEX_URL": index})
    asked: list[bool] = []

    @dataclasses.dataclass
    class Trying:
        def attempt(self, wanted: WantedRecipe, *, wheels_only: bool = False) -> Attempt:
            asked.append(wheels_only)
            return Attempt(None, 0, (Finding(rule="requirements_not_met", message=f"{index} has no x"),))

    context = context_of()
    project = Project(tree(context, PROJECT), context.blobs.get)
    repair = Repair(Trying(), project, NEWEST, source(), context)  # type: ignore[arg-type]
    (finding,) = repair._examined(WantedRecipe(python=VERSION))
    assert asked == [expected]
    assert "pw1" not in finding.message


def test_a_project_is_never_installed_from_the_registry(context_of: Callable[..., BuildContext]) -> None:
    """A later release would hold the solution."""
    files = {
        "pyproject.toml": '[project]\nname = "Big.Name"\n', "src/inner/__init__.py": "", "flat/__init__.py": "",
        "tool.py": "", "tests/__init__.py": "", "tests/test_x.py": "",
    }  # fmt: skip
    context = context_of()
    own = own_names(Project(tree(context, files), context.blobs.get))
    assert own == {"big-name", "inner", "flat", "tool"}
    for name in ("big_name", "BIG-NAME>=1", "inner", "Flat[x]"):
        (finding,) = unfit_parts(WantedRecipe(python=VERSION, requirements=(name,)), [VERSION], own)
        assert "is the project itself" in finding.message


def test_a_recipe_file_that_is_none(context_of: Callable[..., BuildContext], tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    for content, cause in (
        ("{}", "Field required"), ("no JSON", "Invalid JSON"), (json.dumps({"python": "2.7"}), "is not installed"),
        (json.dumps({"python": VERSION, "requirements": ["x @ file:///x"]}), "names an address"),
    ):  # fmt: skip
        file.write_text(content)
        with pytest.raises(ConfigError, match=f"the recipe cannot be used .*{cause}"):
            prepared(context_of(), recipe=str(file))
    with pytest.raises(ConfigError, match="No such file"):
        prepared(context_of(), recipe=str(tmp_path / "gone.json"))
