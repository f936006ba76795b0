"""What projects declare, in the many places where they do."""

from __future__ import annotations

import hashlib

import pytest

from envsynth.errors import NoInterpreter
from envsynth.languages.python.choose import fitting_interpreters
from envsynth.languages.python.declared import declared, highest_classifier, requires_python
from envsynth.languages.python.layout import choose_runner, collection_targets, known_imports, own_modules, source_roots
from envsynth.languages.python.project import Project
from envsynth.languages.python.requirement_files import ToxEnvironment, clean, standard_constraint
from envsynth.languages.python.roles import RULES
from envsynth.models import FileMode, Tree, TreeEntry, role_of
from envsynth.runtime.interpreters import Interpreter


def project(files: dict[str, str]) -> Project:
    blobs = {hashlib.sha256(text.encode()).hexdigest(): text.encode() for text in files.values()}
    entries = tuple(
        TreeEntry(path=path, mode=FileMode.FILE, blob=hashlib.sha256(text.encode()).hexdigest(), size=len(text))
        for path, text in files.items()
    )
    return Project(Tree(entries=entries), blobs.__getitem__)


PYPROJECT = """
[project]
name = "My.Tool"
requires-python = ">=3.9"
dependencies = ["click>=8", "tomli; python_version < '3.11'"]
classifiers = ["Programming Language :: Python :: 3.9", "Programming Language :: Python :: 3.12"]
[project.optional-dependencies]
test = ["hypothesis", "my-tool[extra]"]
extra = ["pyyaml"]
docs = ["sphinx"]
[dependency-groups]
tests = ["pytest-mock", {include-group = "shared"}]
shared = ["freezegun", {include-group = "tests"}]
dev = ["ruff"]
"""


def test_pyproject() -> None:
    found = declared(project({"pyproject.toml": PYPROJECT}), "", "3.12")
    assert found.name == "my-tool"
    assert set(found.runtime) == {"click>=8", 'tomli; python_version < "3.11"'}
    assert set(found.test) == {"hypothesis", "pyyaml", "pytest-mock", "freezegun"}
    assert found.dev == ("ruff",)
    assert requires_python(project({"pyproject.toml": PYPROJECT})) == ">=3.9"
    assert highest_classifier(project({"pyproject.toml": PYPROJECT})) == "3.12"


def test_built_metadata_wins_and_markers_are_decided() -> None:
    metadata = (
        "Metadata-Version: 2.1\nName: My.Tool\nVersion: 1\nProvides-Extra: test\nRequires-Dist: click>=8\n"
        "Requires-Dist: tomli; python_version < '3.11'\nRequires-Dist: numpy; extra == 'test'\n"
        "Requires-Dist: mock; extra == 'test' and python_version < '3.9'\nRequires-Dist: x @ https://example.org/x.zip\n"
    )
    found = declared(project({"setup.py": "setup(install_requires=['wrong'])"}), metadata, "3.12")
    assert (found.runtime, found.test) == (("click>=8",), ("numpy",))
    assert "tomli" in declared(project({}), metadata, "3.9").runtime


def test_setup_files() -> None:
    setup = (
        "from setuptools import setup\nTESTS = ['mock']\n"
        "setup(name='old', python_requires='>=3.7', install_requires=['six'] + open('x').readlines(),\n"
        "      tests_require=TESTS, extras_require={'testing': ['nose2'], 'docs': ['sphinx']})\n"
    )
    found = declared(project({"setup.py": setup}), "", "3.9")
    assert (found.name, found.runtime, found.test) == ("old", ("six",), ("nose2", "mock"))
    assert requires_python(project({"setup.py": setup})) == ">=3.7"
    cfg = "[metadata]\nname = old\n[options]\npython_requires = >=3.6\ninstall_requires =\n  a  # why\n  b>1\n"
    found = declared(project({"setup.cfg": cfg + "[options.extras_require]\ntests =\n  c\n"}), "", "3.9")
    assert (found.runtime, found.test) == (("a", "b>1"), ("c",))
    assert requires_python(project({"setup.cfg": cfg})) == ">=3.6"


def test_requirement_files_with_includes() -> None:
    files = {
        "requirements.txt": "base==1\n",
        "requirements/tests.txt": "-r ../requirements.txt\n-e .\n./local\npytest-x==2 --hash=sha256:00\n-c pins.txt\n",
        "requirements/docs.txt": "sphinx\n",
        "requirements-dev.txt": "-r requirements-dev.txt\nblack\ngit+https://example.org/x\n",
    }
    found = declared(project(files), "", "3.9")
    assert found.test == ("base==1", "pytest-x==2")
    assert found.dev == ("black", "base==1")


