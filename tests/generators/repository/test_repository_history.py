"""The plan: every scanned commit is followed, or dropped with a reason."""

from __future__ import annotations

import subprocess

import pytest

from envsynth.errors import ConfigError
from envsynth.generators.repository import Repository
from envsynth.generators.repository.config import Settings, read_settings
from envsynth.generators.repository.gitdir import GitDir
from envsynth.generators.repository.history import read_commit, scan
from envsynth.generators.repository.roles import RoleBook
from envsynth.models import Candidate, Dropped, Lead


@pytest.fixture
def reasons(context):
    def look(repo, **options):
        git = GitDir(repo.path / ".git")
        found = scan(git, "HEAD", Settings(**options), RoleBook(context.python.roles()))
        return {one.title: one.reason for one in found}

    return look


def test_each_kind_of_commit_has_its_reason(repo, reasons):
    repo.commit("first", {"pkg/a.py": "a = 1\n", "tests/test_a.py": "1\n"})
    changes = {
        "docs": {"docs/a.rst": "x", "README.md": "y"},
        "source alone": {"pkg/a.py": "a = 2\n"},
        "tests alone": {"tests/test_a.py": "2\n"},
        "Fix a": {"pkg/a.py": "a = 3\n", "tests/test_a.py": "3\n"},
        "bump version to 1.2": {"pkg/a.py": "a = 4\n", "tests/test_a.py": "4\n"},
        "Run black": {"pkg/a.py": "a = 5\n", "tests/test_a.py": "5\n"},
        'Revert "Fix a"': {"pkg/a.py": "a = 6\n", "tests/test_a.py": "6\n"},
        "big": {"pkg/a.py": "a = 7\n" * 600, "tests/test_a.py": "7\n"},
        "table": {"pkg/table.json": "{}", "tests/test_a.py": "8\n"},
        "speedups": {"pkg/a.py": "a = 9\n", "pkg/_fast.c": "", "tests/test_a.py": "9\n"},
    }
    for title, files in changes.items():
        repo.commit(title, files)
    repo.git("checkout", "-q", "-b", "side", "HEAD~1")
    repo.commit("beside", {"pkg/b.py": "b = 1\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "-m", "joined", "side")
    assert reasons(repo) == {
        "first": "no_parent", "docs": "no_source_touched", "source alone": "no_tests_touched",
        "tests alone": "no_source_touched", "Fix a": "", "bump version to 1.2": "version_bump",
        "Run black": "formatting_only", 'Revert "Fix a"': "revert", "big": "too_large", "table": "non_python",
        "speedups": "non_python", "beside": "no_tests_touched", "joined": "merge",
    }  # fmt: skip


def test_options_narrow_the_scan(repo, reasons):
    repo.commit("first", {"pkg/a.py": "a = 1\n"})
    repo.commit("Fix a", {"pkg/a.py": "a = 2\n", "tests/test_a.py": "2\n"})
    assert reasons(repo, since="2025-01-01")["Fix a"] == "too_old"
    assert reasons(repo, since="2024-05-01")["Fix a"] == ""
    assert reasons(repo, max_lines=1)["Fix a"] == "too_large"
    assert list(reasons(repo, commits=1)) == ["Fix a"]


def test_commits_whose_tests_would_not_run_are_not_followed(repo, reasons):
    repo.commit("first", {"pkg/a.py": "a = 1\n"})
    repo.commit("Fix a", {"pkg/a.py": "a = 2\n", "tests/unit/test_a.py": "2\n"})
    repo.commit("Fix b", {"pkg/a.py": "a = 3\n", "tests/slow/test_b.py": "3\n"})
    found = reasons(repo, tests="tests/unit")
    assert (found["Fix a"], found["Fix b"]) == ("", "tests_elsewhere")
    assert reasons(repo, tests="tests/unit/test_a.py")["Fix a"] == ""
    assert reasons(repo, tests="tests/unit/test")["Fix a"] == "tests_elsewhere"


def test_odd_bytes_in_paths_and_messages(repo, reasons):
    repo.commit("first", {"pkg/a.py": "a = 1\n"})
    strange = {'pkg/a b\t"c".py': "1\n", "tests/test_ü\n.py": "1\n", "pkg/-rf.py": "1\n", "tests/\x01.py": ""}
    repo.commit("Strange \x01 names", strange)
    name = b"pkg/\xff\xfe.py"
    tree = repo.git("hash-object", "-w", "--stdin", stdin=b"x = 1\n").decode().strip()
    repo.git("update-index", "-z", "--index-info", stdin=f"100644 {tree}\t".encode() + name + b"\0")
    repo.git("commit", "-q", "-m", "Latin")
    repo.git("-c", "i18n.commitEncoding=latin-1", "commit", "-q", "--allow-empty", "-F", "-", stdin=b"caf\xe9")
    found = reasons(repo)
    assert found["Strange \x01 names"] == ""
    assert found["Latin"] == "touches_odd_path"
    assert found["café"] == "no_source_touched"
    touched = read_commit(GitDir(repo.path / ".git"), repo.git("rev-parse", "HEAD~2").decode().strip()).touched
    assert {one.path.decode() for one in touched} == set(strange)


def test_renames_keep_both_paths_and_count_only_what_changed(repo):
    body = "".join(f"line{number} = {number}\n" for number in range(100))
    repo.commit("first", {"pkg/a.py": body, "tests/test_a.py": "1\n"})
    repo.commit("Move", {"pkg/a.py": None, "pkg/b.py": body + "x = 1\n", "tests/test_a.py": "2\n"})
    moved = next(one for one in read_commit(GitDir(repo.path / ".git"), "HEAD").touched if one.status == "R")
    assert (moved.old_path, moved.path, moved.lines) == (b"pkg/a.py", b"pkg/b.py", 1)


def test_plan_lists_leads_and_drops_until_the_limit(repo, context, source_of):
    repo.commit("first", {"pkg/a.py": "a = 0\n"})
    for number in range(1, 5):
        repo.commit(f"Fix {number}", {"pkg/a.py": f"a = {number}\n", "tests/test_a.py": f"{number}\n"})
        repo.commit(f"docs {number}", {"docs/a.rst": str(number)})
    plan = list(Repository().plan(source_of(repo.path, limit=2), context))
    titles = [(type(one).__name__, (one.lead if isinstance(one, Dropped) else one).title) for one in plan]
    assert titles == [("Dropped", "docs 4"), ("Lead", "Fix 4"), ("Dropped", "docs 3"), ("Lead", "Fix 3")]
    assert len(list(Repository().plan(source_of(repo.path), context))) == 9


def test_a_second_plan_reads_no_history(fixed_repo, context, source_of, monkeypatch):
    first = list(Repository().plan(source_of(fixed_repo.path), context))
    monkeypatch.setattr("envsynth.generators.repository.generator.scan", lambda *_: pytest.fail("scanned again"))
    assert list(Repository().plan(source_of(fixed_repo.path), context)) == first


def test_leads_are_keyed_by_what_changes_the_work(fixed_repo, context, source_of):
    def key(**extra: str) -> str:
        return next(
            one for one in Repository().plan(source_of(fixed_repo.path, **extra), context) if isinstance(one, Lead)
        ).key

    assert key() == key(commits="50", timeout="9")
    assert key() != key(tests="tests")


def test_the_project_names_its_tasks(fixed_repo, make_repo, context, source_of):
    lead = next(one for one in Repository().plan(source_of(fixed_repo.path), context) if isinstance(one, Lead))
    assert lead.name == "small-maths"
    nameless = make_repo("Odd_Name.git")
    nameless.commit("first", {"a.py": ""})
    (dropped,) = Repository().plan(source_of(nameless.path), context)
    assert isinstance(dropped, Dropped)
    assert dropped.lead.name == "odd-name"


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"test": "x"}, "unknown option 'test'"),
        ({"commits": "many"}, "bad value 'many'"),
        ({"commits": "0"}, "commits"),
        ({"since": "yesterday"}, "since"),
        ({"tests": "/etc"}, "relative"),
        ({"tests": "a,../b"}, "relative"),
        ({"tests": "-x"}, "relative"),
    ],
)
def test_bad_options_name_the_line(source_of, extra, words):
    with pytest.raises(ConfigError) as caught:
        read_settings(source_of("x", **extra))
    assert words in str(caught.value)
    assert str(caught.value).startswith("list.txt:3: ")


def test_unknown_strategies_and_packages_are_refused(source_of):
    with pytest.raises(ConfigError, match="no strategy 'magic'"):
        read_settings(source_of("x", strategies=("magic",)))
    with pytest.raises(ConfigError, match="no history"):
        read_settings(source_of("x").model_copy(update={"kind": "pypi"}))


def test_a_cached_clone_survives_a_removed_origin(fixed_repo, context, source_of):
    lead = next(one for one in Repository().plan(source_of(fixed_repo.path), context) if isinstance(one, Lead))
    subprocess.run(["rm", "-rf", str(fixed_repo.path / ".git")], check=True)
    assert isinstance(Repository().develop(lead, source_of(fixed_repo.path), context), Candidate)
