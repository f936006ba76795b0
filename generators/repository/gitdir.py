"""Reading a bare git directory through git's plumbing, bytewise, with nothing of the repository executed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

ALLOWED_PROTOCOLS = "file:git:http:https:ssh"

_CONFIG = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.askPass", ""),
    ("protocol.ext.allow", "never"),
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "60"),
    ("submodule.recurse", "false"),
)


def git_variables() -> dict[str, str]:
    """The environment of every git process: the user's own, with nothing that prompts or runs a hook."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key in _KEPT}
    for name in ("SSH_ASKPASS", "DISPLAY"):
        variables.pop(name, None)
    variables |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": ALLOWED_PROTOCOLS,
        "GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh") + " -oBatchMode=yes -oConnectTimeout=20",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_COUNT": str(len(_CONFIG)),
    }
    for number, (key, value) in enumerate(_CONFIG):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


_KEPT = {"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_NO_VERIFY", "GIT_SSH", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH"}


class GitFailed(Exception):
    """A git command ended with an error; the text is what it said."""


class GitEntry(NamedTuple):
    """One line of a tree."""

    path: bytes
    mode: str
    """`100644`, `100755`, `120000` (a link) or `160000` (a submodule)."""
    oid: str


class GitDir:
    """A bare repository on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *arguments: str, timeout: float = 120.0) -> bytes:
        """Standard output of a git command in this repository.

        Raises:
            GitFailed: it ended with an error.
            subprocess.TimeoutExpired: it did not end.
        """
        return run_git(f"--git-dir={self.path}", *arguments, timeout=timeout)

    def resolve(self, revision: str) -> str | None:
        """The full hash of the commit a revision names, or None."""
        try:
            found = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        except GitFailed:
            return None
        return found.decode().strip()

    def entries(self, commit: str) -> list[GitEntry]:
        """Every file, link and submodule of a commit's tree."""
        entries = []
        for line in self.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            if line:
                head, _, path = line.partition(b"\t")
                mode, _, oid = head.decode().split(" ")
                entries.append(GitEntry(path, mode, oid))
        return entries

    def nearest_tag(self, commit: str) -> str:
        """The newest tag with a digit in it that a commit descends from, or nothing."""
        try:
            return (
                self.run("describe", "--tags", "--abbrev=0", "--match=*[0-9]*", commit)
                .decode("utf-8", "replace")
                .strip()
            )
        except GitFailed:
            return ""

    def text(self, commit: str, path: str) -> str | None:
        """A file of a commit as text, or None."""
        try:
            return self.run("cat-file", "blob", f"{commit}:{path}").decode("utf-8", "replace")
        except GitFailed:
            return None

    @contextmanager
    def reader(self) -> Iterator[BlobReader]:
        """One `git cat-file --batch` process for many contents."""
        command = ["git", f"--git-dir={self.path}", "cat-file", "--batch"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=git_variables()
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield BlobReader(process.stdin, process.stdout)
        finally:
            process.kill()
            process.stdin.close()
            process.stdout.close()
            process.wait()


class BlobReader:
    """Contents by object id, over one process."""

    def __init__(self, ask: IO[bytes], answer: IO[bytes]) -> None:
        self._ask = ask
        self._answer = answer

    def read(self, oid: str) -> bytes:
        """The content of a blob.

        Raises:
            GitFailed: the object is missing.
        """
        self._ask.write(oid.encode() + b"\n")
        self._ask.flush()
        head = self._answer.readline().split()
        if len(head) != 3:
            raise GitFailed(f"object {oid} is missing")
        size = int(head[2])
        content = self._answer.read(size)
        self._answer.read(1)
        if len(content) != size:
            raise GitFailed(f"object {oid} is cut off")
        return content


def run_git(*arguments: str, timeout: float, cwd: Path | None = None) -> bytes:
    """Standard output of a git command.

    Raises:
        GitFailed: it ended with an error.
        subprocess.TimeoutExpired: it did not end.
    """
    with subprocess.Popen(
        ["git", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=git_variables(), cwd=cwd, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            said, complaint = process.communicate(timeout=timeout)
        finally:
            # Its transport is a process of its own, which would go on waiting for a host that hangs.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        raise GitFailed(complaint.decode("utf-8", "replace").strip() or f"git ended with {process.returncode}")
    return said
