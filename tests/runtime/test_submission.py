from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import tiny_task as tiny
from hypothesis import given
from hypothesis import strategies as st

from envsynth.runtime import submission as module
from envsynth.runtime.contract import Change
from envsynth.runtime.lines import count_lines
from envsynth.runtime.roles import Admission, Roles, pristine_manifest, reserved_names
from envsynth.runtime.submission import Collector, FileRow, changed_paths, reference_rows, state_digest
from envsynth.runtime.trees import Entry

RULES = [rule.document() for rule in tiny.ROLES]


class FakeSandbox:
    """A workspace's changes as values: content and mode, `None` removed, an exception what reading raises."""

    def __init__(self, changes: dict[str, object]) -> None:
        self._changes = changes

    def changes(self) -> list[Change]:
        return [Change(path, "removed" if value is None else "present") for path, value in self._changes.items()]

    def read_changed(self, path: str, *, max_bytes: int) -> tuple[bytes, str]:
        value = self._changes[path]
        if isinstance(value, Exception):
            raise value
        content, mode = value if isinstance(value, tuple) else (value, "file")
        if len(content) > max_bytes:
            raise ValueError("too large")
        return content, mode


BLOBS: dict[str, bytes] = {}


def manifest(files: dict[str, str]) -> dict[str, Entry]:
    found = {}
    for path, text in files.items():
        digest = hashlib.sha256(text.encode()).hexdigest()
        BLOBS[digest] = text.encode()
        found[path] = Entry("file", digest, len(text))
    return found


def collect(changes: dict[str, object], *, start=tiny.START, hidden=tiny.HIDDEN, allowed=(), roots=(".",), rules=RULES):
    base, roles = manifest(start), Roles(rules)
    pristine = pristine_manifest(base, manifest(hidden), roles, allowed)
    admission = Admission(roles, allowed, roots, base, manifest(hidden))
    collector = Collector(roles, admission, base, pristine, BLOBS.__getitem__)
    return collector.collect(FakeSandbox(changes), frozenset({"json", "pytest", "pluggy"}))


def test_source_changes_are_taken_with_their_line_counts() -> None:
    taken = collect({"shop/prices.py": tiny.FIXED.encode(), "shop/new.py": b"a\nb\n", "shop/basket.py": None})
    assert taken.rows == (
        FileRow("shop/basket.py", "source", "removed", 0, 5),
        FileRow("shop/new.py", "source", "added", 2, 0),
        FileRow("shop/prices.py", "source", "modified", 1, 1),
    )
    assert taken.files == {"shop/prices.py": (tiny.FIXED.encode(), "file"), "shop/new.py": (b"a\nb\n", "file")}
    assert (taken.removed, taken.left_out) == (("shop/basket.py",), ())


def test_what_equals_the_start_tree_is_no_change_but_its_mode_is() -> None:
    same = tiny.START["README.md"].encode()
    assert collect({"README.md": same}).rows == ()
    assert collect({"README.md": (same, "executable")}).rows == (FileRow("README.md", "other", "modified", 0, 0),)
    assert collect({"gone": None}).rows == ()


@pytest.mark.parametrize(
    "path",
    [
        "conftest.py", "shop/conftest.py", "shop/CONFTEST.py", "tests/test_prices.py", "tests/new.py", "Tests/x.py",
        "tests/data.txt", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "sitecustomize.py",
        "usercustomize.py", "usercustomize/__init__.py", "shop.pth", "x.egg-link", "evil.dist-info/entry_points.txt",
        "evil.egg-info/entry_points.txt", "pytest.py", "json.py", "json/__init__.py", "pluggy/hooks.py",
        "json.cpython-311-x86_64-linux-gnu.so", "tests/json.py", ".git/hooks/post-checkout", "pyvenv.cfg",
    ],
)  # fmt: skip
def test_tests_configuration_hooks_and_shadows_are_not_taken(path: str) -> None:
    taken = collect({path: b"x"})
    assert taken.files == {}
    assert [found for found, _ in taken.left_out] == [path]
    assert [row.path for row in taken.rows] == [path]
    assert collect({path: b"x"}, allowed=(path,)).files == {path: (b"x", "file")}


