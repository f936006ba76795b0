"""Interpreter environments: their identity, how they are mounted, and how one is rebuilt from its pinned recipe.

Only wheels are installed, so no code of a third party runs on the host; what has no wheel is part of the recipe's
`site` files.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ..errors import ConfigError, SandboxError, boundary
from .contract import JSON, Mount
from .installer import install_wheels, make_venv
from .interpreters import installed_interpreters
from .scripts import entry_point_scripts, make_relocatable
from .seal import READY, break_if_damaged, is_whole, seal
from .trees import canonical_json

ENVIRONMENT = "/env"
_known_whole: set[Path] = set()
"""Environments that this process has looked over; once is enough, since they are read-only in use."""
_SYSTEM = (Path("/usr"), Path("/bin"), Path("/lib"))


def environment_id(recipe: JSON) -> str:
    """Identity of the environment that a recipe's document makes: the same as `Recipe.digest()`."""
    parts = {key: value for key, value in recipe.items() if key not in ("requires", "newest")}
    return hashlib.sha256(canonical_json(parts).encode("utf-8", "surrogatepass")).hexdigest()


def environment_mounts(environment: Path) -> tuple[Mount, ...]:
    """The environment at `/env`, and what its interpreter needs at the place it was built for."""
    return (Mount(environment, ENVIRONMENT), *(Mount(prefix, str(prefix)) for prefix in _prefixes(environment)))


_FOREIGN = ("site-packages", "dist-packages", "ensurepip/_bundled", "test/wheeldata")


def environment_covers(environment: Path) -> tuple[str, ...]:
    """Library folders of the interpreter itself: whatever is installed there is none of the task's business.

    A pack with its hidden tests may be among it, or a later release of the very project, as a wheel too.
    """
    return tuple(
        str(folder)
        for prefix in _prefixes(environment)
        for kind in _FOREIGN
        for folder in sorted(prefix.glob(f"lib*/python3*/{kind}"))
        if folder.is_dir() and not folder.is_symlink()
    )


def _prefixes(environment: Path) -> list[Path]:
    """Folders of the interpreter outside the environment.

    A virtual environment links to an interpreter elsewhere, perhaps through further links; each folder on that
    way is needed at its real path, unless it is part of the system that every sandbox sees.
    """
    prefixes: list[Path] = []
    hop = environment / "bin" / "python"
    while True:
        # Only the last part is followed here: each folder must appear under the name the link uses.
        if hop.is_symlink():
            target = Path(os.path.normpath(hop.parent / hop.readlink()))
        elif hop.resolve() != hop:
            target = hop.resolve()
        else:
            return prefixes
        hop = target
        prefix = hop.parent.parent
        inside = environment in (prefix, *prefix.parents)
        if not inside and prefix not in prefixes and prefix != Path("/") and not _is_system(prefix):
            prefixes.append(prefix)


def _is_system(prefix: Path) -> bool:
    return any(prefix == folder or folder in prefix.parents for folder in _SYSTEM)


class Places(Protocol):
    """Where things are found inside; every sandbox says so."""

    workdir: str
    """Absolute path of the workspace."""

    def path(self, target: str) -> str:
        """Where a mount target is found."""


def environment_variables(places: Places, command: JSON) -> dict[str, str]:
    """Variables for commands in a workspace: the environment's programs first, the source importable.

    Args:
        places: a sandbox, or where an image has things.
        command: document of a `TestCommand`.
    """
    environment = places.path(ENVIRONMENT)
    roots = [os.path.normpath(f"{places.workdir}/{root}") for root in command.get("roots", (".",))]
    if places.workdir not in roots:
        roots.append(places.workdir)
    return {
        "PATH": f"{environment}/bin:/usr/local/bin:/usr/bin:/bin",
        "VIRTUAL_ENV": environment,
        "PYTHONPATH": os.pathsep.join(roots),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/tmp",
        "USER": "user",
        "LOGNAME": "user",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        **{name: value for name, value in command.get("variables", ())},
    }


