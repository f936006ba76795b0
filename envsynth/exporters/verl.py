"""Packs for verl: an agent loop of its own, and rows that name it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb

from envsynth.errors import ExportError, boundary
from envsynth.exporters._contents import json_lines
from envsynth.exporters._package import EVERY_KIND, PackageExporter, Project, Target
from envsynth.models import Task

__all__ = ["Verl"]

_NESTED = """
COPY (
    SELECT
        $package AS agent_name, $package AS data_source, 'tool use' AS ability,
        [{'role': 'user', 'content': content}] AS prompt,
        {'style': 'rule', 'ground_truth': ''} AS reward_model,
        {'index': index, 'task': task} AS extra_info
    FROM (SELECT unnest($index) AS index, unnest($task) AS task, unnest($content) AS content)
    ORDER BY index
) TO '%s' (FORMAT parquet, COMPRESSION zstd)
"""


def _rows(project: Project) -> dict[str, bytes]:
    """What verl's data loader reads, inside the package: as a table, and as text to look at."""
    name = project.package
    rows = (
        {
            "agent_name": name,
            "data_source": name,
            "ability": "tool use",
            "prompt": [{"role": "user", "content": task.candidate.instruction}],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": index, "task": task.id},
        }
        for index, task in enumerate(project.tasks)
    )
    return {f"{name}/rows.jsonl": json_lines(rows), f"{name}/rows.parquet": _table(name, project.tasks)}


def _table(package: str, tasks: Sequence[Task]) -> bytes:
    """The rows as a parquet file; one thread, so that the same rows give the same bytes."""
    values = {
        "package": package, "index": list(range(len(tasks))), "task": [task.id for task in tasks],
        "content": [task.candidate.instruction for task in tasks],
    }  # fmt: skip
    with (
        boundary(ExportError, "the table cannot be written", where="verl"),
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect(config={"threads": 1}) as connection,
    ):
        path = Path(folder) / "rows.parquet"
        connection.execute(_NESTED % path, values)
        return path.read_bytes()


class Verl(PackageExporter):
    """Writes a pack for verl."""

    target = Target(
        name="verl",
        # verl itself is there already where a trainer runs, in the build that its machine needs.
        requires="",
        kinds=EVERY_KIND,
        inside={
            "__init__.py": "package_init.py", "agent_loop.py": "agent_loop.py", "agent_loop.yaml": "agent_loop.yaml",
            "reward.py": "reward.py", "absent.py": "absent.py", "through.py": "through.py",
        },
        files=_rows,
        taken=frozenset({"verl", "torch", "ray", "transformers", "hydra", "omegaconf", "tensordict"}),
    )  # fmt: skip
