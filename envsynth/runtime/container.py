"""What images of a task are made with, and how their grader grades: `python -m ...runtime.container --help`.

A folder holds `contents.zip` (contents by sha256) and `task.json`: in the agent's image tree and recipe alone, in the
grader's image the grading document.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import EnvsynthError, SandboxError, boundary
from .contract import JSON, Backend, Grade
from .handin import grade_folder, without_unseen
from .recipe import ensure_environment
from .record import write_components
from .rewards import reward_vector
from .trees import Blobs, Manifest, load_manifest, materialise
from .workspace import WorkspaceTask

CONTENTS = "contents.zip"
TASK = "task.json"
ENVIRONMENT, WORKSPACE = "environment", "workspace"
"""What `lay_out` makes, in its folder."""


class Contents:
    """A zip archive of contents by sha256."""

    def __init__(self, place: Path) -> None:
        with boundary(SandboxError, "the contents cannot be read", where=str(place)):
            self._file = zipfile.ZipFile(place)

    def __call__(self, digest: str) -> bytes:
        """A content.

        Raises:
            KeyError: there is none.
            ValueError: it is damaged.
        """
        content = self._file.read(digest)
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"the content {digest[:12]} is damaged")
        return content

    def close(self) -> None:
        """Free the file."""
        self._file.close()


def lay_out(folder: Path) -> None:
    """Make an agent's `environment` and `workspace` in a folder that holds what an agent may know of the task.

    Raises:
        ConfigError: the interpreter is not installed.
        SandboxError: the environment or the tree cannot be made.
    """
    told, contents = _read(folder)
    with boundary(SandboxError, "the workspace cannot be laid out", where=str(folder)):
        environment = ensure_environment(told["recipe"], contents, folder / "cache", note=say)
        environment.rename(folder / ENVIRONMENT)
        materialise(load_manifest(told["tree"], contents), contents, folder / "cache").rename(folder / WORKSPACE)
    contents.close()


def prepare(folder: Path, backend: Backend) -> None:
    """Make a grader's environment and trees, and show that grading works here.

    Raises:
        ConfigError: the interpreter is not installed.
        SandboxError: something cannot be made, the reference solution is not graded as solved, or the start tree is.
    """
    document, contents = _read(folder)
    close_folder(folder, CONTENTS, TASK)
    task = _task(folder, document, contents)
    _ = task.pristine_folder
    for solved in (False, True):
        with tempfile.TemporaryDirectory(prefix="shown-", dir=folder / "scratch") as place:
            shown = Path(place, WORKSPACE)
            _write_state(task, document["candidate"]["reference"] if solved else None, contents, shown)
            grade = grade_folder(task, shown, backend, folder / "scratch")
        if grade.outcome != float(solved):
            raise SandboxError(
                f"{'the reference solution' if solved else 'the start tree'} is graded {grade.outcome:g} here",
                where=task.id, cause=f"tests behave otherwise than where the task was made: {json.dumps(grade.detail)}",
                next_step="give the export another base image with the option `base`", retryable=False,
            )  # fmt: skip
    contents.close()


def grade_handed_in(folder: Path, handed: Path, backend: Backend) -> Grade:
    """Grade what an agent's container handed in.

    Args:
        folder: the grader's, as `prepare` left it.
        handed: the final state of the workspace.
        backend: where the tests run.

    Raises:
        SandboxError: nothing was handed in, or the environment failed; there is no grade.
    """
    document, contents = _read(folder)
    try:
        return grade_folder(_task(folder, document, contents), handed, backend, folder / "scratch")
    finally:
        contents.close()


def write_rewards(place: Path, grade: Grade) -> None:
    """Write the components that a folder decides as a flat JSON object of finite numbers, in one step.

    Raises:
        SandboxError: they cannot be written, or one is not finite.
    """
    write_components(place, without_unseen(reward_vector(grade)))


def _read(folder: Path) -> tuple[JSON, Contents]:
    with boundary(SandboxError, "the task cannot be read", where=str(folder)):
        return json.loads((folder / TASK).read_text("utf-8")), Contents(folder / CONTENTS)


def _task(folder: Path, document: JSON, contents: Blobs) -> WorkspaceTask:
    environment = ensure_environment(
        document["candidate"]["environment"]["recipe"], contents, folder / "cache", note=say
    )
    return WorkspaceTask(
        document, contents, task_id=document["id"], environment=environment, cache_dir=folder / "cache"
    )


def close_folder(folder: Path, *files: str) -> None:
    """Keep what grading reads from users without rights; the environment and a sandbox's folder they may reach.

    Args:
        folder: the grader's.
        files: names of those in it that are root's alone.

    Raises:
        SandboxError: it cannot be closed.
    """
    with boundary(SandboxError, "the grader's folder cannot be closed", where=str(folder)):
        for name in ("cache", "scratch"):
            (folder / name).mkdir(exist_ok=True)
            (folder / name).chmod(0o711)
        for name in ("trees", "locks"):
            (folder / "cache" / name).mkdir(exist_ok=True)
            (folder / "cache" / name).chmod(0o700)
        for name in files:
            (folder / name).chmod(0o600)


def shut(*places: Path) -> None:
    """Keep folders from users without rights; what is no folder, or a link, stays as it is.

    Raises:
        SandboxError: one cannot be closed.
    """
    for place in places:
        with boundary(SandboxError, "a folder cannot be closed", where=str(place)):
            if place.is_dir() and not place.is_symlink():
                place.chmod(0o700)


def _write_state(task: WorkspaceTask, reference: JSON, contents: Blobs, place: Path) -> None:
    """The start tree, or the reference solution."""
    shutil.copytree(task.start_folder, place, symlinks=True)
    if reference is None:
        return
    for path in reference["removed"]:
        (place / path).unlink(missing_ok=True)
    changes: Manifest = load_manifest(reference["changes"], contents)
    for path, entry in changes.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if entry.mode == "symlink":
            target.symlink_to(os.fsdecode(contents(entry.blob)))
            continue
        target.write_bytes(contents(entry.blob))
        target.chmod(0o755 if entry.mode == "executable" else 0o644)


def say(text: str) -> None:
    """Tell whoever reads the log of the container."""
    print(text, file=sys.stderr, flush=True)


def _grade(options: argparse.Namespace, backend: Backend) -> None:
    rewards = options.logs / "reward.json"
    # What comes from the agent's container, and where the result goes, is nothing to code under test.
    shut(options.handed, options.logs, *options.close)
    rewards.unlink(missing_ok=True)
    grade = grade_handed_in(options.folder, options.handed, backend)
    write_rewards(rewards, grade)
    print(json.dumps(grade.detail, indent=1))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command.

    Returns:
        0: done. Else there is no grade, and the reason is on standard error.
    """
    from ..sandbox.users import UserBackend

    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, told in (
        ("lay-out", "make an agent's environment and workspace in FOLDER"),
        ("prepare", "make a grader's environment and trees in FOLDER, and show that it can grade"),
        ("grade", "grade HANDED and write LOGS/reward.json"),
    ):
        command = commands.add_parser(name, help=told, description=told)
        command.add_argument("folder", type=Path)
        if name == "grade":
            command.add_argument("handed", type=Path)
            command.add_argument("logs", type=Path)
            command.add_argument("--close", type=Path, nargs="*", default=[], help="further folders to keep closed")
    options = parser.parse_args(arguments)
    steps: dict[str, Callable[[], None]] = {
        "lay-out": lambda: lay_out(options.folder),
        "prepare": lambda: prepare(options.folder, UserBackend()),
        "grade": lambda: _grade(options, UserBackend()),
    }
    try:
        steps[options.command]()
    except EnvsynthError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return exc.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
