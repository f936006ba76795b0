"""Packs for OpenEnv: a server, a client, and the manifest that OpenEnv validates."""

from __future__ import annotations

from envsynth.exporters._contents import json_lines
from envsynth.exporters._package import EVERY_KIND, PackageExporter, Project, Target
from envsynth.exporters._vendor import rendered

__all__ = ["OpenEnv"]


def _files(project: Project) -> dict[str, bytes]:
    """The manifest, the oracle, and what OpenEnv's own tools look for beside the package."""
    first = project.tasks[0]
    workspaces = any(task.candidate.environment.kind == "workspace" for task in project.tasks)
    calls = next(line.calls for line in first.panel if line.label == "reference")
    words = {
        "package": project.package, "version": project.version, "count": str(len(project.tasks)),
        "disk_mb": "8192" if workspaces else "256", "timeout_s": "3600.0" if workspaces else "300.0",
        # The first reset of a workspace installs pinned packages; an agent's commands have no network anyway.
        "network": "public" if workspaces else "no-network", "tags": "swe, tools" if workspaces else "tools",
    }  # fmt: skip
    return {
        "openenv.yaml": rendered("openenv/openenv.yaml", **words),
        "oracle.json": json_lines([{"task": first.id, "calls": [call.document() for call in calls]}]),
        "server/app.py": rendered("openenv/root_app.py", **words),
        "server/__init__.py": b"",
        "server/Dockerfile": rendered("openenv/Dockerfile", **words),
    }


class OpenEnv(PackageExporter):
    """Writes a pack for OpenEnv."""

    target = Target(
        name="openenv",
        requires='"openenv>=0.10"',
        kinds=EVERY_KIND,
        inside={
            "__init__.py": "package_init.py", "client.py": "client.py", "models.py": "models.py",
            "environment.py": "environment.py", "server/__init__.py": "server_init.py", "server/app.py": "app.py",
            "through.py": "through.py",
        },
        files=_files,
        scripts={"server": "server.app:main"},
        taken=frozenset({"openenv", "server"}),
    )  # fmt: skip
