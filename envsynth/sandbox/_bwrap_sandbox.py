"""One bubblewrap sandbox: an overlay (or a copy) of the layers, entered anew by every command."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from ..errors import SandboxError, boundary
from ..runtime.contract import ExecResult, Limits, SandboxSpec
from . import _bwrap_args as arguments
from ._bwrap import Invocation, SetupFailed, run
from ._cgroup import Cgroup
from ._layered import LayeredSandbox
from ._meter import task_limit

_BUSY_PAUSES = (0.0, 0.005, 0.02, 0.1, 0.3, 1.0)


class Capability(NamedTuple):
    """How sandboxes are made here."""

    binary: Path
    disable_nesting: bool
    overlay: bool
    cgroups: bool


class BubblewrapSandbox(LayeredSandbox):
    """Implements `envsynth.runtime.contract.Sandbox`."""

    def __init__(self, spec: SandboxSpec, capability: Capability, *, like: BubblewrapSandbox | None = None) -> None:
        self._capability = capability
        self._started = False
        overlay = like._overlay if like is not None else capability.overlay
        super().__init__(spec, overlay=overlay, fill=like is None)

    def _twin(self) -> Self:
        return type(self)(self._spec, self._capability, like=self)

    def exec(
        self,
        command: Sequence[str],
        *,
        limits: Limits,
        cwd: str | None = None,
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        network: bool = False,
    ) -> ExecResult:
        """Run a command; when this returns, every process it started is dead.

        Raises:
            ValueError: the command is empty, or a word holds a NUL byte.
            SandboxError: the environment failed.
        """
        inside = self._inside(command, cwd)
        group = Cgroup.make(limits.memory_bytes, task_limit(limits)) if self._capability.cgroups else None
        what = Invocation(self._capability.binary, [], command, inside, stdin)
        try:
            with boundary(SandboxError, "a command could not be run", where=str(self._folder.path)):
                return self._run(what, limits, group, network, variables or {})
        finally:
            if group is not None:
                group.drop_pages()
                group.close()

    def _run(
        self, what: Invocation, limits: Limits, group: Cgroup | None, network: bool, variables: Mapping[str, str]
    ) -> ExecResult:
        charge = self._charge(limits)
        for pause in _BUSY_PAUSES:
            time.sleep(pause)
            try:
                ran = run(what._replace(args=self._arguments(network, variables)), limits, group, charge)
            except SetupFailed as exc:
                if not self._recovered(exc.cause.lower()):
                    raise
                continue
            self._started = True
            self._folder.disk_bytes = ran.disk_bytes
            return ran.result
        raise SandboxError("a sandbox could not be made", cause="its folders stay busy", where=str(self._folder.path))

    def _recovered(self, cause: str) -> bool:
        """Whether another try may go well: a mount of the command before takes a moment to go, or copies help."""
        if "busy" in cause:
            return True
        if self._overlay and not self._started and "overlay" in cause:
            self._overlay = False
            self._copy_layers()
            return True
        return False

    def _arguments(self, network: bool, variables: Mapping[str, str]) -> list[str]:
        base, state = self._folder.path, self._folder.state
        args = arguments.isolation(network=network, disable_nesting=self._capability.disable_nesting)
        args += arguments.system()
        for name in ("passwd", "group", "hosts", "nsswitch.conf"):
            if not (network and name == "hosts"):
                args += ["--ro-bind", str(base / "etc" / name), f"/etc/{name}"]
        args += ["--bind", str(state / "tmp"), "/tmp", "--bind", str(state / "home"), arguments.HOME]
        if network:
            args += arguments.network_files()
        if self._overlay:
            args += arguments.overlay(self._layers, str(self._work), str(base / "mount"), self.workdir)
        else:
            args += ["--bind", str(self._work), self.workdir]
        for mount in self._spec.mounts:
            args += ["--bind" if mount.writable else "--ro-bind", str(mount.source.resolve()), mount.target]
        for folder in self._spec.covered:
            args += ["--tmpfs", folder, "--remount-ro", folder]
        args += ["--chdir", "/", "--remount-ro", "/", "--remount-ro", "/dev"]
        network_variables = arguments.network_variables() if network else {}
        return args + arguments.environment(
            arguments.BASE_VARIABLES, network_variables, self._spec.variables, variables
        )  # fmt: skip
