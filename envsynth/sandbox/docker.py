"""Sandboxes made of Docker containers: the same base image everywhere, and any OCI runtime, such as gVisor's.

What is mounted from this machine is immutable and content-addressed (layers, environments), so a container costs
no copy and no image of its own. The daemon must therefore run on this machine; a probe says so where it does not.

Containers have the daemon's own system call filter. The API takes another profile only in place of that one, never
additions to it, so the calls that bubblewrap sandboxes are refused on top (`_seccomp`) are not refused here: what runs
in one container may leave a note for the next in the page cache of the files that both mount.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import ClassVar, NamedTuple

from ..errors import SandboxError, SandboxUnavailable
from ..runtime.contract import Limits, SandboxSpec
from ._docker_args import Profile
from ._docker_client import Daemon, connect, image_id
from ._docker_owner import sweep_now_and_then
from ._docker_sandbox import Docker, DockerSandbox
from ._files import remove_tree

__all__ = ["DockerBackend"]

BASE = "envsynth-base:latest"
"""The base image that `envsynth image build --base` makes."""
_PROBE_LIMITS = Limits(wall_s=60.0, output_bytes=2**16)
# Reading, replacing, removing, and a folder made anew over an old one; and the libraries to be covered.
_PROBE = """
cat file && echo new >file && rm -r folder gone && mkdir folder || exit 1
for place in /usr/lib*/python3*/*-packages /usr/local/lib*/python3*/*-packages /usr/share/python-wheels \
    /usr/lib*/python3*/ensurepip/_bundled /usr/local/lib*/python3*/ensurepip/_bundled \
    /usr/lib*/python3*/test/wheeldata /usr/local/lib*/python3*/test/wheeldata; do
    [ -d "$place" ] && [ ! -L "$place" ] && echo "$place"
