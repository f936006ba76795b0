"""The arguments of bubblewrap: what a command inside sees of the host."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

HOME = "/home/user"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BASE_VARIABLES = {
    "HOME": HOME, "PATH": PATH, "LANG": "C.UTF-8", "USER": "user", "LOGNAME": "user", "SHELL": "/bin/sh",
}  # fmt: skip
CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
)  # fmt: skip
STUBS = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    "group": "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
"""Files of /etc that are ours, not the host's."""

_SHARED_MEMORY_BYTES = 64 * 2**20
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "ld.so.cache", "alternatives", "localtime", "os-release", "mime.types", "services", "protocols", "ssl/certs",
    "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "crypto-policies", "python3*",
    "perl", "java*",
)  # fmt: skip
_OTHER = ("/nix/store", "/run/current-system/sw", "/gnu/store")
_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
)  # fmt: skip
_CERTIFICATE_FOLDERS = ("/usr/", "/etc/ssl/certs/", "/etc/pki/tls/certs/", "/etc/pki/ca-trust/extracted/")
"""Already inside."""
_PROC_FOLDERS = ("acpi", "asound", "scsi", "driver", "dynamic_debug", "pressure")
_MASK = "/dev/null"
_LIBRARIES = (
    *(
        f"usr/{place}lib*/python3*/{kind}"
        for place in ("", "local/")
        for kind in ("site-packages", "dist-packages", "ensurepip/_bundled", "test/wheeldata")
    ),
    "usr/share/python-wheels",
)
"""What is installed for the host's own interpreters, and the wheels they bring along: some hold popular projects."""


def isolation(*, network: bool, disable_nesting: bool) -> list[str]:
    """Namespaces and privileges."""
    args = ["--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1"]
    if network:
        args.append("--share-net")
    if disable_nesting:
        args.append("--disable-userns")
    return [*args, "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--clearenv"]


@cache
def system() -> tuple[str, ...]:
    """The host's programs and libraries, read-only, and private kernel file systems."""
    args = ["--ro-bind", "/usr", "/usr"]
    args += _hidden_libraries()
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            args += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            args += ["--ro-bind", str(path), str(path)]
    args += ["--perms", "0755", "--dir", "/etc", "--perms", "0755", "--dir", "/home"]
    for pattern in _ETC:
        for path in sorted(Path("/etc").glob(pattern)):
            args += _etc(path)
    for other in _OTHER:
        if Path(other).exists():
            args += ["--ro-bind", other, other]
    args += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", str(_SHARED_MEMORY_BYTES)]
    args += ["--tmpfs", "/dev/shm", "--dir", "/sys", "--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp"]
    return (*args, *_proc())


def _hidden_libraries() -> list[str]:
    """Cover what is installed for the system's own Python: a pack with its hidden tests may be among it."""
    folders = [folder for pattern in _LIBRARIES for folder in sorted(Path("/").glob(pattern))]
    return [
        word
        for folder in folders
        if folder.is_dir() and not folder.is_symlink()
        for word in ("--tmpfs", str(folder), "--remount-ro", str(folder))
    ]


def _etc(path: Path) -> list[str]:
    if not _public(path):
        return []
    real = path.resolve()
    if real.is_relative_to("/usr"):
        return ["--symlink", str(real), str(path)]
    return ["--ro-bind", str(real), str(path)]


def _proc() -> list[str]:
    """Cover what the kernel lets root write or read by ownership alone: a root user's sandbox is mapped to root."""
    args = ["--ro-bind", "/proc/sys", "/proc/sys"]
    for name in _PROC_FOLDERS if os.geteuid() == 0 else ("pressure",):
        if Path("/proc", name).is_dir():
            args += ["--tmpfs", f"/proc/{name}", "--remount-ro", f"/proc/{name}"]
    if os.geteuid() != 0:
        return args
    for path in sorted(Path("/proc").iterdir()):
        if not path.is_symlink() and path.is_file():
            mode = path.stat().st_mode
            if mode & 0o222 or not mode & 0o004:
                args += ["--ro-bind", _MASK, str(path)]
    return args


def _public(path: Path) -> bool:
    """Whether any user of the host may read it: a root user's sandbox reads as root."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return bool(mode & (stat.S_IROTH if not stat.S_ISDIR(mode) else stat.S_IXOTH))


def network_files() -> list[str]:
    """Name resolution and certificates of the host."""
    args = []
    for name in ("resolv.conf", "hosts"):
        path = Path("/etc", name)
        if path.exists():
            args += ["--ro-bind", str(path.resolve()), str(path)]
    bundle = certificates()
    if bundle is not None and not str(bundle).startswith(_CERTIFICATE_FOLDERS):
        args += ["--ro-bind", str(bundle.resolve()), str(bundle)]
    return args


@cache
def certificates() -> Path | None:
    """The host's bundle of certificate authorities."""
    named = os.environ.get("SSL_CERT_FILE")
    for path in ([Path(named)] if named else []) + [Path(known) for known in _CERTIFICATES]:
        if path.is_absolute() and path.is_file():
            return path
    return None


def network_variables() -> dict[str, str]:
    """Variables that lead the usual programs to the certificates."""
    bundle = certificates()
    return dict.fromkeys(CERTIFICATE_VARIABLES, str(bundle)) if bundle else {}


def environment(*variables: Mapping[str, str]) -> list[str]:
    """Arguments that set the environment; later mappings win."""
    merged: dict[str, str] = {}
    for mapping in variables:
        merged.update(mapping)
    args = []
    for name, value in merged.items():
        args += ["--setenv", name, value]
    return args


def overlay(layers: Sequence[str], upper: str, work: str, target: str) -> list[str]:
    """A writable overlay; layers the lowest first."""
    args = []
    for layer in layers:
        args += ["--overlay-src", layer]
    return [*args, "--overlay", upper, work, target]


def packed(args: Iterable[str]) -> bytes:
    """The form that `--args` reads.

    Raises:
        ValueError: an argument holds a NUL byte.
    """
    args = list(args)
    if any("\0" in arg for arg in args):
        raise ValueError("an argument holds a NUL byte")
    return b"".join(os.fsencode(arg) + b"\0" for arg in args)
