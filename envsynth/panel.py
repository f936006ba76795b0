"""What follows from a candidate: the tree with its reference applied, and the trajectories every task starts with."""

from __future__ import annotations

import base64
import shlex
from difflib import SequenceMatcher

from envsynth.models import Candidate, FileMode, Role, ToolCall, Trajectory, Tree, TreeEntry, Workspace, role_of
from envsynth.protocols import BlobStore

MAX_TEST_FILES = 5
_LINE_STEPS = (0, 1, 2, 3, 5, 8, 13, 21, 34)


def first_panel(candidate: Candidate, blobs: BlobStore) -> tuple[Trajectory, ...]:
    """The trajectories that a candidate starts with, whatever its environment."""
    return candidate.panel or workspace_panel(candidate, blobs)


def workspace_panel(candidate: Candidate, blobs: BlobStore) -> tuple[Trajectory, ...]:
    """`reference` (edits, one run of the visible tests, submit) and `idle` (submit at once)."""
    submit = ToolCall(tool="submit")
    calls = (*reference_edits(candidate, blobs), _visible_tests(candidate, blobs), submit)
    return (
        Trajectory(label="reference", calls=calls, outcome=1.0),
        Trajectory(label="idle", calls=(submit,), outcome=0.0),
    )


def reference_tree(candidate: Candidate, blobs: BlobStore) -> Tree:
    """The start tree with the reference solution applied."""
    start = blobs.get_tree(candidate.workspace.tree)
    changes = blobs.get_tree(candidate.solution.changes)
    return start.without(candidate.solution.removed).overlay(changes)


def reference_edits(candidate: Candidate, blobs: BlobStore) -> tuple[ToolCall, ...]:
    """The reference solution as an agent would write it: small unique edits, whole files where that fails."""
    return edits_to(candidate, reference_tree(candidate, blobs), blobs)


def edits_to(candidate: Candidate, target: Tree, blobs: BlobStore) -> tuple[ToolCall, ...]:
    """What an agent would call to turn the start tree into `target`: removals, then small unique edits, or whole files.

    Args:
        candidate: whose start tree it is.
        target: the whole tree wanted.
        blobs: where contents are.
    """
    start = blobs.get_tree(candidate.workspace.tree)
    calls = [_shell(f"rm -- {shlex.quote(path)}") for path in start.by_path if path not in target.by_path]
    for entry in target.entries:
        before = start.by_path.get(entry.path)
        if before != entry:
            calls.extend(_file_calls(entry, before, blobs))
    return tuple(calls)


def trajectory_to(label: str, candidate: Candidate, target: Tree, blobs: BlobStore, outcome: float) -> Trajectory:
    """The shortest trajectory that hands in `target`."""
    calls = (*edits_to(candidate, target, blobs), ToolCall(tool="submit"))
    return Trajectory(label=label, calls=calls, outcome=outcome)


def _file_calls(entry: TreeEntry, before: TreeEntry | None, blobs: BlobStore) -> list[ToolCall]:
    content = blobs.get(entry.blob)
    quoted = shlex.quote(f"./{entry.path}")
    if entry.mode is FileMode.SYMLINK:
        return [_shell(f"mkdir -p {quoted}/.. ; rm -rf {quoted}; ln -s -- {shlex.quote(content.decode())} {quoted}")]
    calls = _content_calls(entry.path, content, blobs.get(before.blob) if before is not None else None)
    was_executable = before is not None and before.mode is FileMode.EXECUTABLE
    if was_executable != (entry.mode is FileMode.EXECUTABLE):
        calls.append(_shell(f"chmod {'-x' if was_executable else '+x'} {quoted}"))
    return calls


def _content_calls(path: str, content: bytes, before: bytes | None) -> list[ToolCall]:
    if content == before:
        return []
    try:
        new = content.decode("utf-8")
        old = before.decode("utf-8") if before is not None else None
    except UnicodeDecodeError:
        quoted = shlex.quote(f"./{path}")
        text = base64.b64encode(content).decode()
        return [_shell(f'mkdir -p -- "$(dirname {quoted})" && printf %s {text} | base64 -d > {quoted}')]
    edits = unique_edits(old, new) if old else None
    if edits is None:
        return [ToolCall(tool="write_file", arguments={"path": path, "content": new})]
    return [
        ToolCall(tool="edit_file", arguments={"path": path, "old": before_text, "new": after_text})
        for before_text, after_text in edits
    ]


def unique_edits(old: str, new: str) -> list[tuple[str, str]] | None:
    """Replacements that turn `old` into `new`, each `before` occurring exactly once when its turn comes.

    Returns None where no such list was found (then the whole file is to be written).
    """
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    edits: list[tuple[str, str]] = []
    current, shift = list(before), 0
    for tag, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        edit = _unique_edit(current, (start + shift, end + shift), after[new_start:new_end])
        if edit is None:
            return None
        edits.append(edit)
        current[start + shift : end + shift] = after[new_start:new_end]
        shift += (new_end - new_start) - (end - start)
    return edits if "".join(current) == new else None


def _unique_edit(current: list[str], span: tuple[int, int], replacement: list[str]) -> tuple[str, str] | None:
    start, end = span
    whole = "".join(current)
    for step in _LINE_STEPS:
        low, high = max(0, start - step), min(len(current), end + step)
        before = "".join(current[low:high])
        if before and _occurrences(whole, before) == 1:
            return before, "".join([*current[low:start], *replacement, *current[end:high]])
    return None


def _occurrences(text: str, part: str) -> int:
    """Occurrences, overlapping ones too, up to two."""
    first = text.find(part)
    return 0 if first < 0 else 1 + (text.find(part, first + 1) >= 0)


def _visible_tests(candidate: Candidate, blobs: BlobStore) -> ToolCall:
    """One run of the tests that an agent can see next to the change; its output is thrown away (it holds timings)."""
    workspace = candidate.workspace
    start, hidden = blobs.get_tree(workspace.tree), blobs.get_tree(workspace.hidden)
    changed = _changed_tests(workspace, start, hidden)
    targets = changed if 0 < len(changed) <= MAX_TEST_FILES else list(workspace.command.targets)
    words = ["python", "-m", workspace.command.runner]
    words += ["-q", *targets] if workspace.command.runner == "pytest" else (changed or ["discover"])
    return _shell(" ".join(shlex.quote(word) for word in words) + " > /dev/null 2>&1")


def _changed_tests(workspace: Workspace, start: Tree, hidden: Tree) -> list[str]:
    return [
        entry.path
        for entry in hidden.entries
        if entry.path in start.by_path
        and start.by_path[entry.path].blob != entry.blob
        and role_of(entry.path, workspace.roles) is Role.TEST
        and entry.path.endswith(".py")
    ]


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="bash", arguments={"command": command})
