from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.cache import Cache
from envsynth.models import (
    Candidate,
    Check,
    FileMode,
    Lead,
    Provenance,
    Recipe,
    Reference,
    Role,
    RoleRule,
    TestCommand,
    Tree,
    TreeEntry,
    Verifier,
    Workspace,
)
from envsynth.panel import reference_edits, unique_edits, workspace_panel

LINES = st.lists(st.sampled_from(["a\n", "b\n", "    return x\n", "\n", "c"]), max_size=25).map("".join)


@given(LINES, LINES)
def test_unique_edits_rebuild_the_new_text_and_never_guess(old: str, new: str) -> None:
    edits = unique_edits(old, new)
    if edits is None:
        return
    text = old
    for before, after in edits:
        assert text.count(before) == 1
        text = text.replace(before, after)
    assert text == new


def test_a_change_between_equal_lines_gets_the_context_it_needs() -> None:
    old = "".join(f"def f{n}():\n    return 0\n\n\n" for n in range(9))
    new = old.replace("def f4():\n    return 0", "def f4():\n    return 1")
    edits = unique_edits(old, new)
    assert edits is not None
    ((before, after),) = edits
    assert "f4" in before
    assert len(before) < 60
    assert old.replace(before, after) == new


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def tree(cache: Cache, files: dict[str, bytes], mode: FileMode = FileMode.FILE) -> str:
    return cache.put_tree(Tree(entries=tuple(
        TreeEntry(path=path, mode=mode, blob=cache.put(content), size=len(content)) for path, content in files.items()
    )))  # fmt: skip


def candidate(cache: Cache, start: dict[str, bytes], changes: str, removed: tuple[str, ...] = ()) -> Candidate:
    tests = {"tests/test_a.py": b"new"}
    workspace = Workspace(
        tree=tree(cache, start), hidden=tree(cache, tests),
        recipe=Recipe(language="python", interpreter="3.11", requirements=("pytest==9.2.0",), newest="2026-01-01"),
        command=TestCommand(runner="pytest", targets=("tests",)), roles=(RoleRule(pattern="^tests/", role=Role.TEST),),
    )  # fmt: skip
    lead = Lead(generator="repository", generator_version="1", source="x", name="x", revision="r", strategy="history",
                ref="0123456789ab", index=0)  # fmt: skip
    return Candidate(
        instruction="Do it.", environment=workspace, verifier=Verifier(checks=(Check(id="c", sql="SELECT 1"),)),
        reference=Reference(changes=changes, removed=removed, patch=cache.put(b"")), provenance=Provenance(lead=lead),
    )  # fmt: skip


def test_the_reference_is_played_as_edits_files_and_shell(cache: Cache) -> None:
    start = {"a.py": b"one\ntwo\n", "gone.py": b"", "tests/test_a.py": b"old"}
    changes = tree(cache, {"a.py": b"one\n2\n", "new file.py": b"x", "raw.bin": b"\xff"})
    calls = reference_edits(candidate(cache, start, changes, ("gone.py",)), cache)
    assert [call.tool for call in calls] == ["bash", "edit_file", "write_file", "bash"]
    assert calls[0].arguments == {"command": "rm -- gone.py"}
    assert calls[1].arguments == {"path": "a.py", "old": "two\n", "new": "2\n"}


def test_a_mode_change_is_played(cache: Cache) -> None:
    calls = reference_edits(candidate(cache, {"run": b"x"}, tree(cache, {"run": b"x"}, FileMode.EXECUTABLE)), cache)
    assert [call.arguments for call in calls] == [{"command": "chmod +x ./run"}]


def test_the_panel_runs_the_visible_tests_and_idles(cache: Cache) -> None:
    start = {"a.py": b"one\n", "tests/test_a.py": b"old"}
    panel = {one.label: one for one in workspace_panel(candidate(cache, start, tree(cache, {"a.py": b"2\n"})), cache)}
    assert panel["reference"].outcome == 1
    assert "tests/test_a.py" in str(panel["reference"].calls[-2].arguments["command"])
    assert [call.tool for call in panel["idle"].calls] == ["submit"]
    assert panel["idle"].outcome == 0
