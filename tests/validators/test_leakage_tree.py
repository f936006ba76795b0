"""Every way in which a start tree or an instruction can hold the fix is planted and found; what is alike is not."""

from __future__ import annotations

import bz2
import io
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.models import Candidate, Role, RoleRule
from envsynth.validators.leakage.guards import Guards
from envsynth.validators.leakage.instruction import look_at_instruction
from envsynth.validators.leakage.passages import guard, held, readings
from envsynth.validators.leakage.tree import look_at_tree

BEFORE = '''"""Means of things."""

import statistics


def mean(values):
    """The arithmetic mean."""
    total = sum(values)
    count = len(values)
    return total / count


def median(values):
    return statistics.median(values)
'''
AFTER = BEFORE.replace(
    "    count = len(values)\n",
    "    count = len(values)\n    if not count and hasattr(values, 'fallback'):\n        return values.fallback()\n",
)
OLD_TEST = "from pkg.calc import mean\n\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n"
NEW_TEST = OLD_TEST + (
    "\n\ndef test_mean_of_nothing_at_all():\n    empty = EmptyWithFallback(17.25)\n    assert mean(empty) == 17.25\n"
    "\n\ndef test_median_is_left_alone():\n    numbers = [3, 1, 2, 5, 4]\n    shuffled = sorted(numbers)\n"
    "    assert median(shuffled) == 3, 'the middle one'\n"
)
START = {"pkg/calc.py": BEFORE.encode(), "tests/test_calc.py": OLD_TEST.encode(), "LICENSE": b"MIT"}
DIFF = "--- a/pkg/calc.py\n+++ b/pkg/calc.py\n@@ -7,5 +7,7 @@\n" + "".join(
    f"{'+' if line not in BEFORE.splitlines() else ' '}{line}\n" for line in AFTER.splitlines()
)
FAILING = "tests/test_calc.py::test_mean_of_nothing_at_all"
Plant = Callable[..., Guards]


@pytest.fixture
def plant(candidate: Candidate, cache: Cache, tree: Callable[..., str]) -> Plant:
    """Guards of a candidate whose start tree holds further files."""

    def make(
        more: dict[str, bytes] | None = None, instruction: str = "", after: str = AFTER, failing: str = FAILING
    ) -> Guards:
        workspace = candidate.environment.model_copy(
            update={
                "tree": tree({**START, **(more or {})}),
                "hidden": tree({"tests/test_calc.py": NEW_TEST.encode()}),
                "roles": (RoleRule(pattern="^tests/", role=Role.TEST), RoleRule(pattern=r"\.py$", role=Role.SOURCE)),
            }
        )
        reference = candidate.reference.model_copy(update={"changes": tree({"pkg/calc.py": after.encode()})})
        text = instruction or candidate.instruction
        made = candidate.model_copy(update={"environment": workspace, "reference": reference, "instruction": text})
        return Guards(made, cache, (failing,))

    return make


