"""What each path of a Python project is to a solution."""

from __future__ import annotations

from envsynth.models import Role, RoleRule

CONFIG_NAMES = (
    r"conftest\.py", r"pytest\.(ini|toml)", r"\.pytest\.(ini|toml)", r"tox\.(ini|toml)", r"setup\.cfg",
    r"pyproject\.toml", r"setup\.py", r"noxfile\.py", r"\.coveragerc", r"MANIFEST\.in", r"Pipfile(\.lock)?",
    r"(poetry|uv|pdm|pylock[\w.-]*)\.(lock|toml)", r"(site|user)customize\.py", r"[\w.-]*requirements[\w.-]*\.(txt|in)",
    r"Makefile", r"\.python-version", r"pyvenv\.cfg", r"py\.ini", r"unittest\.cfg", r"nose2?\.cfg", r"\.noserc",
    r"\.env",
)  # fmt: skip
"""Files that decide how the project is packaged and its tests run, in any folder."""

RULES: tuple[RoleRule, ...] = tuple(
    RoleRule(pattern=pattern, role=role)
    for pattern, role in (
        (rf"(?:^|/)(?:{'|'.join(CONFIG_NAMES)})$", Role.CONFIG),
        # Start-up hooks, and installed metadata, whose entry points could load a runner's plug-in.
        (r"\.(?:pth|egg-link|pyc|pyo)$", Role.CONFIG),
        (r"(?:^|/)(?:__pycache__|[^/]+\.(?:dist-info|egg-info|egg)|\.git|\.hg|\.svn|\.tox|\.nox|\.venv|venv)(?:/|$)",
         Role.CONFIG),
        # A compiled module wins over a source file of its name and cannot be read: never part of a solution.
        (r"\.(?:so|pyd|dll|dylib)(?:\.[\d.]+)?$", Role.CONFIG),
        (r"^requirements/", Role.CONFIG),
        (r"^\.(?:github|circleci|gitlab|ci|azure-pipelines)", Role.CONFIG),
        # `testing/` and `test/` deep inside a package are often what it offers to its users.
        (r"(?:^|/)(?:_?tests|[\w-]+[_-]tests|test[_-]?data|testsuite)/|^(?:[^/]+/)?_?test/|^testing/", Role.TEST),
        (r"(?:^|/)(?:test_[^/]*|[^/]*_tests?|tests|testsuite)\.(?:py|pyi|pyx)$|^test\.py$", Role.TEST),
        (r"^(?:docs?|documentation|examples?|benchmarks?|news|changelog\.d|changes|\.changes)/", Role.OTHER),
        (r"\.(?:py|pyi|pyx|pxd|pxi)$", Role.SOURCE),
        (r"\.(?:c|h|cc|cpp|hpp|rs)$", Role.SOURCE),
        # Tables, templates and the like that lie inside a package.
        (r"^(?:src|lib)/.+/[^/]+\.[a-z0-9]+$", Role.SOURCE),
    )
)  # fmt: skip


def is_test_file(path: str) -> bool:
    """Whether a runner collects tests from a path by its name."""
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py") or name == "tests.py")
