"""A task as a row of R2E-Gym's datasets: its parsed commit, results of its tests, and what was changed.

The shapes are those of R2E-Gym's own models `ParsedCommit`, `ExecutionResult` and `Entity`.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from envsynth.exporters._gitdiff import GitFile, commit_id, git_diff
from envsynth.exporters._swe import FAIL_TO_PASS, PASS_TO_PASS, Trees, image_name, listed_tests
from envsynth.hunks import changed_lines
from envsynth.models import Task
from envsynth.runtime.testkeys import locate

__all__ = ["r2e_row"]

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_INDEX = re.compile(r"index ([0-9a-f]+)\.\.([0-9a-f]+)(?: (\d+))?")
_KINDS = {" ": "context", "+": "added", "-": "deleted", "\\": "note"}
_NO_DATE = "2000-01-01T00:00:00Z"
"""Of references without one; R2E-Gym's model demands a date."""
_TEST_FOLDERS = ("tests", "Tests", "test", "Test")
_Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def r2e_row(task: Task, trees: Trees) -> dict[str, Any]:
    """A row with R2E-Gym's columns.

    Args:
        task: a workspace's.
        trees: its trees.
    """
    whole = trees.whole
    paths = sorted(path for path in trees.start.keys() | whole.keys() if trees.start.get(path) != whole.get(path))
    diffs = [_file_diff(path, trees.start.get(path), whole.get(path)) for path in paths]
    sources = [path for path in paths if not _is_test(path)]
    entities = [one for path in sources for one in _entities(path, trees.start.get(path), whole.get(path))]
    name = task.candidate.provenance.lead.name
    commit = {
        "file_diffs": diffs, "old_commit_hash": trees.base_commit, "new_commit_hash": commit_id(whole),
        "commit_message": str(task.candidate.metadata.get("title", "")),
        "commit_date": task.candidate.provenance.authored_at or _NO_DATE, "metadata": {},
    }  # fmt: skip
    return {
        "repo_name": name, "docker_image": image_name(task.id), "commit_hash": commit["new_commit_hash"],
        "parsed_commit_content": json.dumps(commit, indent=4),
        "execution_result_content": json.dumps(_results(task, trees, name, paths), indent=4),
        "modified_files": paths, "modified_entity_summaries": entities, "relevant_files": sources,
        "num_non_test_files": len(sources), "num_non_test_func_methods": len(entities),
        "num_non_test_lines": sum(_edited(diff) for diff in diffs if diff["header"]["file"]["path"] in sources),
        "prompt": "", "problem_statement": task.candidate.instruction.strip(),
        "expected_output_json": json.dumps(dict.fromkeys(_spelled(task, trees), "PASSED"), indent=4),
    }  # fmt: skip


def _is_test(path: str) -> bool:
    """Whether R2E-Gym takes a path for a test's."""
    parts = path.split("/")
    named = path.endswith("_test.py") or posixpath.basename(path).startswith("test_")
    return named or any(name in parts for name in _TEST_FOLDERS)


def _file_diff(path: str, old: GitFile | None, new: GitFile | None) -> dict[str, Any]:
    lines = git_diff({path: old} if old else {}, {path: new} if new else {}).split("\n")[:-1]
    found = next(filter(None, map(_INDEX.fullmatch, lines)), None)
    modes = [line for line in lines[1:3] if line.startswith(("new file", "deleted file", "old mode", "new mode"))]
    binary = "GIT binary patch" in lines
    return {
        "old_file_content": _content(old), "new_file_content": _content(new),
        "header": {"file": {"path": path}, "misc_line": "\n".join(modes) or None},
        "index_line": found and {
            "old_commit_hash": found[1], "new_commit_hash": found[2], "mode": found[3] or "",
        },
        "is_binary_file": binary, "binary_line": f"Binary files a/{path} and b/{path} differ" if binary else None,
        "minus_file": None if binary else {"path": f"a/{path}" if old else "/dev/null"},
        "plus_file": None if binary else {"path": f"b/{path}" if new else "/dev/null"},
        "hunks": [] if binary else list(_hunks(lines)),
    }  # fmt: skip


def _content(file: GitFile | None) -> str:
    return "" if file is None else file.content.decode("utf-8", "replace")