def packed_tar(path: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(path)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def packed_zip(path: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(path, content)
    return buffer.getvalue()


def bundle(folder: Path) -> bytes:
    """A git bundle with two commits: before and after."""
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    for text in (BEFORE, AFTER):
        (folder / "calc.py").write_text(text)
        subprocess.run([*git, "add", "calc.py"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    subprocess.run([*git, "bundle", "create", "-q", "all.bundle", "--all"], check=True)
    return (folder / "all.bundle").read_bytes()


def test_a_clean_tree_has_no_finding(plant: Plant) -> None:
    assert look_at_tree(plant()) == ([], [])
    assert list(look_at_instruction(plant())) == []


LATER = AFTER + "\n\ndef variance(values):\n    return statistics.variance(values)\n"
HTML = "<pre>" + "\n".join(f"<span>{line.replace(chr(39), '&#39;')}</span>" for line in AFTER.splitlines()) + "</pre>"


@pytest.mark.parametrize(
    ("path", "content", "rule"),
    [
        ("build/lib/pkg/calc.py", AFTER.encode(), "fixed_file_visible"),
        ("build/lib/pkg/calc.py", LATER.encode(), "fix_in_tree"),
        ("vendor/calc_copy.txt", LATER.replace("    ", "\t").encode(), "fix_in_tree"),
        ("fix.patch", DIFF.encode(), "fix_in_tree"),
        ("pkg/calc.py.rej", DIFF.encode(), "fix_in_tree"),
        ("docs/_modules/calc.html", HTML.encode(), "fix_in_tree"),
        ("dist/pkg-2.tar.gz", packed_tar("pkg-2/pkg/calc.py", AFTER.encode()), "packed_fix"),
        ("dist/pkg-2.whl", packed_zip("pkg/calc.py", LATER.encode()), "packed_fix"),
        ("dist/outer.zip", packed_zip("inner.tgz", packed_tar("calc.py", LATER.encode())), "packed_fix"),
        ("calc.py.bz2", bz2.compress(LATER.encode()), "packed_fix"),
        ("objects/ab/cdef", zlib.compress(b"blob 9\0" + LATER.encode()), "packed_fix"),
        ("repo/.git/HEAD", b"ref: refs/heads/main\n", "history_in_tree"),
        ("broken.pack", b"PACK\0\0\0\2" + b"\xff" * 40, "history_in_tree"),
        ("pkg/__pycache__/calc.cpython-311.pyc", b"\0\0any", "byte_code_of_fix"),
        ("pkg/calc.cpython-311-x86_64-linux-gnu.so", b"\x7fELF\0\0...fallback...", "compiled_fix"),
        ("notes/tests_to_come.txt", NEW_TEST.encode() + b"# more\n", "hidden_test_in_tree"),
        ("old/test_calc.py.orig", NEW_TEST.encode(), "hidden_test_visible"),
    ],
)  # fmt: skip
def test_what_is_planted_is_found(plant: Plant, path: str, content: bytes, rule: str) -> None:
    fatal = look_at_tree(plant({path: content})).fatal
    assert rule in {finding.rule for finding in fatal}
    assert all(finding.where.startswith(path) for finding in fatal)


def test_a_bundle_is_unpacked(plant: Plant, tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    fatal = look_at_tree(plant({"backup.dat": bundle(folder)})).fatal
    assert {finding.rule for finding in fatal} == {"packed_fix"}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("other/calc.py", BEFORE.encode()),  # the same file as it is
        (
            "other/own.py",
            b"def f(values, count):\n    if not count and hasattr(values, 'fallback'):\n        return 1\n",
        ),
        ("other/loops.py", b"for value in values:\n    return total / count\nelse:\n    return None\n"),
        ("dist/pkg-1.tar.gz", packed_tar("pkg-1/pkg/calc.py", BEFORE.encode())),
        ("other/__pycache__/calc.cpython-311.pyc", b"\0\0any"),
    ],
)
def test_what_is_merely_alike_is_not(plant: Plant, path: str, content: bytes) -> None:
    assert look_at_tree(plant({path: content})).fatal == []


def test_code_that_the_fix_took_from_elsewhere_in_the_project_is_noted(plant: Plant) -> None:
    block = "".join(f"    settings['option_{n}'] = parse_option_{n}(raw_text)\n" for n in range(9))
    after = BEFORE.replace("    count = len(values)\n", f"    count = len(values)\n{block}")
    seen = look_at_tree(plant({"pkg/options.py": f"def parse(raw_text, settings):\n{block}".encode()}, after=after))
    assert seen.fatal == []
    assert [finding.rule for finding in seen.noted] == ["fix_resembles_tree"]
    assert look_at_tree(plant({"notes.txt": block.encode()}, after=after)).fatal[0].rule == "fix_in_tree"


def test_a_change_log_that_names_the_fix_is_noted(plant: Plant) -> None:
    after = AFTER.replace("values.fallback()", "values.empty_fallback(use_default_mean=True)")
    log = b"2.0: mean() asks `empty_fallback` with `use_default_mean`.\n"
    seen = look_at_tree(plant({"CHANGELOG.md": log}, after=after))
    assert (seen.fatal, [finding.rule for finding in seen.noted]) == ([], ["change_log_names_fix"])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "The mean of nothing fails: it should be `hasattr(values, 'fallback')` that is asked.",
            "instruction_leaks_fix",
        ),
        (
            "Use ghp_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3jKx to see why the mean of nothing fails.",
            "instruction_has_secret",
        ),
        (
            "It must hold that\n    numbers = [3, 1, 2, 5, 4]\n    shuffled = sorted(numbers)\n"
            "    assert median(shuffled) == 3, 'the middle one'\n",
            "instruction_shows_other_tests",
        ),
    ],
)
def test_instructions(plant: Plant, text: str, rule: str) -> None:
    assert [finding.rule for finding in look_at_instruction(plant(instruction=text))] == [rule]


@pytest.mark.parametrize("key", [FAILING, f"{FAILING}[1]", FAILING.replace("/", ".").replace(".py::", ".")])
def test_the_failing_test_may_be_shown_however_its_runner_spells_it(plant: Plant, key: str) -> None:
    text = (
        "It must hold that\n    def test_mean_of_nothing_at_all():\n        empty = EmptyWithFallback(17.25)\n"
        "        assert mean(empty) == 17.25\n"
    )
    after = AFTER.replace("'fallback'", "'EmptyWithFallback'")
    assert list(look_at_instruction(plant(instruction=text, after=after, failing=key))) == []


@pytest.mark.parametrize(("old", "new"), [("total / count", "total // count"), ("    count = len(values)\n", "")])
def test_a_change_of_one_short_line_is_known_by_its_place(old: str, new: str) -> None:
    after = BEFORE.replace(old, new)
    guarded = guard("pkg/calc.py", "fix", BEFORE, after)
    assert guarded is not None
    (same,), (changed,) = readings("x", BEFORE.encode()), readings("x", after.encode())
    assert (held(guarded, same).copy, held(guarded, changed).copy) == (False, True)