def test_deleting_tests_and_configuration_is_not_taken() -> None:
    taken = collect({"tests/test_prices.py": None, "pyproject.toml": None, "README.md": None})
    assert taken.removed == ("README.md",)
    assert {row.path for row in taken.rows} == {"tests/test_prices.py", "pyproject.toml", "README.md"}


@pytest.mark.parametrize("path", ["README.md", "shop/prices.py", "golden.txt"])
def test_what_grading_lays_over_the_tree_is_not_taken_whatever_its_role(path: str) -> None:
    hidden = {**tiny.HIDDEN, "README.md": "as the commit has it", "shop/prices.py": "", "golden.txt": "3"}
    for change in (b"x", None, (b"shop", "symlink")):
        found = collect({path: change}, hidden=hidden)
        assert (found.files, found.removed) == ({}, ())
    assert collect({path: b"x"}, hidden=hidden, allowed=(path,)).files == {path: (b"x", "file")}


def test_a_module_inside_a_package_may_have_any_name() -> None:
    assert set(collect({"shop/json.py": b"", "shop/pytest.py": b""}).files) == {"shop/json.py", "shop/pytest.py"}


@pytest.mark.parametrize(
    "path",
    [
        "test_modx/__init__.py", "test_modx/deep/x.txt", "checks/test_y.py/__init__.py", "test_modx.cpython-311.so",
        "shop/checks/__init__.py", "checks.py", "checks.abi3.so", "conftest/__init__.py", "shop/conftest/x.py",
        "checks/lib.py",
    ],
)  # fmt: skip
def test_nothing_new_is_imported_in_place_of_a_guarded_module(path: str) -> None:
    hidden = {**tiny.HIDDEN, "test_modx.py": "", "shop/checks/test_x.py": "", "shop/checks.py": "", "conftest.py": ""}
    hidden |= {"checks/test_y.py": "", "checks/tests/lib/__init__.py": ""}
    rules = [{"pattern": r"^shop/checks\.py$|^checks/.*lib", "role": "test"}, *RULES]
    assert collect({path: b"x"}, hidden=hidden, rules=rules).files == {}
    assert collect({"test_modx": (b"shop", "symlink")}, hidden=hidden).files == {}


def test_a_module_beside_a_folder_of_the_same_name_is_taken_where_neither_is_guarded() -> None:
    changes = {"shop/prices/__init__.py": b"", "shop.py": b""}
    assert set(collect(changes).files) == set(changes)


def test_a_module_of_the_tests_is_not_shadowed_from_a_folder_that_comes_earlier_on_the_import_path() -> None:
    hidden = {**tiny.HIDDEN, "tests/lib/checks.py": "", "tests/kit/__init__.py": "", "tests/kit/asserts.py": ""}
    shadows = {
        "checks.py": b"", "src/checks/__init__.py": b"", "kit/__init__.py": b"", "checks": (b"shop", "symlink"),
        "json": (b"shop", "symlink"), "lib/checks.py": b"",
    }  # fmt: skip
    for path, content in shadows.items():
        assert collect({path: content}, hidden=hidden, roots=("src",)).files == {}, path
    free = {"asserts.py": b"", "shop/checks.py": b"", "checks.txt": b"", "docs/checks/x.py": b"", "new": b""}
    assert set(collect(free, hidden=hidden, roots=("src",)).files) == set(free)
    tested = {**tiny.HIDDEN, "tests/till/test_till.py": "", "tests/till/conftest.py": ""}
    assert set(collect({"till/__init__.py": b""}, hidden=tested).files) == {"till/__init__.py"}
    start = {**tiny.START, "checks.py": ""}
    assert set(collect({"checks.py": b"x"}, start=start, hidden=hidden).files) == {"checks.py"}


