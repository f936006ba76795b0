"""Grades a folder and prints what became of each test, as logs for SWE-bench's parser have it.

`python -m ...runtime.testlog FOLDER HANDED`: the folder is a grader's, with `contents.zip` (what an agent may know) and
`hidden.zip` (contents too, and the grading document `task.json`). What tests print is not repeated: every line comes
from here, so none can be forged by printing it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ..errors import EnvsynthError, SandboxError, boundary
from .container import CONTENTS, TASK, Contents, close_folder, say, shut
from .contract import JSON, Backend, Grade
from .episode_db import ListedTest
from .grading import Measured
from .handin import HandedEpisode
from .recipe import ensure_environment
from .submission import Submission
from .workspace import WorkspaceTask

__all__ = ["HIDDEN", "Logged", "grade_logged", "log_lines", "spelled"]

HIDDEN = "hidden.zip"
_COLOUR = re.compile(r"\[(\d+)m")
_DASH = " - "


def spelled(key: str) -> str:
    """A test's key as SWE-bench's `parse_log_pytest_v2` reads it back from a line `PASSED KEY`.

    It takes whatever looks like a colour out, `[5m` of a parameter `5m` included, and any white space as one space. Two
    keys may be spelled alike.
    """
    shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in key)
    while _COLOUR.search(shown):
        shown = _COLOUR.sub("", shown)
    return " ".join(shown.split())


class Logged(NamedTuple):
    """A grade, with what became of every listed test."""

    grade: Grade
    tests: Sequence[ListedTest]


def log_lines(grade: Grade, tests: Iterable[ListedTest]) -> Iterator[str]:
    """Lines of the log.

    A test counts as passed where it passed; where every test did and a check does not hold all the same, such as that
    of the control runs, the fail-to-pass tests count as failed, for the log has no other word for it.

    Args:
        grade: of the folder.
        tests: the listed tests with what each of them did.
    """
    forged = grade.outcome != 1.0 and all(test.after == "passed" for test in tests)
    statuses: dict[str, set[str]] = {}
    for test in tests:
        passed = test.after == "passed" and not (forged and test.list == "F2P")
        # Of a failed test's line the parser takes what stands before a dash.
        failed = "ERROR" if _DASH in spelled(test.id) or test.after in ("absent", "error") else "FAILED"
        statuses.setdefault(spelled(test.id), set()).add("PASSED" if passed else failed)
    for name, held in sorted(grade.checks.items()):
        yield f"check {name}: {'holds' if held else 'does not hold'}"
    for name, found in sorted(statuses.items()):
        # Keys that are spelled alike are graded as their worst.
        yield f"{min(found, key=('ERROR', 'FAILED', 'PASSED').index)} {name}"


class _Watched(HandedEpisode):
    """Remembers what its tests did."""

    tests: Sequence[ListedTest] = ()

    def _measure(self, submission: Submission, quick: bool) -> Measured:
        measured = super()._measure(submission, quick)
        self.tests = measured.tests
        return measured


def grade_logged(folder: Path, handed: Path, backend: Backend) -> Logged:
    """Grade what a folder holds as the final state of a workspace.

    Args:
        folder: the grader's.
        handed: the final state.
        backend: where the tests run.

    Raises:
        SandboxError: the environment failed; there is no grade.
    """
    close_folder(folder, CONTENTS, HIDDEN)
    shut(handed)
    with closing(Contents(folder / CONTENTS)) as shown, closing(Contents(folder / HIDDEN)) as hidden:
        document = _document(folder / HIDDEN)

        def content(digest: str) -> bytes:
            try:
                return hidden(digest)
            except KeyError:
                return shown(digest)

        recipe, cache = document["candidate"]["environment"]["recipe"], folder / "cache"
        environment = ensure_environment(recipe, content, cache, note=say)
        task = WorkspaceTask(document, content, task_id=document["id"], environment=environment, cache_dir=cache)
        episode = _Watched(task, backend, scratch=folder / "scratch")
        try:
            episode.take(handed)
            return Logged(episode.grade(), tuple(episode.tests))
        finally:
            episode.close()


def _document(place: Path) -> JSON:
    with boundary(SandboxError, "the task cannot be read", where=str(place)), zipfile.ZipFile(place) as archive:
        return json.loads(archive.read(TASK))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command.

    Returns:
        0: every test has its line. Else there is no grade, no line of a test, and the reason is on standard error.
    """
    from ..sandbox.users import UserBackend

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the grader's folder")
    parser.add_argument("handed", type=Path, help="the final state of the workspace")
    options = parser.parse_args(arguments)
    try:
        logged = grade_logged(options.folder, options.handed, UserBackend())
    except EnvsynthError as exc:
        say(f"error: {exc}")
        return exc.exit_code
    text = "".join(f"{line}\n" for line in log_lines(logged.grade, logged.tests))
    os.write(1, text.encode("utf-8", "backslashreplace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
