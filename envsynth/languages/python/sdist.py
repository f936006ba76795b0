"""Dependencies that exist only as source: built in the sandbox, with network and a cache of their own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from envsynth.errors import SandboxError, boundary
from envsynth.languages.python.uv import Unresolvable, compile_command, pins, resolve, uv_binary
from envsynth.models import Source
from envsynth.protocols import Context
from envsynth.runtime.contract import ExecResult, Limits, Mount, Sandbox, SandboxSpec
from envsynth.runtime.installer import failure
from envsynth.runtime.interpreters import Interpreter
from envsynth.runtime.recipe import ensure_environment, environment_mounts

INSTALL_SECONDS = 600.0
SITE_BYTES = 64 * 2**20
_SETTINGS = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "https_proxy", "http_proxy",
    "all_proxy", "no_proxy", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS",
    "UV_NATIVE_TLS", "UV_SYSTEM_CERTS",
)  # fmt: skip
"""How the user reaches the registry."""


class FromSource:
    """Resolves and installs with source distributions allowed, inside one kind of sandbox."""

    def __init__(self, interpreter: Interpreter, newest: str, source: Source, context: Context) -> None:
        self._interpreter, self._newest, self._source, self._context = interpreter, newest, source, context

    def resolve(self, requirements: Sequence[str]) -> tuple[tuple[str, ...], dict[str, bytes]]:
        """All pins, and the library files of those that have no wheel.

        Raises:
            Unresolvable: there is no solution, or one of them cannot be built.
            SandboxError: the registry cannot be reached, or the sandbox failed.
        """
        with (
            boundary(SandboxError, "source distributions could not be installed", where=self._source.uri),
            tempfile.TemporaryDirectory(prefix="sdists-") as folder,
        ):
            wanted, out = Path(folder, "wanted.in"), Path(folder, "out")
            wanted.write_text("".join(f"{line}\n" for line in requirements), "utf-8")
            out.mkdir()
            sandbox = self._open(wanted, out)
            try:
                found = self._compile(sandbox)
                unbuilt = [pin for pin in found if not self._has_wheel(pin)]
                if unbuilt:
                    self._install(sandbox, unbuilt)
            finally:
                sandbox.close()
            return found, _read_site(out)

    def _open(self, wanted: Path, out: Path) -> Sandbox:
        environment = ensure_environment(
            {
                "language": "python", "interpreter": self._interpreter.version, "requires": "", "requirements": [],
                "newest": "", "site": None,
            },
            self._context.blobs.get, self._context.cache_dir, note=self._context.note,
        )  # fmt: skip
        mounts = (
            *environment_mounts(environment), Mount(Path(uv_binary()), "/envsynth/uv"),
            Mount(wanted, "/envsynth/wanted.in"), Mount(out, "/envsynth-out", writable=True),
        )  # fmt: skip
        empty = wanted.parent / "empty"
        empty.mkdir()
        return self._context.backend(self._source).open(SandboxSpec(layers=(empty,), mounts=mounts))

    def _compile(self, sandbox: Sandbox) -> tuple[str, ...]:
        command = compile_command(sandbox.path("/envsynth/uv"), f"{sandbox.path('/env')}/bin/python", self._newest)
        return pins(self._run(sandbox, [*command, sandbox.path("/envsynth/wanted.in")]))

    def _install(self, sandbox: Sandbox, unbuilt: list[str]) -> None:
        command = [
            sandbox.path("/envsynth/uv"), "pip", "install", "--quiet", "--no-config", "--no-deps",
            "--python", f"{sandbox.path('/env')}/bin/python", "--target", sandbox.path("/envsynth-out"),
        ]  # fmt: skip
        moment = ["--exclude-newer", self._newest] if self._newest else []
        self._run(sandbox, [*command, *moment, *unbuilt])

    def _run(self, sandbox: Sandbox, command: list[str]) -> str:
        variables = registry_settings() | {"HOME": "/tmp", "UV_CACHE_DIR": "/tmp/uv-cache", "UV_NO_PROGRESS": "1"}
        variables |= {"PATH": f"{sandbox.path('/env')}/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        limits = Limits(wall_s=INSTALL_SECONDS, memory_bytes=4 * 2**30)
        result: ExecResult = sandbox.exec(command, limits=limits, variables=variables, network=True)
        if result.exit_code == 0:
            return result.stdout.decode("utf-8", "replace")
        said = (result.stderr + result.stdout).decode("utf-8", "replace")
        if result.ended_by != "exit":
            # A download that hangs is given up by uv itself, long before: this is a build beyond its limits.
            raise Unresolvable(f"ended by {result.ended_by}: {' '.join(said.split())[-300:]}")
        error = failure("source distributions were not installed", said)
        if error.retryable or "no space" in error.what:
            raise error
        raise Unresolvable(error.cause)

    def _has_wheel(self, pin: str) -> bool:
        try:
            # A pin alone: its dependencies are irrelevant, but are resolved from the same index.
            return bool(resolve([pin], self._interpreter.path, self._newest, alone=True))
        except Unresolvable:
            return False


def registry_settings() -> dict[str, str]:
    """The user's own index, proxy and certificate settings."""
    return {name: os.environ[name] for name in _SETTINGS if os.environ.get(name)}


def _read_site(folder: Path) -> dict[str, bytes]:
    """Installed files, scripts and byte code left out."""
    found: dict[str, bytes] = {}
    total = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file() or name.startswith(("bin/", ".")) or name.endswith(".pyc"):
            continue
        total += path.stat().st_size
        if total > SITE_BYTES:
            raise Unresolvable(f"distributions built from source exceed {SITE_BYTES // 2**20} MB")
        found[name] = path.read_bytes()
    return found
