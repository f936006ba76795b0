"""Packs for verl: an agent loop of its own, and rows that name it."""

from __future__ import annotations

from envsynth.exporters._contents import json_lines
from envsynth.exporters._package import EVERY_KIND, PackageExporter, Project, Target
from envsynth.exporters._tables import parquet_bytes

__all__ = ["Verl"]


def _rows(project: Project) -> dict[str, bytes]:
    """What verl's data loader reads, inside the package: as a table, and as text to look at."""
    name = project.package
    rows = [
        {
            "agent_name": name,
            "data_source": name,
            "ability": "tool use",
            "prompt": [{"role": "user", "content": task.candidate.instruction}],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": index, "task": task.id},
        }
        for index, task in enumerate(project.tasks)
    ]
    table = parquet_bytes("SELECT told.* FROM (SELECT unnest($rows) AS told)", {"rows": rows}, where="verl")
    return {f"{name}/rows.jsonl": json_lines(rows), f"{name}/rows.parquet": table}


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
