"""What a pack's manifest says of the whole: its digest, what was selected; and checking a folder against it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import NamedTuple

from envsynth.errors import ExportError, boundary
from envsynth.exporters._folder import DIGEST, MANIFEST, manifest_bytes, pack_digest, read_manifest

__all__ = ["Selection", "Verified", "record_selection", "verified_pack"]

_PLACE = re.compile(r"'(?:file:/*|~/|\.{0,2}/)(?:[^']*?/)?([^'/]*)/*'")
"""A text of SQL that names a place on the builder's machine, and its last part."""
_COMPILED = "__pycache__"
_AGAIN = "export the pack again"
_METADATA = (".dist-info", ".egg-info")
"""Ends of folders whose entry points are loaded by whoever looks for plug-ins, trainers among them."""


class Selection(NamedTuple):
    """Which tasks of a catalog a pack holds."""

    where: str
    """SQL condition over the view `task`; empty: all."""
    split: str = ""
    """Name of the split; empty: nothing was split."""
    apart_from: Mapping[str, str] = {}
    """Conditions of the other splits, by name, that share nothing with this one."""
    allowed: Collection[str] = ()
    """Traits that the splits may share all the same."""

    def document(self) -> dict[str, object]:
        """As it stands in a manifest: without places of the machine, in a stated order."""
        found: dict[str, object] = {"where": _told(self.where)}
        if self.split:
            found |= {
                "split": self.split, "allow_shared": sorted(set(self.allowed)),
                "apart_from": {name: _told(condition) for name, condition in sorted(self.apart_from.items())},
            }  # fmt: skip
        return found


class Verified(NamedTuple):
    """A pack that is as its manifest has it."""

    package: str
    """Name of its Python package; empty where it brings nothing that plays it."""
    digest: str
    """Of the whole pack."""


def _told(condition: str) -> str:
    return _PLACE.sub(r"'local:\1'", condition.strip())


def record_selection(pack: Path, selection: Selection) -> str:
    """Write into a pack's manifest what was selected; returns the pack's digest, empty where there is no manifest.

    Raises:
        ExportError: the manifest cannot be written.
    """
    document = read_manifest(pack)
    if not document:
        return ""
    content = manifest_bytes({**document, "selection": selection.document()})
    with boundary(ExportError, "the manifest cannot be written", where=str(pack)):
        aside = pack / f".{MANIFEST}.{os.getpid()}"
        aside.write_bytes(content)
        aside.replace(pack / MANIFEST)
    return str(read_manifest(pack)[DIGEST])


def verified_pack(pack: Path) -> Verified:
    """What a pack is, once its folder was found as the manifest has it.

    Compiled files in `__pycache__` are passed over: whoever imports the pack writes them.

    Raises:
        ExportError: the folder is no pack; its digest or a file is not as the manifest has it; or there are files that
            the manifest does not have, where they would be imported or taken for the pack's.
    """
    manifest = read_manifest(pack)
    package, files, digest = manifest.get("package", ""), manifest.get("files"), manifest.get(DIGEST)
    named = isinstance(package, str) and (not package or package.isidentifier())
    if (
        not named or not isinstance(files, dict) or not files or not all(map(_is_inside, files))
        or (package and f"{package}/__init__.py" not in files) or not isinstance(digest, str)
    ):  # fmt: skip
        raise ExportError(
            "this is no pack", where=str(pack), cause=f"no {MANIFEST} with its files and a digest",
            next_step="name the folder that `envsynth export` wrote, or export again",
        )  # fmt: skip
    with boundary(ExportError, "the pack is damaged", where=str(pack), next_step=_AGAIN):  # a number that is none
        right = pack_digest(manifest) == digest
    if not right:
        raise _damaged(pack, f"{MANIFEST} does not have the digest that it states")
    for path, stated in files.items():
        place = pack / path
        if not place.is_file() or hashlib.sha256(place.read_bytes()).hexdigest() != stated:
            raise _damaged(pack, f"{path} is not as the manifest has it")
    planted = sorted(_planted(pack, files.keys()))
    if planted:
        more = f", and {len(planted) - 1} more" if len(planted) > 1 else ""
        raise ExportError(
            "there is something in the pack that is not of it", where=str(pack),
            cause=f"{planted[0]} is not in the manifest{more}",
            next_step="look at it and take it away, or export the pack again",
        )  # fmt: skip
    return Verified(str(package), digest)


def _damaged(pack: Path, cause: str) -> ExportError:
    return ExportError("the pack is damaged", where=str(pack), cause=cause, next_step=_AGAIN)


def _is_inside(path: str) -> bool:
    """Whether a path of the manifest leads nowhere out of the pack."""
    return not {"", ".", ".."}.intersection(path.split("/"))


def _planted(pack: Path, files: Collection[str]) -> Iterator[str]:
    """What the manifest does not have: anything in a folder that it knows, and what can be imported beside those.

    Beside them logs, locks and the like may lie, but no module, nor what names plug-ins: the folder leads the import
    path of what plays it.
    """
    known = {Path(path).parts[0] for path in files if "/" in path}
    suffixes = tuple(all_suffixes())
    for entry in pack.iterdir():
        if entry.name in known:
            yield from _unknown(pack, entry, files)
        elif entry.name not in files and (entry.name.endswith(suffixes) or entry.name.lower().endswith(_METADATA)):
            yield entry.name
        elif entry.name not in files:
            yield from (f"{entry.name}/__init__{suffix}" for suffix in suffixes if _holds(entry, f"__init__{suffix}"))


def _holds(folder: Path, name: str) -> bool:
    try:
        return (folder / name).exists()
    except OSError:
        return False


def _unknown(pack: Path, folder: Path, files: Collection[str]) -> Iterator[str]:
    """Files below a folder that are not listed; links to folders are not followed, and are none of a pack's."""
    if folder.is_symlink():
        yield folder.name
        return
    for root, folders, names in os.walk(folder):
        here = Path(root).relative_to(pack)
        yield from ((here / name).as_posix() for name in folders if (Path(root) / name).is_symlink())
        compiled = here.name == _COMPILED
        for name in names:
            path = (here / name).as_posix()
            if path not in files and not (compiled and name.endswith(".pyc")):
                yield path
