"""The plug-in as the pipeline uses it: prepare, then grade. No registry unless marked."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from envsynth.context import BuildContext
from envsynth.errors import SourceError
from envsynth.languages.python import Python
from envsynth.languages.python.language import graded_tree
from envsynth.languages.python.layout import source_roots
from envsynth.languages.python.project import Project
from envsynth.languages.python.wheel import generated_files, read_wheel, with_version
from envsynth.models import FileMode, Origin, Source, SourceKind, SourceOptions, Tree, TreeEntry, Workspace

SOURCE = Source(
    uri="file:///project", kind=SourceKind.GIT, location="/project", options=SourceOptions(trusted=True),
    origin=Origin(file="list.txt", line=1),
)  # fmt: skip
LANGUAGE = Python()


@pytest.fixture
def context(tmp_path: Path) -> BuildContext:
    return BuildContext(tmp_path / "cache", sandbox="local")


def tree(context: BuildContext, files: dict[str, str]) -> Tree:
    entries = tuple(
        TreeEntry(path=path, mode=FileMode.FILE, blob=context.blobs.put(text.encode()), size=len(text.encode()))
        for path, text in files.items()
    )
    return Tree(entries=entries)


PROJECT = {
    "shape.py": "def area(side):\n    return side * 2\n",
    "test_shape.py": (
        "import unittest\nimport shape\nclass TestArea(unittest.TestCase):\n"
        "    def test_two(self): self.assertEqual(shape.area(2), 4)\n"
        "    def test_three(self): self.assertEqual(shape.area(3), 9)\n"
    ),
}


def prepare(context: BuildContext, files: dict[str, str]) -> object:
    return LANGUAGE.prepare(
        tree(context, files), newest="2024-05-20T10:00:00+00:00", version_hint="1.0", source=SOURCE, context=context
    )


def test_prepare_and_grade(context: BuildContext) -> None:
    start = tree(context, PROJECT)
    prepared = LANGUAGE.prepare(start, newest="2024-05-20", version_hint="1", source=SOURCE, context=context)
    assert prepared.recipe.newest == "2024-05-01T00:00:00Z"
    assert (prepared.command.runner, prepared.command.targets) == ("unittest", ("test_shape.py",))
    assert not prepared.cost.cached
    again = LANGUAGE.prepare(start, newest="2024-05-02", version_hint="2", source=SOURCE, context=context)
    assert again.cost.cached
    assert again.path == prepared.path

    workspace = Workspace(
        tree=context.blobs.put_tree(start),
        hidden=context.blobs.put_tree(start.select(lambda path: path == "test_shape.py")),
        recipe=prepared.recipe, command=prepared.command, roles=LANGUAGE.roles(),
    )  # fmt: skip
    run = LANGUAGE.run_tests(workspace, start, source=SOURCE, context=context)
    assert {one.id: one.status.value for one in run.records} == {
        "test_shape.TestArea.test_two": "passed",
        "test_shape.TestArea.test_three": "failed",
    }
    assert run.complete
    assert run.cost.cpu_s > 0

    # A solution that fixes the source, and one that only changes what judges it.
    fixed = start.overlay(tree(context, {"shape.py": "def area(side):\n    return side ** 2\n"}))
    run = LANGUAGE.run_tests(workspace, fixed, source=SOURCE, context=context)
    assert {one.status.value for one in run.records} == {"passed"}
    cheat = {"test_shape.py": "", "sitecustomize.py": "import os; os._exit(0)\n", "conftest.py": ""}
    run = LANGUAGE.run_tests(workspace, start.overlay(tree(context, cheat)), source=SOURCE, context=context)
    assert sorted(one.status.value for one in run.records) == ["failed", "passed"]


def test_the_graded_tree(context: BuildContext) -> None:
    start = tree(context, {"pkg.py": "1", "tests/test_a.py": "old", "setup.cfg": "old", "docs/x.md": ""})
    hidden = tree(context, {"tests/test_a.py": "new", "setup.cfg": "hidden", "tests/test_b.py": "added"})
    command = {"runner": "pytest", "targets": ("tests",)}
    recipe = {"language": "python", "interpreter": "3.11", "requirements": (), "newest": "2024-01-01"}
    workspace = Workspace.model_validate(
        {
            "tree": context.blobs.put_tree(start), "hidden": context.blobs.put_tree(hidden), "recipe": recipe,
            "command": command, "roles": LANGUAGE.roles(), "allowed": ("setup.cfg",),
        }
    )  # fmt: skip
    agent = start.overlay(tree(context, {"pkg.py": "2", "setup.cfg": "mine", "conftest.py": "evil", "tests/x.py": ""}))
    graded = graded_tree(workspace, agent, context)
    content = {one.path: context.blobs.get(one.blob).decode() for one in graded.entries}
    assert content == {
        "pkg.py": "2", "setup.cfg": "mine", "docs/x.md": "", "tests/test_a.py": "new", "tests/test_b.py": "added",
    }  # fmt: skip


def test_a_project_without_tests(context: BuildContext) -> None:
    with pytest.raises(SourceError, match=r"file:///project: there are no tests .*Next:"):
        prepare(context, {"shape.py": ""})


def test_tests_that_cannot_be_collected(context: BuildContext) -> None:
    with pytest.raises(SourceError, match=r"no test of this project can be collected .*no_such_module"):
        prepare(context, {"test_a.py": "import unittest\nimport no_such_module\n"})


def test_detect(context: BuildContext) -> None:
    assert LANGUAGE.detect(tree(context, {"setup.py": ""}))
    assert LANGUAGE.detect(tree(context, {"tests/test_a.py": ""}))
    assert not LANGUAGE.detect(tree(context, {"package.json": "{}", "tool.py": ""}))
    assert not LANGUAGE.detect(tree(context, {"pyproject.toml": "", "main.go": ""}))


def wheel_bytes(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return buffer.getvalue()


def test_a_wheel_is_read(context: BuildContext, tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "", "pkg/_version.py": "version = '1'", "top_version.py": "",
        "pkg-1.data/purelib/pkg/extra.py": "", "pkg-1.data/scripts/tool": "", "../evil.py": "", "/abs.py": "",
        "pkg-1.dist-info/METADATA": "Name: pkg\nDescription: a\n  b\nVersion: 1\n\nThe README",
        "pkg-1.dist-info/entry_points.txt": "[console_scripts]\n", "pkg-1.dist-info/RECORD": "pkg/__init__.py,,\n",
    }  # fmt: skip
    path = tmp_path / "pkg-1-py3-none-any.whl"
    path.write_bytes(wheel_bytes(files))
    wheel = read_wheel(path)
    assert wheel is not None
    assert wheel.names == ("pkg", "top_version")
    assert wheel.site["pkg-1.dist-info/METADATA"] == b"Name: pkg\nVersion: 1\n"
    assert b"pkg/__init__.py" not in wheel.site["pkg-1.dist-info/RECORD"]
    assert not [name for name in wheel.files if "evil" in name or "abs" in name or "tool" in name]
    project = Project(tree(context, {"src/pkg/__init__.py": ""}), context.blobs.get)
    roots = source_roots(project, wheel.names)
    generated = generated_files(wheel, project, roots, context)
    assert sorted(generated.by_path) == ["src/pkg/_version.py", "src/pkg/extra.py"]
    behind_a_link = Project(tree(context, {"src/pkg": "../other"}), context.blobs.get)
    assert generated_files(wheel, behind_a_link, roots, context).entries == ()
    assert with_version(wheel, "7.1") == wheel
    path.write_bytes(b"not a wheel")
    assert read_wheel(path) is None


def test_a_version_that_git_would_have_told(tmp_path: Path) -> None:
    path = tmp_path / "pkg-0.0.1-py3-none-any.whl"
    path.write_bytes(wheel_bytes({"pkg.py": "", "pkg-0.0.1.dist-info/METADATA": "Name: pkg\nVersion: 0.0.1\n\n"}))
    wheel = read_wheel(path)
    assert wheel is not None
    assert with_version(wheel, "7.1").site["pkg-0.0.1.dist-info/METADATA"] == b"Name: pkg\nVersion: 7.1\n"
    assert with_version(wheel, "") == wheel


@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.slow
def test_an_environment_from_the_registry(tmp_path: Path) -> None:
    context = BuildContext(tmp_path / "cache", sandbox="bubblewrap")
    reason = context.backend(SOURCE).unavailable()
    if reason:
        pytest.skip(reason)
    files = {
        "pyproject.toml": (
            '[project]\nname = "oldpkg"\ndynamic = ["version"]\ndependencies = ["docopt"]\n'
            '[project.scripts]\noldtool = "oldpkg:main"\n[build-system]\nrequires = ["setuptools", "setuptools_scm"]\n'
            'build-backend = "setuptools.build_meta"\n[tool.setuptools]\npackages = ["oldpkg"]\n'
            '[tool.setuptools_scm]\nwrite_to = "oldpkg/_version.py"\n'
        ),
        "oldpkg/__init__.py": "import docopt\nfrom oldpkg._version import version\ndef main(): print(version)\n",
        "tests/test_v.py": (
            "import oldpkg, pytest, subprocess\nfrom importlib import metadata\n"
            "def test_v():\n    assert oldpkg.version == metadata.version('oldpkg') == '1.2.3'\n"
            "    assert subprocess.check_output(['oldtool']) == b'1.2.3\\n'\n"
            "    assert pytest.__version__ == '8.2.0'\n"
        ),
    }
    start = tree(context, files)
    prepared = LANGUAGE.prepare(start, newest="2024-05-05", version_hint="1.2.3", source=SOURCE, context=context)
    assert "docopt==0.6.2" in prepared.recipe.requirements
    assert list(prepared.generated.by_path) == ["oldpkg/_version.py"]
    whole = start.overlay(prepared.generated)
    hidden = whole.select(lambda path: path == "tests/test_v.py")
    workspace = Workspace(
        tree=context.blobs.put_tree(whole), hidden=context.blobs.put_tree(hidden),
        recipe=prepared.recipe, command=prepared.command, roles=LANGUAGE.roles(), allowed=("pyproject.toml",),
    )  # fmt: skip
    run = LANGUAGE.run_tests(workspace, whole, source=SOURCE, context=context)
    assert [(one.id, one.status.value) for one in run.records] == [("tests/test_v.py::test_v", "passed")]
