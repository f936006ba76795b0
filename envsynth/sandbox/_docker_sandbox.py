"""One Docker sandbox: a workspace on the host that a fresh container mounts for every command.

A container that commands are executed into would save the start, but what a command leaves running there can hide
from a sweep of its processes; the end of a container's first process ends them all, by the kernel's own hand.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from ..errors import SandboxError, boundary
from ..runtime.contract import ExecResult, Limits, SandboxSpec
from . import _bwrap_args as arguments
from . import _docker_args as docker_arguments
from ._docker_args import Profile, Workspace, mountable
from ._docker_client import API
from ._docker_run import StartFailed, run
from ._layered import LayeredSandbox

_INIT = Path(__file__).with_name("_docker_init.sh")
_OWNERLESS_S = 60.0
"""How much longer than its limit a command may go on whose owner was killed."""


class Docker(NamedTuple):
    """How sandboxes are made here."""

    api: API
    profile: Profile
    overlay: bool


class DockerSandbox(LayeredSandbox):
    """Implements `envsynth.runtime.contract.Sandbox`."""

    def __init__(self, spec: SandboxSpec, docker: Docker, *, like: DockerSandbox | None = None) -> None:
        self._docker = docker
        self._started = False
        overlay = like._overlay if like is not None else docker.overlay
        super().__init__(spec, overlay=overlay, fill=like is None)

    def _twin(self) -> Self:
        return type(self)(self._spec, self._docker, like=self)

    def _always_links(self) -> bool:
        return True

    def _prepare(self, *, fill: bool) -> None:
        base = self._folder.path.resolve()
        self._overlay = self._overlay and mountable(base)
        super()._prepare(fill=fill)
        with boundary(SandboxError, "a sandbox cannot be prepared", where=str(base)):
            for name, text in docker_arguments.stubs(self._docker.profile.user).items():
                (base / "etc" / name).write_text(text)
            for folder in ("command", "homes/user", "var"):
                (base / folder).mkdir(parents=True)
            (base / "var" / "tmp").symlink_to("/tmp")
            shutil.copyfile(_INIT, base / "command" / "init.sh")

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
        environment = docker_arguments.variables(
            arguments.network_variables() if network else {}, self._spec.variables, variables or {}
        )
        words = docker_arguments.words(inside, limits.wall_s + _OWNERLESS_S, environment, command)
        with boundary(SandboxError, "a command could not be run", where=str(self._folder.path)):
            (self._folder.path / "command" / "words").write_bytes(words)
            try:
                return self._run(limits, stdin, network=network)
            except StartFailed as exc:
                if not self._recovered(exc.cause.lower()):
                    raise
                return self._run(limits, stdin, network=network)

    def _run(self, limits: Limits, stdin: bytes, *, network: bool) -> ExecResult:
        place = Workspace(
            folder=self._folder.path.resolve(),
            state=self._folder.state.resolve(),
            target=self.workdir,
            layers=self._layers if self._overlay else (),
            mounts=self._spec.mounts,
            covered=self._spec.covered,
        )
        body = docker_arguments.container(self._docker.profile, place, limits, network=network)
        ran = run(self._docker.api, body, limits, self._charge(limits), stdin)
        self._started = True
        self._folder.disk_bytes = ran.disk_bytes
        return ran.result

    def _recovered(self, cause: str) -> bool:
        """Whether copies may help where an overlay was refused."""
        if self._overlay and not self._started and ("overlay" in cause or "volume" in cause):
            self._overlay = False
            self._copy_layers()
            return True
        return False

    def close(self) -> None:
        """Free everything; safe to call twice."""
        # The kernel's own folder in there belongs to root.
        for name in ("work", "index"):
            with suppress(OSError):
                (self._folder.path / "mount" / name).rmdir()
        super().close()
