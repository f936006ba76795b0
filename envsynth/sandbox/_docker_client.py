"""The connection to a Docker daemon, made when it is first needed. The only file that imports the SDK."""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SandboxError, boundary

API = Any
"""A `docker.APIClient`. The SDK has no types."""

TIMEOUT_S = 60.0
"""Of one answer of the daemon."""
_SOCKET = "/var/run/docker.sock"


class Daemon(NamedTuple):
    """A daemon that answers."""

    api: API
    address: str
    information: dict[str, Any]
    """What `docker info` says."""

    @property
    def rootless(self) -> bool:
        """Whether it runs as an ordinary user, who is then user 0 inside."""
        return self.secured_by("rootless")

    def secured_by(self, name: str) -> bool:
        """Whether a security option such as `selinux` is on."""
        options = self.information.get("SecurityOptions") or []
        return any(f"name={name}" in str(option).split(",") for option in options)


_connected: dict[int, Daemon] = {}
"""By process: a fork must not share its parent's connections."""


def connect() -> Daemon:
    """The daemon of `$DOCKER_HOST`, of the system's socket, or of the user's own.

    Raises:
        SandboxError: there is none, with what to do in `next_step`.
    """
    process = os.getpid()
    if process not in _connected:
        _connected[process] = _connect()
    return _connected[process]


def _connect() -> Daemon:
    try:
        import docker
    except ImportError:
        raise SandboxError(
            "the Python package docker is not installed", next_step="pip install docker", retryable=False
        ) from None
    address = os.environ.get("DOCKER_HOST") or _usual_address()
    try:
        with boundary(SandboxError, "no Docker daemon answers", where=address):
            _knock(address)
            secured = {**docker.utils.kwargs_from_env(), "base_url": address}
            client: API = docker.APIClient(**secured, version="auto", timeout=TIMEOUT_S)
            return Daemon(client, address, client.info())
    except SandboxError as error:
        raise _no_answer(address, error.__cause__ or error) from None


def _knock(address: str) -> None:
    """Fail early where nobody listens: the SDK would leave its socket open."""
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(TIMEOUT_S)
            door.connect(address.removeprefix("unix://"))


def _usual_address() -> str:
    own = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}", "docker.sock")
    return f"unix://{own if own.exists() and not os.access(_SOCKET, os.W_OK) else _SOCKET}"


def _no_answer(address: str, exc: BaseException) -> SandboxError:
    """Say which of the usual causes it is that no daemon answers."""
    said = repr(exc)
    place = Path(address.removeprefix("unix://")) if address.startswith("unix://") else None
    if "PermissionError" in said:
        cause, step = "this user may not use its socket", "`sudo usermod -aG docker $USER`, then log in again"
    elif place is not None and shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        cause = "Docker is not installed" if not place.exists() else "nobody listens there"
        step = "install it (Debian, Ubuntu: `apt-get install docker.io`) and start it"
    elif place is not None:
        cause, step = "it is not running", "`systemctl start docker`, or as root `dockerd &`"
    else:
        cause, step = " ".join(str(exc).split())[-200:], "check DOCKER_HOST"
    return SandboxError("no Docker daemon answers", where=address, cause=cause, next_step=step, retryable=True)


def not_found(error: BaseException | None) -> bool:
    """Whether an error of the SDK says that there is no such thing."""
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None) == 404


def image_id(api: API, reference: str) -> str | None:
    """The content address of an image that is there; None where it is not.

    Raises:
        SandboxError: the daemon cannot be asked.
    """
    try:
        with boundary(SandboxError, "an image cannot be looked up", where=reference):
            return str(api.inspect_image(reference)["Id"])
    except SandboxError as error:
        if not_found(error.__cause__):
            return None
        raise


def discard(api: API, container: str) -> None:
    """Kill and remove a container with its volumes; one that is gone is fine."""
    with suppress(SandboxError), boundary(SandboxError, "a container cannot be removed", where=container[:12]):
        api.remove_container(container, v=True, force=True)
