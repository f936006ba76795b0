"""From a commit to a candidate: trees, runs, reasons."""

from __future__ import annotations

import pytest

from envsynth.errors import NoInterpreter, SandboxError, SourceError
from envsynth.generators.repository import Repository
from envsynth.models import Candidate, Dropped, FileMode, Lead, Role, TestStatus, role_of

START = "def halve(number):\n    return number // 2\n"
TEST = "from pkg.maths import halve\n\n\ndef test_even():\n    assert halve(4) == 2\n"
BEFORE = {"pkg/__init__.py": "", "pkg/maths.py": START, "tests/test_maths.py": TEST}
AFTER = {
    "pkg/maths.py": START.replace("//", "/"),
    "tests/test_maths.py": TEST + "\n\ndef test_odd():\n    assert halve(7) == 3.5\n",
}


@pytest.fixture
def before_and_after():
    return BEFORE, AFTER


@pytest.fixture
def develop(context, source_of):
    def run(repo, **extra):
        generator, source = Repository(), source_of(repo.path, **extra)
        lead = next(one for one in generator.plan(source, context) if isinstance(one, Lead))
        return generator.develop(lead, source, context)

    return run


def trees(candidate: Candidate, context):
    get = context.blobs.get_tree
    return get(candidate.environment.tree), get(candidate.environment.hidden), get(candidate.reference.changes)


def test_a_fix_becomes_a_candidate(fixed_repo, context, develop):
    candidate = develop(fixed_repo)
    assert isinstance(candidate, Candidate), candidate
    start, hidden, changes = trees(candidate, context)
    assert set(start.by_path) == {"LICENSE", "pkg/__init__.py", "pkg/maths.py", "pyproject.toml", "tests/test_maths.py"}
    assert "test_odd_numbers" not in context.blobs.get(start.by_path["tests/test_maths.py"].blob).decode()
    assert "test_odd_numbers" in context.blobs.get(hidden.by_path["tests/test_maths.py"].blob).decode()
    assert set(hidden.by_path) == {"pyproject.toml", "tests/test_maths.py"}
    assert set(changes.by_path) == {"pkg/maths.py"}
    patch = context.blobs.get(candidate.reference.patch).decode()
    assert "+    exact_half = number / 2" in patch
    assert "CHANGES" not in patch
    assert "test_maths" not in patch
    assert candidate.provenance.licence_files == ("LICENSE",)
    assert candidate.provenance.base_commit == fixed_repo.git("rev-parse", "v1.0").decode().strip()
    assert candidate.metadata["fail_to_pass"] == 1
    assert candidate.metadata["changed_functions"] == ["halve"]
    assert context.ran == [("reference", 0), ("start", 0)]
    assert context.python.asked == [("2024-05-01T12:00:00+00:00", "v1.0")]


def test_the_instruction_says_what_is_wrong_and_not_how_it_was_solved(fixed_repo, develop):
    text = develop(fixed_repo).instruction
    assert "halve(7) returned 3, although half of an odd number has a fraction." in text
    assert "assert halve(7) == 3.5" in text
    assert "# today: 3" not in text
    for secret in ("exact_half", "#12", "Co-authored", "@", "number / 2"):
        assert secret not in text


def test_the_same_commit_gives_the_same_candidate(fixed_repo, develop):
    assert develop(fixed_repo).digest() == develop(fixed_repo).digest()


def test_idle_and_reference_trees_differ_in_the_tests_they_pass(fixed_repo, context, develop, source_of):
    candidate = develop(fixed_repo)
    start, _, changes = trees(candidate, context)
    source = source_of(fixed_repo.path)
    idle = context.run_tests(candidate.environment, start, "start", 1, source)
    solved = context.run_tests(candidate.environment, start.overlay(changes), "reference", 1, source)
    assert [record.status for record in idle.records].count(TestStatus.FAILED) == 1
    assert all(record.status is TestStatus.PASSED for record in solved.records)