def test_an_unpinned_file_stands_for_the_one_compiled_from_it() -> None:
    files = {"requirements/tests.in": "pytest\n", "requirements/tests.txt": "pytest==7.1.2\n"}
    assert declared(project(files), "", "3.9").test == ("pytest",)


def test_tox() -> None:
    tox = (
        "[tox]\nenvlist = py39\n[testenv]\ndeps =\n  pytest-x\n  py38: backport\n  -r{toxinidir}/req.txt\n  .[fast]\n"
        "extras = test\ndependency_groups = lab\nset_env =\n  LANGUAGE = en\n  PATH = {envdir}/bin\n"
        "[testenv:docs]\ndeps = sphinx\n"
    )
    one = project({"tox.ini": tox, "req.txt": "from-file\n"})
    found = ToxEnvironment(one)
    assert found.requirements == ["pytest-x", "from-file"]
    assert {"fast", "test"} <= set(found.extras)
    assert "lab" in found.groups
    assert found.variables == [("LANGUAGE", "en")]
    native = "[env_run_base]\ndeps = ['pytest-y']\ndependency_groups = ['lab']\n"
    groups = "[dependency-groups]\nlab = ['flask']\n"
    assert set(declared(project({"tox.toml": native, "pyproject.toml": groups}), "", "3.9").test) == {
        "pytest-y",
        "flask",
    }


def test_nox() -> None:
    nox = (
        "def tests(session):\n    session.install('-r', 'r.txt')\n    session.install('.', 'mock')\n"
        "def lint(session):\n    session.install('black')\n"
    )
    assert set(declared(project({"noxfile.py": nox, "r.txt": "six\n"}), "", "3.9").dev) == {"six", "mock"}


def test_poetry() -> None:
    text = (
        "[tool.poetry]\nname = 'p'\n[tool.poetry.dependencies]\npython = '^3.8'\nclick = '^8.1'\n"
        "local = {path = '../x'}\n[tool.poetry.group.test.dependencies]\nmock = {version = '~4.0'}\n"
    )
    found = declared(project({"pyproject.toml": text}), "", "3.9")
    assert (found.runtime, found.test) == (("click<9,>=8.1",), ("mock<4.1,>=4.0",))
    assert requires_python(project({"pyproject.toml": text})) == ">=3.8,<4"


@pytest.mark.parametrize(
    ("constraint", "standard"),
    [
        ("^1.2", ">=1.2,<2"), ("^0.3.1", ">=0.3.1,<0.4"), ("~1.2.3", ">=1.2.3,<1.3"), ("~1", ">=1,<2"),
        ("*", ""), ("1.5", "==1.5"), (">=1,<3", ">=1,<3"), ("^0.0.3", ">=0.0.3,<0.0.4"),
    ],
)  # fmt: skip
def test_poetry_constraints(constraint: str, standard: str) -> None:
    assert standard_constraint(constraint) == standard


def test_lines_that_are_no_requirements_are_left_out() -> None:
    lines = ["# only words", "", "-e .", "--index-url x", "a b c", "ok>=1 # why", "x @ file:///x", "./y"]
    assert list(clean(lines)) == ["ok>=1"]


def test_broken_files_are_empty_ones() -> None:
    broken = project({"pyproject.toml": "[[[", "setup.cfg": "nonsense", "setup.py": "def (", "tox.ini": "\0"})
    assert declared(broken, "", "3.9") == ("", (), (), ())


INSTALLED = tuple(Interpreter(f"3.{minor}", 1, None) for minor in (6, 8, 9, 10, 11, 12, 13))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("requires", "newest", "cap", "best"),
    [
        (">=3.8", "2023-06-01", "", "3.11"),
        (">=3.8", "2023-06-01", "3.9", "3.9"),
        (">=3.8,<3.10", "2026-01-01", "", "3.9"),
        ("", "2010-01-01", "", "3.8"),
        (">=3.12", "2023-06-01", "", "3.12"),
        ("nonsense", "2022-01-01", "", "3.10"),
        ("", "2026-06-01", "3.7", "3.8"),
    ],
)
def test_the_interpreter_of_the_time(requires: str, newest: str, cap: str, best: str) -> None:
    found = fitting_interpreters(requires, newest=newest, cap=cap, where="x", installed=INSTALLED)
    assert found[0].version == best


def test_no_interpreter_fits() -> None:
    with pytest.raises(NoInterpreter, match=r"requires Python <3; installed: 3\.6\.1, 3\.8\.1.*Next: leave .* 3\.8 on"):
        fitting_interpreters("<3", newest="2020-01-01", cap="", where="x", installed=INSTALLED)


