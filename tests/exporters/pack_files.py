"""What tests read of a pack's folder."""

from __future__ import annotations

from pathlib import Path


def files_of(folder: Path) -> dict[str, bytes]:
    """Contents of all files below a folder, by relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def task_directories(pack: Path) -> list[Path]:
    """Of formats with a directory a task."""
    return sorted((pack / "tasks").iterdir())
