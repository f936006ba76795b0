"""Diffs and commit ids: git itself applies the ones and computes the others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from random import Random

import pytest

from envsynth.exporters._gitdiff import AUTHOR, MESSAGE, TIME, GitFile, commit_id, git_diff

PATHS = ("a.py", "b c.txt", "d/é.py", "d/e/f", 'q"uote', "tab\tx", "d-x", "d.y/z", "back\\s", "line\nend", "\udcff.bin")
CONTENTS = (
    b"", b"a\n", b"a", b"a\nb\r\nc\n", b"\0\1\2" * 100, b"\xff\xfe no text\n", b"x\n" * 50 + b"y\n" + b"z\n" * 50,
    b"x\n" * 50 + b"w\n" + b"z\n" * 49 + b"q", b"--- a\n+++ b\n@@ -1 +1 @@\n", bytes(Random(3).randbytes(3000)),
    "\u2028 and \x85\n".encode(), b"form\x0cfeed\n", b"-- \n\\ No newline at end of file\n",
)  # fmt: skip
LINKS = (b"a.py", b"../out")


def git(folder: Path, *command: str) -> str:
    name, address = AUTHOR.rstrip(">").split(" <")
    variables = {
        **os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": name,
        "GIT_COMMITTER_NAME": name, "GIT_AUTHOR_EMAIL": address, "GIT_COMMITTER_EMAIL": address,
        "GIT_AUTHOR_DATE": TIME, "GIT_COMMITTER_DATE": TIME,
    }  # fmt: skip
    done = subprocess.run(["git", "-C", str(folder), *command], capture_output=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def repository(folder: Path, files: dict[str, GitFile]) -> Path:
    folder.mkdir()
    git(folder, "-c", "init.defaultBranch=main", "init", "--quiet")
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("* -text -ident -filter\n")
    for path, file in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.mode == "120000":
            place.symlink_to(file.content.decode())
        else:
            place.write_bytes(file.content)
            place.chmod(0o755 if file.mode == "100755" else 0o644)
    git(folder, "add", "--all", "--force")
    return folder


def drawn(random: Random) -> dict[str, GitFile]:
    files = {}
    for path in random.sample(PATHS, random.randrange(1, len(PATHS))):
        mode = random.choice(("100644", "100644", "100755", "120000"))
        files[path] = GitFile(mode, random.choice(LINKS if mode == "120000" else CONTENTS))
    return files


@pytest.mark.parametrize("seed", range(6))
def test_git_applies_the_diff_and_agrees_on_the_commit(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    old, new = drawn(random), drawn(random)
    new |= {path: file for path, file in old.items() if random.random() < 0.2}
    before, after = repository(tmp_path / "before", old), repository(tmp_path / "after", new)
    git(before, "commit", "--quiet", f"--message={MESSAGE}")
    assert git(before, "rev-parse", "HEAD").strip() == commit_id(old)
    patch = git_diff(old, new)
    assert patch
    (tmp_path / "patch").write_text(patch, "utf-8", newline="")
    git(before, "apply", "--whitespace=nowarn", str(tmp_path / "patch"))
    git(before, "add", "--all", "--force")
    assert git(before, "ls-files", "--stage") == git(after, "ls-files", "--stage")


def test_equal_files_have_no_diff() -> None:
    files = drawn(Random(1))
    assert git_diff(files, dict(reversed(files.items()))) == ""