@pytest.mark.parametrize(
    ("requires", "newest", "advised"),
    [
        (">=3.13", "2025-01-01", "3.13"), (">=3.13", "2025-12-01", "3.14"), (">=3.13.4", "2025-01-01", "3.13"),
        (">=3.13", "2020-01-01", "3.13"),
    ],
)  # fmt: skip
def test_the_interpreter_to_install_is_named(requires: str, newest: str, advised: str) -> None:
    with pytest.raises(NoInterpreter, match=rf"Next: install one that fits \(`uv python install {advised}`"):
        fitting_interpreters(requires, newest=newest, cap="", where="x", installed=INSTALLED[:2])


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("conftest.py", "config"), ("src/pkg/conftest.py", "config"), ("tests/conftest.py", "config"),
        ("pyproject.toml", "config"), ("setup.cfg", "config"), ("pytest.ini", "config"), ("tests/pytest.ini", "config"),
        ("sitecustomize.py", "config"), ("a/usercustomize.py", "config"), ("x.pth", "config"), ("x.egg-link", "config"),
        ("evil.dist-info/entry_points.txt", "config"), ("src/p.egg-info/PKG-INFO", "config"),
        ("pkg/__pycache__/m.cpython-311.pyc", "config"), ("pkg/fast.so", "config"), ("requirements-test.txt", "config"),
        ("tox.ini", "config"), ("noxfile.py", "config"), (".coveragerc", "config"), ("MANIFEST.in", "config"),
        ("tests/test_x.py", "test"), ("tests/data/x.json", "test"), ("test/x.py", "test"),
        ("pkg/tests/helper.py", "test"),
        ("test_root.py", "test"), ("pkg/x_test.py", "test"), ("app/tests.py", "test"), ("testing/x.py", "test"),
        ("src/pkg/core.py", "source"), ("pkg/core.py", "source"), ("pkg/stubs.pyi", "source"),
        ("src/pkg/t.json", "source"),
        ("src/werkzeug/test.py", "source"), ("lib/sqlalchemy/testing/x.py", "source"), ("pkg/latest.py", "source"),
        ("pkg/contest.py", "source"), ("README.md", "other"), ("docs/conf.py", "other"), ("CHANGES.rst", "other"),
    ],
)  # fmt: skip
def test_roles(path: str, role: str) -> None:
    assert role_of(path, RULES).value == role


def test_targets() -> None:
    paths = ("tests/unit/test_a.py", "pkg/tests/test_b.py", "test_c.py", "bench/test_d.py", "pkg/x.py")
    files = dict.fromkeys(paths, "")
    assert collection_targets(project(files)) == ("pkg/tests", "test_c.py", "tests")
    named = {**files, "pytest.ini": "[pytest]\ntestpaths = pkg/tests\n"}
    assert collection_targets(project(named)) == ("pkg/tests",)
    missing = {**files, "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['nowhere']\n"}
    assert collection_targets(project(missing)) == ("pkg/tests", "test_c.py", "tests")


def test_runner() -> None:
    unit = {"tests/test_a.py": "import unittest\n"}
    assert choose_runner(project(unit)) == "unittest"
    assert choose_runner(project({**unit, "tox.ini": "[testenv]\ncommands = pytest"})) == "pytest"
    assert choose_runner(project({"tests/test_a.py": "def test(): pass"})) == "pytest"


def test_roots() -> None:
    src = project({"src/pkg/__init__.py": "", "tests/pkg/x.py": "", "setup.py": ""})
    assert source_roots(src, ("pkg",)) == ("src",)
    assert source_roots(src, ()) == ("src",)
    assert source_roots(project({"pkg/__init__.py": "", "pkg/pkg.py": ""}), ("pkg",)) == (".",)
    both = project({"a/one/__init__.py": "", "b/two.py": ""})
    assert source_roots(both, ("one", "two")) == ("a", "b")


def test_own_modules_are_the_collisions(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "lib/python3.11/site-packages/attr").mkdir(parents=True)
    paths = ("src/attr/__init__.py", "src/other.py", "tests/test_a.py", "tests/json.py", "ast/no_package.py")
    one = project(dict.fromkeys(paths, ""))
    assert own_modules(one, ("src",), tmp_path) == ("attr", "json")


def test_known_imports() -> None:
    text = "import yaml, numpy.linalg\nfrom . import six\nfrom mine import x\nimport unheard_of\n"
    one = project({"tests/test_a.py": text})
    assert known_imports(one, ("numpy",)) == ("pyyaml",)
