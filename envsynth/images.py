"""Images for Docker: the base that sandboxes start from, and self-contained ones of an environment or a task."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from envsynth.catalog import Catalog
from envsynth.errors import ConfigError
from envsynth.models import Task
from envsynth.runtime.contract import JSON
from envsynth.runtime.recipe import (
    ENVIRONMENT,
    ensure_environment,
    environment_covers,
    environment_mounts,
    environment_variables,
)
from envsynth.runtime.trees import load_manifest, materialise
from envsynth.sandbox._docker_client import connect, image_id
from envsynth.sandbox._docker_images import Image, Part, bootstrap_base, build, import_base, listing, pull_base
from envsynth.sandbox.docker import BASE, DockerBackend

WORKSPACE = "/workspace"
_UNUSED = ("*.a", "*.opt-[12].pyc")
"""Of an interpreter: static libraries, and byte code for switches that nobody passes."""


class _Inside:
    """The places of an image."""

    workdir = WORKSPACE

    def path(self, target: str) -> str:
        """Where a mount target is found: where it says."""
        return target


class Wanted(NamedTuple):
    """What `image build` was asked for, with the folders to look in."""

    target: str
    catalog: Path
    cache: Path


def make_base(source: str) -> Image:
    """Make the base image.

    Args:
        source: an image's reference, or the path of a root file system's tar archive; empty: this machine's release.

    Raises:
        ConfigError, SandboxError: as the way of making it says.
    """
    daemon = connect()
    if not source:
        made = bootstrap_base(daemon.api, BASE)
    elif Path(source).is_file() or source.endswith((".tar", ".tar.gz", ".tgz", ".tar.xz")):
        made = import_base(daemon.api, Path(source), BASE)
    else:
        made = pull_base(daemon.api, source, BASE)
    return next(image for image in listing(daemon.api) if image.id == made)


def make_images(wanted: Wanted) -> list[Image]:
    """Make the images of an environment or a task; those that are there already are taken.

    Raises:
        ConfigError: nothing has that name, or there is no base image.
        SandboxError: the environment or an image cannot be made.
    """
    daemon = connect()
    base = image_id(daemon.api, DockerBackend().base)
    if base is None:
        raise ConfigError(
            "there is no base image", where=DockerBackend().base, next_step="envsynth image build --base"
        )  # fmt: skip
    made = build(daemon.api, base, _parts(wanted))
    return [image for image in listing(daemon.api) if image.reference in made]


def _parts(wanted: Wanted) -> list[Part]:
    found = sorted(path for path in (wanted.cache / "environments").glob(f"{wanted.target}*") if path.is_dir())
    if len(found) == 1 and len(wanted.target) >= 6:
        return _environment(found[0])
    if len(found) > 1 and len(wanted.target) >= 6:
        raise ConfigError("several environments begin so", where=wanted.target, next_step="give more of the name")
    if not wanted.catalog.is_file():
        raise ConfigError(
            "nothing has this name", where=wanted.target, cause=f"no such environment in {wanted.cache}, and there is "
            f"no catalog {wanted.catalog}", next_step="name the catalog with --catalog P",
        )  # fmt: skip
    with Catalog.open(wanted.catalog, read_only=True) as catalog:
        return _task(catalog.task(wanted.target), catalog, wanted.cache)


def _environment(environment: Path) -> list[Part]:
    own, *interpreters = environment_mounts(environment)
    covers = environment_covers(environment)
    parts = []
    for mount in interpreters:
        hidden = [str(Path(cover).relative_to(mount.target)) for cover in covers if _below(cover, mount.target)]
        left_out = (*(f"{folder}/*" for folder in hidden), *_UNUSED)
        programs = sorted((mount.source / "bin").glob("python3*"))
        stamp = [(path.name, path.lstat().st_size, path.lstat().st_mtime_ns) for path in programs]
        name = hashlib.sha256(json.dumps([mount.target, stamp]).encode()).hexdigest()
        parts.append(Part(name, "interpreter", (mount.source,), mount.target, left_out=left_out))
    settings = (f"ENV PATH={ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin VIRTUAL_ENV={ENVIRONMENT}",)
    return [*parts, Part(environment.name, "environment", (own.source,), own.target, settings)]


def _below(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _task(task: Task, catalog: Catalog, cache: Path) -> list[Part]:
    """The environment's parts, and the tree that an agent starts with: nothing hidden is in it."""
    document: JSON = task.document()
    workspace = document["candidate"]["environment"]
    environment = ensure_environment(workspace["recipe"], catalog.blobs.get, cache, note=lambda _: None)
    tree = materialise(load_manifest(workspace["tree"], catalog.blobs.get), catalog.blobs.get, cache)
    variables = environment_variables(_Inside(), workspace["command"])
    lines = (f"ENV {name}={json.dumps(value)}" for name, value in variables.items())
    settings = (*lines, f"WORKDIR {WORKSPACE}")
    return [*_environment(environment), Part(task.digest(), "task", (tree,), WORKSPACE, settings)]
