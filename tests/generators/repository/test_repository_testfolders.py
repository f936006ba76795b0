"""Which folders belong to a project's tests although their names are not in the language's rules."""

from __future__ import annotations

import re

import pytest

from envsynth.generators.repository.roles import RoleBook
from envsynth.generators.repository.testfolders import rules_of_test_folders
from envsynth.languages.python.roles import RULES

PACKAGE = {"shop/__init__.py": "", "shop/core.py": "", "shop/more.py": "", "README.md": ""}


def folders(files: dict[str, str], changed: tuple[str, ...] = ("shop/core.py",)) -> list[str]:
    every = {**PACKAGE, **files}
    rules = rules_of_test_folders(tuple(every), changed, every.__getitem__, RoleBook(RULES))
    assert {rule.role.value for rule in rules} <= {"test"}
    return [re.sub(r"\\(.)", r"\1", rule.pattern) for rule in rules]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"unittests/test_a.py": "", "unittests/data/two.txt": "", "unittests/compare.py": ""}, ["^unittests/"]),
        ({"checks/test_a.py": "", "checks/__init__.py": "", "checks/kit.py": "", "checks/b_test.py": ""}, ["^checks/"]),
        ({"golden/mixed.txt": "", "a/__snapshots__/b.txt": ""}, ["^golden/", "^a/__snapshots__/"]),
        ({"test_support/compare.py": "", "test_support/__init__.py": ""}, ["^test_support/"]),
        ({"shop/checks/test_a.py": "", "shop/checks/__init__.py": "", "shop/checks/a.txt": ""}, ["^shop/checks/"]),
        ({"a+b/fixtures/x.json": ""}, ["^a+b/fixtures/"]),
        ({"tests/golden/x.txt": "", "tests/test_a.py": ""}, []),
        ({"shop/fixtures/x.json": ""}, []),
        ({"src/shop2/snapshots/x.json": ""}, []),
        ({"fixtures/__init__.py": "", "fixtures/a.py": "", "shop/core.py": "from fixtures import a"}, []),
        ({"test_support/kit.py": "", "shop/core.py": "from a import b\nfrom . import (\n    c,\n    kit,\n)"}, []),
        ({"scripts/build.py": "", "scripts/test_build.py": ""}, []),
        ({"scripts/a.py": "", "scripts/b.py": "", "scripts/test_all.py": ""}, []),
        ({"src/test_a.py": "", "src/test_b.py": "", "src/mod.py": ""}, []),
        ({"shop/test_core.py": "", "shop/test_more.py": "", "shop/test_x.py": "", "shop/test_y.py": ""}, []),
        ({"test_shop.py": ""}, []),
    ],
)
def test_folders(files: dict[str, str], expected: list[str]) -> None:
    assert folders(files) == expected


def test_a_folder_with_all_that_a_commit_changes_is_source() -> None:
    files = {"unittests/test_a.py": "", "unittests/mod.py": ""}
    assert folders(files, ("unittests/mod.py", "unittests/test_a.py")) == []
    assert folders(files, ("unittests/mod.py", "shop/core.py")) == ["^unittests/"]
