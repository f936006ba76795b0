"""Packs for verifiers: a v1 taskset, whose tools are an MCP server of each rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth.errors import ExportError
from envsynth.exporters._package import PackageExporter, Target, holders
from envsynth.models import Task
from envsynth.protocols import BlobStore

__all__ = ["Verifiers"]


class Verifiers(PackageExporter):
    """Writes a pack for verifiers, of worlds; it takes workspaces as Harbor's."""

    target = Target(
        name="verifiers",
        requires='"verifiers>=0.4,<0.5"',
        kinds=("world",),
        inside={
            "__init__.py": "package_init.py", "taskset.py": "taskset.py", "tools.py": "tools.py",
            "through.py": "through.py",
        },
        taken=frozenset({"verifiers", "mcp"}),
    )  # fmt: skip

    def export(self, tasks: Sequence[Task], blobs: BlobStore, out: Path, options: Mapping[str, str]) -> Path:
        """Write a pack into `out`: see `export_package`.

        Raises:
            ExportError: as `export_package`; of a workspace it says which format verifiers plays them in.
        """
        workspace = next((task.id for task in tasks if task.candidate.environment.kind == "workspace"), None)
        if workspace is not None:
            others = " or ".join(name for name in holders("workspace") if name != "harbor")
            raise ExportError(
                "verifiers cannot hold workspace tasks", where=workspace,
                cause="its own taskset `harbor` plays them, from a pack for Harbor with named images",
                next_step="give --format harbor --option image=REGISTRY/NAME:{task}-{part}-{digest}, or --format "
                f"{others}, or leave such tasks out with --where",
            )  # fmt: skip
        return super().export(tasks, blobs, out, options)
