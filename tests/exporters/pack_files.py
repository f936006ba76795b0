"""What tests read of a pack's folder, and the processes that they write and play it in."""

from __future__ import annotations

from pathlib import Path

UNLIKE = (
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LANG": "C", "LC_ALL": "C", "HOSTNAME": "one", "USER": "kim"},
    {"PYTHONHASHSEED": "2", "TZ": "America/Lima", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "HOSTNAME": "two",
     "HOME": "/nonexistent", "USER": "ada", "LOGNAME": "ada", "COLUMNS": "20", "TERM": "dumb"},
)  # fmt: skip
"""Variables of two processes that have nothing in common."""


def files_of(folder: Path) -> dict[str, bytes]:
    """Contents of all files below a folder, by relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def task_directories(pack: Path) -> list[Path]:
    """Of formats with a directory a task."""
    return sorted((pack / "tasks").iterdir())
