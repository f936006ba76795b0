"""Tasks as rows of SWE-smith's and of R2E-Gym's datasets: two tables with a dataset card; nothing is played in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envsynth import __version__
from envsynth.errors import ExportError
from envsynth.exporters import _contents
from envsynth.exporters._folder import MANIFEST, manifest_bytes, require_free, write_pack
from envsynth.exporters._package import ordered, pack_name, pack_version, source_table
from envsynth.exporters._r2e import r2e_row
from envsynth.exporters._swe import Trees, image_name, listed_tests, measured, repository_of, trees_of
from envsynth.exporters._vendor import rendered
from envsynth.models import Task, canonical_json
from envsynth.protocols import BlobStore

__all__ = ["Swesmith"]

_SPLIT = "train"


class Swesmith:
    """Writes tables of repairs, to train on and to join with images that others built.

    Options: `name` of the dataset (the folder's name) and `version` (0.1.0).
    """

    name = "swesmith"
    kinds = ("workspace",)

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write the tables and the card into `out`; the same tasks, name and version give the same bytes.

        Raises:
            ExportError: no task, one of another kind, a bad name, a missing content, or something else is in the
                folder.
        """
        unknown = sorted(options.keys() - {"name", "version"})
        if unknown:
            raise ExportError(f"unknown option {unknown[0]!r}", where=self.name, next_step="use name or version")
        name = pack_name(options.get("name", ""), out, self.name, frozenset())
        version = pack_version(options.get("version", "0.1.0"), self.name)
        chosen = ordered(tasks, self.name, self.kinds)
        require_free(out, name=name, format_=self.name)
        write_pack(out, _files(name, version, chosen, blobs))
        return out


def _files(name: str, version: str, tasks: Sequence[Task], blobs: BlobStore) -> dict[str, bytes]:
    texts = _contents.licences(tasks, blobs)
    smith, r2e = [], []
    for task in tasks:
        trees = trees_of(task, blobs)
        about = {"metadata": canonical_json(measured(task))}
        smith.append(_smith_row(task, trees) | about)
        r2e.append(r2e_row(task, trees) | about)
    files = {
        "README.md": rendered(
            "swesmith/README.md", name=name, count=str(len(tasks)), envsynth_version=__version__,
            sources=source_table(tasks, texts),
        ),
        f"data/swesmith-{_SPLIT}.jsonl": _contents.ascii_lines(smith),
        f"data/r2e-{_SPLIT}.jsonl": _contents.ascii_lines(r2e),
        **{text.path: text.content for text in texts},
    }  # fmt: skip
    document = _contents.manifest(name, version, tasks, texts)
    document |= {"format": Swesmith.name, "files": _contents.file_digests(files)}
    files[MANIFEST] = manifest_bytes(document)
    return files


def _smith_row(task: Task, trees: Trees) -> dict[str, Any]:
    """SWE-smith's columns; its patch makes the bug."""
    return {
        "instance_id": task.id, "repo": repository_of(task), "image_name": image_name(task.id), "patch": trees.bug,
        "problem_statement": task.candidate.instruction.strip(), **listed_tests(task),
    }  # fmt: skip