def test_a_root_and_a_tests_folder_are_import_folders_and_owned_names_may_grow() -> None:
    start = {**tiny.START, "src/json/__init__.py": ""}
    assert collect({"src/pytest.py": b""}, roots=("src",)).files == {}
    assert collect({"src/json/more.py": b""}, start=start, roots=("src",)).files == {"src/json/more.py": (b"", "file")}
    hidden = {**tiny.HIDDEN, "shop/checks/test_x.py": ""}
    assert collect({"shop/checks/json.py": b""}, hidden=hidden).files == {}
    assert collect({"shop/json.py": b""}, hidden=hidden).files != {}


@pytest.mark.parametrize(
    ("target", "taken"),
    [
        ("prices.py", True), ("../README.md", True), ("../shop/./prices.py", True), ("/etc/passwd", False), ("", False),
        ("../../x", False), ("sub/../../..", False), ("sub/../x", False), ("..", True),
    ],
)  # fmt: skip
def test_links_are_taken_only_when_they_stay_inside(target: str, taken: bool) -> None:
    found = collect({"shop/link.py": (target.encode(), "symlink")})
    assert bool(found.files) is taken
    assert bool(found.left_out) is not taken


def test_a_link_in_the_place_of_the_tests_folder_changes_nothing() -> None:
    found = collect({"tests": (b"shop", "symlink"), "tests/test_prices.py": None, "tests/test_basket.py": None})
    assert (found.files, found.removed) == ({}, ())
    hidden_by_link = collect({"tests": (b"shop", "symlink")})
    assert {row.status for row in hidden_by_link.rows} == {"added", "removed"}
    assert (hidden_by_link.files, hidden_by_link.removed) == ({}, ())


def test_nothing_is_taken_at_or_below_a_path_of_the_task() -> None:
    hidden = {**tiny.HIDDEN, "data/test_x.py": "", "test_y.py": ""}
    found = collect({"data": b"x", "test_y.py/deep.txt": b"x"}, hidden=hidden)
    assert found.files == {}
    assert len(found.left_out) == 2


def test_a_source_file_may_become_a_package_and_the_reverse() -> None:
    found = collect({"shop/prices.py/__init__.py": b"1"})
    assert set(found.files) == {"shop/prices.py/__init__.py"}
    assert [(row.path, row.status) for row in found.rows] == [
        ("shop/prices.py", "removed"), ("shop/prices.py/__init__.py", "added"),
    ]  # fmt: skip
    assert found.removed == ()
    flat = collect({"shop": b"1"})
    assert (set(flat.files), flat.removed) == ({"shop"}, ())


def test_what_cannot_be_read_is_left_out_and_still_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 10)
    found = collect({"fifo": ValueError("a FIFO"), "big.py": b"x" * 11, "raced": FileNotFoundError()})
    assert (found.files, {row.path for row in found.rows}) == ({}, {"fifo", "big.py"})


def test_a_path_that_may_be_too_long_for_the_host_is_left_out_and_the_rest_is_taken() -> None:
    longest, deep = "d/" * 511 + "ab", "d/" * 511 + "abc"
    wide = "\u00e9" * 127
    found = collect({deep: b"x", longest: b"x", f"{wide}x": b"x", f"d/{wide}xy/z": b"x", "shop/prices.py": b"x"})
    assert set(found.files) == {longest, f"{wide}x", "shop/prices.py"}
    assert {path for path, _ in found.left_out} == {deep, f"d/{wide}xy/z"}
    assert "1024 bytes" in found.left_out[0][1]


def test_too_much_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOTAL_BYTES", 3)
    assert list(collect({"a.py": b"ab", "b.py": b"cd"}).files) == ["a.py"]
    monkeypatch.setattr(module, "MAX_CHANGES", 2)
    assert len(collect({f"{name}.py": b"" for name in "abcdef"}).rows) == 2


