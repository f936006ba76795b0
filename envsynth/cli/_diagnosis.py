"""What this machine has of what a build needs."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from envsynth import plugins
from envsynth.cache import default_cache_dir
from envsynth.cli._output import size
from envsynth.errors import EnvsynthError

if TYPE_CHECKING:
    from envsynth.sandbox import BackendReport

LOW_DISK = 2 * 10**9
"""Bytes; environments of one project take some hundred megabytes."""


class Diagnosis(NamedTuple):
    """One thing that was looked at."""

    status: Literal["ok", "absent", "fails"]
    """`fails`: a build needs it."""
    what: str
    text: str


def diagnose(*, network: bool) -> list[Diagnosis]:
    """Look at everything a build of repositories needs.

    Args:
        network: whether the package registry is asked.
    """
    found = [
        Diagnosis("ok", "system", f"{platform.platform()}, {os.cpu_count()} processors, user {os.getuid()}"),
        _command("git", shutil.which("git"), "install git"),
        _command("uv", _uv(), "pip install uv"),
        _interpreters(),
        *_sandboxes(),
        *_disk(),
    ]
    return [*found, _registry()] if network else found


def _command(name: str, path: str | None, remedy: str) -> Diagnosis:
    if path is None:
        return Diagnosis("fails", name, f"not found. Next: {remedy}")
    try:
        result = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        return Diagnosis("fails", name, f"{path} does not start: {exc}. Next: {remedy}")
    return Diagnosis("ok" if result.returncode == 0 else "fails", name, f"{result.stdout.strip()} ({path})")


def _uv() -> str | None:
    from uv import find_uv_bin

    try:
        return find_uv_bin()
    except FileNotFoundError:
        return shutil.which("uv")


def _interpreters() -> Diagnosis:
    from envsynth.runtime.interpreters import installed_interpreters

    found = installed_interpreters()
    return Diagnosis("ok" if found else "fails", "pythons", ", ".join(f"{one.version}.{one.patch}" for one in found))


def _sandboxes() -> list[Diagnosis]:
    from envsynth.sandbox import BACKENDS, explain

    reports = {report.name: report for report in explain()}
    found = []
    for name in (*BACKENDS, *(other for other in plugins.names("sandboxes") if other not in BACKENDS)):
        try:
            report = reports.get(name) or _foreign_sandbox(name)
        except EnvsynthError as error:
            found.append(Diagnosis("fails", f"sandbox {name}", str(error)))
            continue
        reports[name] = report
        text = report.explanation
        if report.works:
            text = f"works: {text}" if report.isolates else "works, without isolation: for trusted sources only"
        found.append(Diagnosis("ok" if report.works else "absent", f"sandbox {name}", text))
    isolating = [name for name, report in reports.items() if report.works and report.isolates]
    if isolating:
        taken = next((name for name in BACKENDS if name in isolating), "")
        text = f"--sandbox auto takes {taken}" if taken else f"--sandbox {isolating[0]} works; auto takes none"
        found.append(Diagnosis("ok", "isolation", text))
    else:
        text = "none works here: only sources with trusted=yes can be built"
        found.append(Diagnosis("absent", "isolation", text))
    return found


def _foreign_sandbox(name: str) -> BackendReport:
    from envsynth.sandbox import BackendReport

    backend = plugins.load("sandboxes", name)()
    reason = backend.unavailable()
    return BackendReport(name, reason is None, backend.isolates, reason or "a plug-in")


def _disk() -> list[Diagnosis]:
    cache = default_cache_dir()
    there = next(folder for folder in (cache, *cache.parents) if folder.is_dir())
    free = shutil.disk_usage(there).free
    used = sum(_file_size(Path(folder, name)) for folder, _, names in os.walk(cache) for name in names)
    return [
        Diagnosis("ok" if free >= LOW_DISK else "fails", "disk", f"{size(free)} free for {cache}"),
        Diagnosis("ok" if os.access(there, os.W_OK) else "fails", "cache", f"{size(used)} in {cache}"),
    ]


def _file_size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0  # another process removed it


def _registry() -> Diagnosis:
    uv = _uv()
    if uv is None:
        return Diagnosis("fails", "registry", "not asked without uv")
    command = [uv, "pip", "compile", "--quiet", "--no-cache", "--no-deps", "--no-header", "-"]
    try:
        result = subprocess.run(command, input="pip\n", capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        return Diagnosis("fails", "registry", f"no answer: {exc}")
    if result.returncode:
        cause = " ".join(result.stderr.split())[-300:]
        return Diagnosis("fails", "registry", f"{cause}. Next: check the network, UV_INDEX_URL and SSL_CERT_FILE")
    return Diagnosis("ok", "registry", f"answers: {result.stdout.split()[0]}")