def test_comments_and_layout_are_no_task(fixed_repo, develop):
    source = (fixed_repo.path / "pkg/maths.py").read_text()
    told = '"""Maths."""\n\n' + source.replace("exact_half =", "# exact\n    exact_half =").replace(
        "text\n", "(text)\n"
    )
    fixed_repo.commit("Explain", {"pkg/maths.py": told, "tests/test_maths.py": "def test_x():\n    pass\n"})
    assert develop(fixed_repo).reason == "formatting_only"


def test_a_refactoring_turns_no_test(fixed_repo, develop):
    source = "def halve(n):\n    return n / 2\n\n\ndef keep(text):\n    return text\n"
    test = "from pkg.maths import halve\n\n\ndef test_two():\n    assert halve(2) == 1\n"
    fixed_repo.commit("Shorten", {"pkg/maths.py": source, "tests/test_maths.py": test})
    dropped = develop(fixed_repo)
    assert dropped.reason == "no_fail_to_pass"
    assert "passed" in dropped.detail


def test_tests_that_pass_nothing(fixed_repo, develop):
    fixed_repo.commit("Break", {"pkg/maths.py": "x = 1\n", "tests/test_maths.py": "import nothing_like_this\n"})
    assert develop(fixed_repo).reason == "tests_pass_nothing"


def test_a_hanging_suite_is_dropped(fixed_repo, context, develop):
    context.change = lambda run: run.model_copy(update={"timed_out": True, "complete": False})
    assert develop(fixed_repo).reason == "tests_time_out"


def test_an_environment_error_is_never_the_commits_fault(fixed_repo, context, develop):
    context.change = lambda run: run.model_copy(update={"trouble": "the report could not be written"})
    with pytest.raises(SandboxError, match="report could not be written"):
        develop(fixed_repo)
    context.python.refuse = SandboxError("no registry reachable")
    with pytest.raises(SandboxError, match="no registry"):
        develop(fixed_repo)


def test_what_cannot_be_installed_is_dropped_with_the_cause(fixed_repo, context, develop):
    context.python.refuse = SourceError("the project cannot be installed", cause="needs a compiler")
    dropped = develop(fixed_repo)
    assert (dropped.reason, dropped.retryable) == ("cannot_install", False)
    assert "needs a compiler" in dropped.detail


def test_a_missing_interpreter_is_the_machines_lack(fixed_repo, context, develop):
    context.python.refuse = NoInterpreter(
        "no Python fits", cause="it requires Python >=3.99; installed: 3.11.7", next_step="install 3.99"
    )
    dropped = develop(fixed_repo)
    assert (dropped.reason, dropped.retryable) == ("no_interpreter", True)
    assert dropped.detail == "it requires Python >=3.99; installed: 3.11.7. Next: install 3.99"


def test_named_tests_restrict_the_run(fixed_repo, develop):
    assert develop(fixed_repo, tests="tests/test_maths.py").environment.command.targets == ("tests/test_maths.py",)
    some = develop(fixed_repo, tests="tests/later/,tests/test_maths.py")
    assert some.environment.command.targets == ("tests/test_maths.py",)


def test_a_new_function_is_named_in_the_instruction(fixed_repo, develop):
    text = (
        "def halve(n):\n    return n / 2\n\n\ndef keep(text):\n    return text\n\n\n"
        "def third_of(n, *, digits=1):\n    return round(n / 3, digits)\n"
    )
    test = (
        "from pkg.maths import halve, keep, third_of\n\n\ndef test_keep():\n    assert keep('a') == 'a'\n\n\n"
        "def test_third():\n    assert third_of(1, digits=2) == 0.33\n"
    )
    fixed_repo.commit("thirds", {"pkg/maths.py": text, "tests/test_maths.py": test})
    text = develop(fixed_repo).instruction
    assert "`pkg.maths.third_of` is missing and should be added." in text
    assert "`third_of` in `pkg.maths`, called as `third_of(1, digits=2)`" in text
    assert "test_keep" not in text
    assert "keep('a')" not in text


