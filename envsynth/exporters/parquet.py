"""Tasks as parquet tables with a dataset card, as the Hugging Face hub and `datasets` read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth import __version__
from envsynth.errors import ExportError
from envsynth.exporters import _contents
from envsynth.exporters._folder import MANIFEST, manifest_bytes, require_free, write_pack
from envsynth.exporters._package import EVERY_KIND, ordered, pack_name, pack_version, source_table
from envsynth.exporters._tables import parquet_bytes
from envsynth.exporters._vendor import rendered
from envsynth.models import Task, canonical_json
from envsynth.protocols import BlobStore

__all__ = ["Parquet"]

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


class Parquet:
    """Writes tables, to be looked at and joined; nothing is played in them.

    Options: `name` of the dataset (the folder's name), `version` (0.1.0) and `split` (train).
    """

    name = "parquet"
    kinds = EVERY_KIND

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write the tables and the card into `out`; the same tasks, name, version and split give the same bytes.

        Raises:
            ExportError: no task, a bad name, a missing content, or something else is in the folder.
        """
        unknown = sorted(options.keys() - {"name", "version", "split"})
        if unknown:
            raise ExportError(f"unknown option {unknown[0]!r}", where=self.name, next_step="use name, version or split")
        name = pack_name(options.get("name", ""), out, self.name, frozenset())
        version, split = pack_version(options.get("version", "0.1.0"), self.name), options.get("split", "train")
        if not split.isidentifier():
            raise ExportError(f"{split!r} is no name of a split", where=self.name, next_step="such as split=train")
        chosen = ordered(tasks, self.name, self.kinds)
        require_free(out, name=name, format_=self.name)
        write_pack(out, _files(name, version, split, chosen, blobs))
        return out


def _files(name: str, version: str, split: str, tasks: Sequence[Task], blobs: BlobStore) -> dict[str, bytes]:
    shown, texts = _contents.Shown(blobs), _contents.licences(tasks, blobs)
    words = {
        "name": name, "split": split, "count": str(len(tasks)), "envsynth_version": __version__,
        "size": next((words for bound, words in _SIZES if len(tasks) < bound), "n>1M"),
        "sources": source_table(tasks, texts),
    }  # fmt: skip
    panel = [line for task in tasks for line in _contents.panel_lines(task, blobs)]
    files = {
        "README.md": rendered("parquet/README.md", **words),
        f"data/tasks-{split}.parquet": _table([_task_row(task, shown) for task in tasks]),
        f"data/panel-{split}.parquet": _table([{**line, "calls": canonical_json(line["calls"])} for line in panel]),
        f"data/grading-{split}.parquet": _table([{"id": task.id, "document": task.to_json()} for task in tasks]),
        **{text.path: text.content for text in texts},
    }  # fmt: skip
    document = _contents.manifest(name, version, tasks, texts)
    document |= {"format": Parquet.name, "split": split, "files": _contents.file_digests(files)}
    files[MANIFEST] = manifest_bytes(document)
    return files


def _task_row(task: Task, shown: _contents.Shown) -> dict[str, object]:
    told, strength, lead = shown.document(task), task.strength, task.candidate.provenance.lead
    return {
        "id": task.id, "kind": told["kind"], "instruction": told["instruction"], "tools": canonical_json(told["tools"]),
        "budget": canonical_json(told["budget"]), "reward_spec": canonical_json(told["reward"]),
        "source": lead.source, "generator": lead.generator,
        "strategy": lead.strategy, "author": task.candidate.provenance.author, "tier": task.tier.value,
        "attacks": strength.attacks, "attacks_worked": strength.attacks_worked, "kill_rate": strength.kill_rate,
        "false_reject_rate": strength.false_reject_rate, "sha256": task.digest(),
    }  # fmt: skip


_FLOATS = frozenset({"kill_rate", "false_reject_rate", "outcome", "reward"})
_INTEGERS = frozenset({"attacks", "attacks_worked"})


def _table(rows: Sequence[Mapping[str, object]]) -> bytes:
    """Rows of equal columns as a parquet file."""
    unnested = ", ".join(f"unnest(${name}::{_sql_type(name)}[]) AS {name}" for name in rows[0])
    return parquet_bytes(f"SELECT {unnested}", {name: [row[name] for row in rows] for name in rows[0]}, where="parquet")


def _sql_type(name: str) -> str:
    return "DOUBLE" if name in _FLOATS else "BIGINT" if name in _INTEGERS else "VARCHAR"