done
exit 0
"""
_CHANGED = [("file", "present"), ("folder/inside", "removed"), ("gone", "removed")]


class Found(NamedTuple):
    """A daemon that can make sandboxes here."""

    daemon: Daemon
    profile: Profile
    overlay: bool


class DockerBackend:
    """Opens Docker sandboxes.

    Args:
        runtime: name of an OCI runtime that the daemon knows, such as `runsc`; empty: `$ENVSYNTH_DOCKER_RUNTIME`, else
            the daemon's default.
        base: reference of the base image; empty: `$ENVSYNTH_DOCKER_BASE`, else the one that envsynth makes.
        overlay: whether overlays are used where they work; else the layers are copied.
    """

    name = "docker"
    isolates = True
    warning = ""
    _known: ClassVar[dict[tuple[int, str, str, bool], Found | str]] = {}

    def __init__(self, runtime: str = "", *, base: str = "", overlay: bool = True) -> None:
        self.runtime = runtime or os.environ.get("ENVSYNTH_DOCKER_RUNTIME", "")
        self.base = base or os.environ.get("ENVSYNTH_DOCKER_BASE", "") or BASE
        self._overlay = overlay
        if self.runtime:
            self.name = f"docker:{self.runtime}"

    def unavailable(self) -> str | None:
        """Why Docker does not work here, with what to do; None when it works. Asked once per process."""
        found = self._find()
        return found if isinstance(found, str) else None

    def open(self, spec: SandboxSpec) -> DockerSandbox:
        """A fresh sandbox.

        Raises:
            SandboxUnavailable: Docker does not work here.
            SandboxError: a layer or mount is missing, or the scratch folder cannot be written.
        """
        found = self._find()
        if isinstance(found, str):
            raise SandboxUnavailable(f"{self.name} does not work here", cause=found)
        sweep_now_and_then(found.daemon.api)
        return DockerSandbox(spec, Docker(found.daemon.api, found.profile, found.overlay))

    def explain(self) -> str:
        """One line for people: what was found and how sandboxes will be made."""
        found = self._find()
        if isinstance(found, str):
            return found
        version = found.daemon.information.get("ServerVersion", "")
        usual = str(found.daemon.information.get("DefaultRuntime", ""))
        runtime = self.runtime or usual
        # containerd lists its own shims among the runtimes.
        known = sorted(name for name in found.daemon.information.get("Runtimes") or {} if "." not in name)
        others = [f"docker:{name}" for name in known if name != runtime]
        layers = (
            "overlays"
            if found.overlay
            else "copies of the layers (overlays need root, or a rootless daemon, and a file system that takes them)"
        )
        base = f"{self.base} ({found.profile.base.removeprefix('sha256:')[:12]})"
        said = f"engine {version} at {found.daemon.address}, runtime {runtime}, base {base}, with {layers}"
        return f"{said}; also {', '.join(others)}" if others else said

    def _find(self) -> Found | str:
        key = (os.getpid(), self.runtime, self.base, self._overlay)
        if key not in self._known:
            try:
                self._known[key] = self._look()
            except SandboxError as exc:
                self._known[key] = str(exc)
        return self._known[key]

    def _look(self) -> Found:
        """Look for all that a sandbox needs, and make one.

        Raises:
            SandboxError: something is missing, with what to do.
        """
        daemon = connect()
        if daemon.information.get("OSType") != "linux":
            raise SandboxError("the Docker daemon does not run Linux containers", where=daemon.address)
        runtimes = daemon.information.get("Runtimes") or {}
        if self.runtime and self.runtime not in runtimes:
            raise SandboxError(
                f"the Docker daemon knows no runtime {self.runtime!r}",
                cause=f"it knows {', '.join(sorted(name for name in runtimes if '.' not in name))}",
                next_step=f"install it (gVisor: `runsc install`, then restart the daemon), or name it in "
                f"/etc/docker/daemon.json under runtimes as {self.runtime!r}",
            )  # fmt: skip
        base = image_id(daemon.api, self.base)
        if base is None:
            step = "envsynth image build --base" if self.base == BASE else f"docker pull {self.base}"
            raise SandboxError("there is no base image", where=self.base, next_step=step)
        user = "0:0" if daemon.rootless else f"{os.geteuid()}:{os.getegid()}"
        security = ("label=disable",) if daemon.secured_by("selinux") else ()
        profile = Profile(base, user, self.runtime, security, ())
        return self._try(daemon, profile)

    def _try(self, daemon: Daemon, profile: Profile) -> Found:
        """Make a sandbox and look at its changes from here, with an overlay and else with copies."""
        causes: list[str] = []
        # The kernel's own folder of an overlay belongs to whom the daemon runs as: nobody else could remove it.
        removable = os.geteuid() == 0 or daemon.rootless
        for overlay in (True, False) if self._overlay and removable else (False,):
            place = Path(tempfile.mkdtemp(prefix="envsynth-probe-"))
            try:
                covered, cause = _probe(place, Docker(daemon.api, profile, overlay))
            finally:
                remove_tree(place)
            if not cause:
                return Found(daemon, profile._replace(covered=covered), overlay)
            causes.append(cause)
        raise SandboxError(
            "a container with this machine's files does not work", where=daemon.address, cause=causes[-1],
            next_step="use a daemon on this machine: a remote one, or one in a virtual machine that shares no folders, "
            "is not supported",
        )  # fmt: skip


def _probe(place: Path, docker: Docker) -> tuple[tuple[str, ...], str]:
    """The base image's library folders, and why the sandbox does not do what it must; empty when it does."""
    layer = place / "layer"
    (layer / "folder").mkdir(parents=True)
    for name in ("file", "gone", "folder/inside"):
        (layer / name).write_text("old\n")
    sandbox = DockerSandbox(SandboxSpec((layer,), scratch=place / "scratch"), docker)
    try:
        result = sandbox.exec(["sh", "-c", _PROBE], limits=_PROBE_LIMITS)
        said = result.stdout.decode("utf-8", "replace").splitlines()
        if result.exit_code != 0 or said[:1] != ["old"]:
            return (), " ".join(result.stderr.decode("utf-8", "replace").split())[-300:] or "its workspace is empty"
        if [tuple(change) for change in sandbox.changes()] != _CHANGED:
            return (), "what a container changes is not found on this machine"
        if docker.overlay and not sandbox.uses_overlay:
            return (), "overlays are refused"
        return tuple(said[1:]), ""
    except SandboxError as exc:
        return (), exc.cause or str(exc)
    finally:
        sandbox.close()