def test_a_moved_module_and_a_moved_test(fixed_repo, context, develop):
    moved = {"pkg/maths.py": None, "pkg/numbers_.py": "def halve(n):\n    return n / 2\n", "tests/test_maths.py": None}
    test = "from pkg.numbers_ import halve\n\n\ndef test_half():\n    assert halve(3) == 1.5\n"
    fixed_repo.commit("Move maths", {**moved, "tests/test_numbers.py": test})
    candidate = develop(fixed_repo)
    assert candidate.reference.removed == ("pkg/maths.py",)
    start, hidden, changes = trees(candidate, context)
    assert set(changes.by_path) == {"pkg/numbers_.py"}
    assert "tests/test_maths.py" in start.by_path
    assert "tests/test_maths.py" not in hidden.by_path


def test_a_value_that_only_a_hidden_file_knows_is_no_task(fixed_repo, develop):
    test = (
        "import json\nfrom pkg.maths import halve\n\n\ndef test_all():\n"
        "    for a, b in json.load(open('tests/halves.json')):\n        assert halve(a) == b\n"
    )
    fixed_repo.commit(
        "Twice",
        {
            "pkg/maths.py": "def halve(n):\n    return n / 2 + 1\n",
            "tests/halves.json": "[[2, 2]]",
            "tests/test_maths.py": test,
        },
    )
    dropped = develop(fixed_repo)
    assert dropped.reason == "needs_hidden_file"
    assert "tests/halves.json" in dropped.detail


def test_what_the_tests_compare_with_belongs_to_the_grader_in_folders_of_any_name(broken_repo, context, develop):
    kit = "def check(value, wanted):\n    assert value == wanted\n"
    broken_repo.commit(
        "kit", {"unittests/test_kit.py": "def test_kit():\n    pass\n", "unittests/compare.py": kit,
                "unittests/data/two.txt": "2", "golden/mixed.txt": "2", "pkg/fixtures/a.txt": "2"},
    )  # fmt: skip
    broken_repo.commit("Fix rounding of odd numbers", {**AFTER, "golden/mixed.txt": "3", "pkg/fixtures/a.txt": "3"})
    candidate = develop(broken_repo)
    assert isinstance(candidate, Candidate), candidate
    _, hidden, changes = trees(candidate, context)
    assert hidden.by_path.keys() == {
        "unittests/test_kit.py", "unittests/compare.py", "unittests/data/two.txt", "golden/mixed.txt",
        "tests/test_maths.py",
    }  # fmt: skip
    assert set(changes.by_path) == {"pkg/maths.py", "pkg/fixtures/a.txt"}
    roles = candidate.environment.roles
    assert {role_of(path, roles) for path in ("unittests/new.py", "golden/x")} == {Role.TEST}
    assert role_of("pkg/fixtures/a.txt", roles) is Role.SOURCE


def test_a_solution_holds_only_source_and_data_of_packages(broken_repo, context, develop):
    broken_repo.commit(
        "data", {"results/mixed.txt": "2", "results/old.txt": "2", "results/kept.txt": "", "pkg.d/x.txt": "2",
                 "pkg/deep/x.txt": "2"},
    )  # fmt: skip
    changed = {"results/mixed.txt": "3", "results/new (1).txt": "3", "pkg.d/x.txt": "3", "pkg/deep/x.txt": "3"}
    broken_repo.commit("Fix rounding of odd numbers", {**AFTER, **changed, "results/old.txt": None, "CHANGES": "half"})
    candidate = develop(broken_repo)
    assert isinstance(candidate, Candidate), candidate
    _, hidden, changes = trees(candidate, context)
    assert set(changes.by_path) == {"pkg/maths.py", "pkg/deep/x.txt"}
    assert candidate.reference.removed == ()
    data = {"results/mixed.txt", "results/new (1).txt", "pkg.d/x.txt"}
    assert hidden.by_path.keys() == {*data, "tests/test_maths.py"}
    assert context.blobs.get(hidden.by_path["results/mixed.txt"].blob) == b"3"
    roles = candidate.environment.roles
    assert {role_of(path, roles) for path in (*data, "results/old.txt")} == {Role.TEST}
    assert {role_of(path, roles) for path in ("CHANGES", "results/kept.txt", "a/results/mixed.txt")} == {Role.OTHER}