def test_scratch_files_do_not_crowd_the_solution_out(monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = {f"a/{number}.log": b"xxxx" for number in range(9)}
    solution = {"shop/prices.py": b"1", "shop/zone.py": b"2", "README.md": None}
    monkeypatch.setattr(module, "MAX_TOTAL_BYTES", 6)
    found = collect({**scratch, **solution})
    assert (set(found.files), found.removed) == ({"a/0.log", "shop/prices.py", "shop/zone.py"}, ("README.md",))
    assert [row.path for row in found.rows] == sorted({**scratch, **solution})
    monkeypatch.setattr(module, "MAX_CHANGES", 3)
    found = collect({**scratch, **solution})
    assert (set(found.files), found.removed) == ({"shop/prices.py", "shop/zone.py"}, ("README.md",))


def test_caches_of_tools_are_neither_listed_nor_part_of_the_state() -> None:
    caches = {".pytest_cache/v/x": b"", "shop/__pycache__/a.pyc": b"", ".coverage": b"", ".mypy_cache/3/x": b""}
    assert collect(caches).rows == ()
    start = manifest(tiny.START)
    assert list(changed_paths(FakeSandbox(caches), start)) == []
    assert state_digest(FakeSandbox(caches), start) == state_digest(FakeSandbox({}), start)


def test_names_that_are_no_unicode_are_no_trouble() -> None:
    found = collect({"b\udcff.txt": b"x", "shop/c\udcff.py": b"x"})
    assert set(found.files) == {"b\udcff.txt", "shop/c\udcff.py"}
    assert state_digest(FakeSandbox({"b\udcff.txt": b"x"}), {}) != state_digest(FakeSandbox({}), {})


def test_an_allowed_path_stays_as_the_agent_found_it() -> None:
    start, hidden = manifest(tiny.START), manifest({**tiny.HIDDEN, "pyproject.toml": "the solution's"})
    roles = Roles(RULES)
    assert pristine_manifest(start, hidden, roles, ("pyproject.toml",))["pyproject.toml"] == start["pyproject.toml"]
    assert pristine_manifest(start, hidden, roles, ())["pyproject.toml"] == hidden["pyproject.toml"]
    without = {path: entry for path, entry in hidden.items() if path != "tests/test_basket.py"}
    assert "tests/test_basket.py" not in pristine_manifest(start, without, roles, ())


def test_reference_rows_count_as_files_do() -> None:
    start = manifest(tiny.START)
    rows = reference_rows(
        start, manifest({"shop/prices.py": tiny.FIXED}), ["README.md"], Roles(RULES), BLOBS.__getitem__
    )
    assert rows == [
        FileRow("README.md", "other", "removed", 0, 1),
        FileRow("shop/prices.py", "source", "modified", 1, 1),
    ]


def test_reserved_names_are_those_of_the_environments_interpreter(tmp_path: Path) -> None:
    library = tmp_path / "python/lib/python3.9"
    site = tmp_path / "env/lib/python3.9/site-packages"
    for folder in (library / "lib-dynload", site / "lonely", site / "some.dist-info", tmp_path / "python/bin"):
        folder.mkdir(parents=True)
    for file in (library / "os.py", library / "imp.py", library / "lib-dynload/_x.cpython-39.so", site / "six.py"):
        file.touch()
    (tmp_path / "python/bin/python3.9").touch()
    (tmp_path / "env/bin").mkdir()
    (tmp_path / "env/bin/python").symlink_to(tmp_path / "python/bin/python3.9")
    assert reserved_names(tmp_path / "env") >= {"os", "imp", "_x", "six", "lonely"}
    assert not reserved_names(tmp_path / "env") & {"some", "tomllib", "lib-dynload/_x"}


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"d"]), max_size=30).map(b"".join)


@given(LINES, LINES)
def test_line_counts_balance(old: bytes, new: bytes) -> None:
    counts = count_lines(old, new)
    assert counts.added - counts.removed == len(new.splitlines()) - len(old.splitlines())
    assert (counts == (0, 0)) == (old.splitlines(keepends=True) == new.splitlines(keepends=True))


def test_long_and_binary_files_are_counted_in_linear_time() -> None:
    old = b"".join(b"%d\n" % number for number in range(50_000))
    new = b"".join(b"%d\n" % number for number in range(50_000, 0, -1))
    assert count_lines(old, new) == (1, 1)
    assert count_lines(b"\0\n\n", b"") == (0, 0)