def _hunks(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    starts = [number for number, line in enumerate(lines) if _HUNK.match(line)]
    for first, last in zip(starts, [*starts[1:], len(lines)], strict=True):
        found = _HUNK.match(lines[first])
        if found is None:
            continue
        old, old_length, new, new_length = (int(part) if part else None for part in found.groups())
        yield {
            "descriptor": {
                "old_range": {"start": old, "length": old_length}, "new_range": {"start": new, "length": new_length},
                "section": "",
            },
            "line_group": {"all_lines": [_line(line) for line in lines[first + 1 : last]]},
            "modified_entities": [], "added_entities": [], "deleted_entities": [],
        }  # fmt: skip


def _line(line: str) -> dict[str, str]:
    return {"content": line[1:].removeprefix(" ") if line.startswith("\\") else line[1:], "type": _KINDS[line[:1]]}


def _edited(diff: Mapping[str, Any]) -> int:
    lines = (line for hunk in diff["hunks"] for line in hunk["line_group"]["all_lines"])
    return sum(line["type"] in ("added", "deleted") for line in lines)


def _entities(path: str, old: GitFile | None, new: GitFile | None) -> Iterator[dict[str, Any]]:
    """The innermost functions and classes of a Python file that a change touches.

    Those of the new version come first, then those that only the old one has, or whose lines are only gone.
    """
    if not path.endswith(".py"):
        return
    known = set()
    before, after = _content(old), _content(new)
    for text, other in ((after, before), (before, after)):
        for node, kind in _touched(text, other):
            if (node.name, kind) not in known:
                known.add((node.name, kind))
                yield {
                    "ast_type_str": type(node).__name__, "end_lineno": node.end_lineno or node.lineno,
                    "file_name": path, "name": node.name, "start_lineno": node.lineno, "type": kind,
                }  # fmt: skip


def _touched(text: str, other: str) -> list[tuple[_Node, str]]:
    """Functions and classes of a text that hold a line which the other text has not."""
    try:
        nodes = list(_nodes(ast.parse(text), inside_class=False))
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = set()
    for line in changed_lines(other, text):
        holding = [place for place, (node, _) in enumerate(nodes) if node.lineno <= line <= (node.end_lineno or 0)]
        found.update(holding[-1:])
    return [nodes[place] for place in sorted(found)]


def _nodes(tree: ast.AST, *, inside_class: bool) -> Iterator[tuple[_Node, str]]:
    """Functions and classes, each before those inside it."""
    for child in ast.iter_child_nodes(tree):
        is_class = isinstance(child, ast.ClassDef)
        if isinstance(child, _Node):
            yield child, "class" if is_class else "method" if inside_class else "function"
        yield from _nodes(child, inside_class=is_class or (inside_class and not isinstance(child, _Node)))


def _results(task: Task, trees: Trees, name: str, paths: Sequence[str]) -> dict[str, Any]:
    """Runs of the tests before and after, made of the measured lists: no run's own output is kept."""
    files = [path for path in paths if _is_test(path) and path in trees.graded]
    wanted = frozenset(listed_tests(task)[FAIL_TO_PASS])
    before = {key: "FAILED" if spelled in wanted else "PASSED" for key, spelled in _tests(task, trees)}
    return {
        "repo_name": name, "new_commit_hash": commit_id(trees.whole),
        "test_file_codes": [_content(trees.graded[path]) for path in files],
        "test_file_names": [posixpath.basename(path) for path in files],
        "setup_res_code": 0, "setup_res_stdout": "", "setup_res_stderr": "",
        "new_commit_res_code": 0, "new_commit_res_stdout": _log(dict.fromkeys(before, "PASSED")),
        "new_commit_res_stderr": "", "old_commit_res_code": 1,
        "old_commit_res_stdout": _log(before), "old_commit_res_stderr": "",
    }  # fmt: skip


def _log(statuses: Mapping[str, str]) -> str:
    lines = "".join(f"{status} {key}\n" for key, status in statuses.items())
    return f"=== short test summary info ===\n{lines}"


def _tests(task: Task, trees: Trees) -> Iterator[tuple[str, str]]:
    """Each listed test as a path with names, `PATH::NAME`, and as `listed_tests` spells it."""
    names = listed_tests(task)
    for spelled in [*names[FAIL_TO_PASS], *names[PASS_TO_PASS]]:
        place = locate(spelled, trees.graded)
        case = f"[{place.case}]" if place and place.case else ""
        yield (f"{'::'.join((place.path, *place.names))}{case}" if place else f"::{spelled}"), spelled


def _spelled(task: Task, trees: Trees) -> Iterator[str]:
    """Listed tests as R2E-Gym's parser reads them: without their file."""
    for key, _ in _tests(task, trees):
        yield ".".join(key.split("::")[1:])