def test_too_much_for_one_instruction(fixed_repo, develop):
    lines = "\n".join(f"    assert halve({number}) == {number}  # {'x' * 40}" for number in range(200))
    fixed_repo.commit(
        "All",
        {
            "pkg/maths.py": "def halve(n):\n    return n\n",
            "tests/test_maths.py": f"from pkg.maths import halve\n\n\ndef test_all():\n{lines}\n",
        },
    )
    assert develop(fixed_repo).reason == "instruction_too_long"


@pytest.fixture
def broken_repo(repo, before_and_after):
    repo.commit("start", before_and_after[0])
    return repo


def odd_entry(repo, mode: str, path: str, content: bytes = b"", *, commit: bool = True) -> None:
    """Put an entry into the index that need not be in the working tree."""
    head = repo.git("rev-parse", "HEAD").decode().strip()
    oid = head if mode == "160000" else repo.git("hash-object", "-w", "--stdin", stdin=content).decode().strip()
    repo.git("update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}")
    if commit:
        repo.git("commit", "-q", "-m", "add something")


def commit_fix(repo) -> None:
    """The fix, beside whatever the index holds."""
    for path, text in AFTER.items():
        oid = repo.git("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()
        repo.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{path}")
    repo.git("commit", "-q", "-m", "Fix rounding of odd numbers")


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (("160000", "vendor/lib", b""), "submodules"),
        (("100644", "pkg/model.py", LFS), "Git LFS"),
        (("120000", "pkg/link.py", b"../../outside.py"), "lead out"),
        (("120000", "pkg/link.py", b"/etc/passwd"), "lead out"),
    ],
)
def test_what_no_tree_can_hold_is_left_out_and_told(broken_repo, context, develop, entry, words):
    mode, path, content = entry
    odd_entry(broken_repo, mode, path, content)
    commit_fix(broken_repo)
    candidate = develop(broken_repo)
    assert isinstance(candidate, Candidate), candidate
    assert path not in context.blobs.get_tree(candidate.environment.tree).by_path
    (note,) = context.notes
    assert words in note
    assert path in note


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (("160000", "vendor/lib", b""), None),
        (("100644", "pkg/model.py", LFS), "touches_lfs"),
        (("120000", "pkg/link.py", b"../../outside.py"), "touches_symlink_out"),
    ],
)
def test_a_commit_that_touches_such_a_path_is_dropped(broken_repo, context, source_of, entry, reason):
    mode, path, content = entry
    odd_entry(broken_repo, mode, path, content, commit=False)
    commit_fix(broken_repo)
    plan = list(Repository().plan(source_of(broken_repo.path), context))
    if reason is None:
        assert isinstance(plan[0], Dropped)
        assert plan[0].reason == "touches_submodule"
    else:
        dropped = Repository().develop(plan[0], source_of(broken_repo.path), context)
        assert (dropped.reason, dropped.detail) == (reason, path)


def test_bytes_and_odd_names_stay_as_they_are(broken_repo, context, develop):
    content = b"first\r\nsecond\r\n\xff\n"
    odd_entry(broken_repo, "100644", "pkg/dos.txt", content)
    odd_entry(broken_repo, "100644", "--output=pwned", b"x")
    odd_entry(broken_repo, "100755", "pkg/run.py", b"x = 1\n")
    odd_entry(broken_repo, "120000", "pkg/same.py", b"maths.py")
    commit_fix(broken_repo)
    start = context.blobs.get_tree(develop(broken_repo).environment.tree)
    assert context.blobs.get(start.by_path["pkg/dos.txt"].blob) == content
    assert "--output=pwned" in start.by_path
    assert start.by_path["pkg/run.py"].mode is FileMode.EXECUTABLE
    assert start.by_path["pkg/same.py"].mode is FileMode.SYMLINK


def test_crlf_sources_can_be_tasks(repo, context, develop, before_and_after):
    before, after = ({path: text.replace("\n", "\r\n") for path, text in files.items()} for files in before_and_after)
    repo.commit("start", before)
    repo.commit("Fix rounding of odd numbers", after)
    candidate = develop(repo)
    assert isinstance(candidate, Candidate), candidate
    _, _, changes = trees(candidate, context)
    assert context.blobs.get(changes.by_path["pkg/maths.py"].blob) == after["pkg/maths.py"].encode()
    assert "\r" not in candidate.instruction