def ensure_environment(
    recipe: JSON, blobs: Callable[[str], bytes], cache_dir: Path, *, note: Callable[[str], None]
) -> Path:
    """The environment of a recipe, rebuilt where it is gone or damaged.

    Args:
        recipe: document of a `Recipe`.
        blobs: content by sha256, for the `site` files.
        cache_dir: environments are kept below it, by recipe.
        note: told one line before a long build.

    Raises:
        ConfigError: the interpreter is not installed.
        SandboxError: the registry cannot be reached, or a pinned distribution is gone.
    """
    name = environment_id(recipe)
    place = cache_dir / "environments" / name
    with boundary(SandboxError, "the environment cannot be built", where=str(place)):
        if not _is_usable(place):
            with _lock(place):
                if not _is_usable(place):
                    _build_at(place, recipe, blobs, note)
    return place


def look_closely(environment: Path) -> str:
    """Read an environment in which nothing starts; a damaged one is built again by the next who asks for it.

    Returns:
        What to add to the trouble, or nothing.
    """
    damaged = (environment / READY).is_file() and break_if_damaged(environment)
    return "; its environment was damaged and is built again next time" if damaged else ""


def _is_usable(place: Path) -> bool:
    if place in _known_whole:
        return (place / READY).is_file()
    if is_whole(place):
        _known_whole.add(place)
        return True
    return False


def _build_at(place: Path, recipe: JSON, blobs: Callable[[str], bytes], note: Callable[[str], None]) -> None:
    name = place.name
    if place.exists():
        if (place / READY).is_file():
            note(f"environment {name[:12]} is damaged and is built again")
        shutil.rmtree(place)
    for left_over in place.parent.glob(f"{name[:12]}-*"):  # of a killed process; others are kept out by the lock
        shutil.rmtree(left_over, ignore_errors=True)
    python = _interpreter(str(recipe["interpreter"]))
    count = len(recipe["requirements"])
    note(f"building environment {name[:12]}: Python {recipe['interpreter']}, pinned distributions: {count}")
    scratch = Path(tempfile.mkdtemp(prefix=f"{name[:12]}-", dir=place.parent))
    try:
        _build(recipe, blobs, python, scratch)
        scratch.chmod(0o755)
        scratch.rename(place)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    _known_whole.add(place)


def _build(recipe: JSON, blobs: Callable[[str], bytes], python: Path, folder: Path) -> None:
    files = json.loads(blobs(recipe["site"]))["entries"] if recipe.get("site") else []
    site_projects = {
        _plain(entry["path"].partition("-")[0]) for entry in files if entry["path"].endswith(".dist-info/METADATA")
    }
    pins = [pin for pin in recipe["requirements"] if _plain(pin.partition("==")[0]) not in site_projects]
    make_venv(python, folder)
    if pins:
        install_wheels(folder, pins)
    (site,) = folder.glob("lib/python3*/site-packages")
    for entry in files:
        target = site / entry["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(blobs(entry["blob"]))
        target.chmod(0o755 if entry["mode"] == "executable" else 0o644)
    entry_point_scripts(site, folder / "bin", {entry["path"].partition("/")[0] for entry in files})
    make_relocatable(folder / "bin")
    _compile(folder)
    seal(folder, environment_id(recipe))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def _compile(folder: Path) -> None:
    """Write byte code, since the environment is read-only in use; files of other Python versions may fail."""
    subprocess.run(
        [str(folder / "bin/python"), "-I", "-m", "compileall", "-q", "-q", "-j", "0", str(folder / "lib")],
        capture_output=True, timeout=600, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _interpreter(version: str) -> Path:
    known = {one.version: one.path for one in installed_interpreters()}
    if version not in known:
        raise ConfigError(
            f"Python {version} is not installed", where=f"recipe for Python {version}",
            cause=f"found {', '.join(known) or 'none'}; running {sys.version.split()[0]}",
            next_step=f"install it (`uv python install {version}`, pyenv or the system's package), then try again",
        )  # fmt: skip
    return known[version]


@contextmanager
def _lock(place: Path) -> Iterator[None]:
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f"{place.name}.lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
