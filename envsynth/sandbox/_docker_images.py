"""Images: the base that every container starts from, and self-contained ones of an environment or a task.

Sandboxes need the base only, since they mount the rest. The others are for machines that have nothing but Docker.
Each is one layer on another: base, interpreter, environment, task; what is equal is stored once.
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from ..errors import ConfigError, SandboxError, boundary
from ._docker_client import API, image_id
from ._docker_owner import KIND, sweep

PARENT = "io.envsynth.parent"
KINDS = ("base", "interpreter", "environment", "task")
_MAKE_BASE_S = 1800.0
_PACKAGES = "python3,git,ca-certificates,patch,less,procps,file,make,tzdata,bzip2,xz-utils,unzip"
"""Programs that tests call; Python brings the libraries that any build of it links to."""
_LEFT_OUT = (
    "boot", "media", "mnt", "srv", "opt", "home", "etc/shadow*", "etc/gshadow*", "etc/hostname", "etc/resolv.conf",
    "var/cache", "var/log", "var/lib/apt", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info",
)  # fmt: skip


class Image(NamedTuple):
    """One image of ours."""

    reference: str
    kind: str
    """One of `KINDS`."""
    id: str
    bytes: int
    """With everything below it."""
    own_bytes: int
    """Without what its parent holds."""


class Part(NamedTuple):
    """One layer: host folders laid over each other at one place."""

    name: str
    kind: str
    folders: tuple[Path, ...]
    target: str
    settings: tuple[str, ...] = ()
    """Further lines of the recipe, such as the environment's variables."""
    left_out: tuple[str, ...] = ()
    """Patterns of paths, relative to the folders, that are not copied; `*` goes across folders."""


def import_base(api: API, archive: Path, reference: str) -> str:
    """Make a base image of the tar archive of a root file system; returns its id.

    Raises:
        ConfigError: there is no such archive.
        SandboxError: the daemon refuses it.
    """
    if not archive.is_file():
        raise ConfigError("there is no archive of a root file system", where=str(archive))
    name, _, tag = reference.partition(":")
    with boundary(SandboxError, "the base image cannot be imported", where=str(archive)):
        api.import_image(src=str(archive), repository=name, tag=tag or "latest", changes=[f"LABEL {KIND}=base"])
    return _made(api, reference)


def pull_base(api: API, source: str, reference: str) -> str:
    """Make a base image of one of a registry, named by digest, or of one that is already here; returns its id.

    Raises:
        ConfigError: it is not here, and its name holds no digest: what a tag names may change.
        SandboxError: it cannot be pulled.
    """
    if image_id(api, source) is None:
        if "@sha256:" not in source:
            raise ConfigError(
                "an image of a registry is named by its digest", where=source,
                next_step=f"docker pull {source} && docker inspect -f '{{{{.RepoDigests}}}}' {source}, then pass that",
            )  # fmt: skip
        with boundary(SandboxError, "the image cannot be pulled", where=source, next_step="check the connection"):
            api.pull(source)
    _build(api, f"FROM {source}\nLABEL {KIND}=base\n", reference)
    return _made(api, reference)


def bootstrap_base(api: API, reference: str) -> str:
    """Make a base image of this machine's own Debian or Ubuntu release with mmdebstrap; returns its id.

    It has the release's own Python, and the libraries that interpreters built on this machine link to.

    Raises:
        ConfigError: this is another system, or mmdebstrap is missing.
        SandboxError: the packages cannot be fetched.
    """
    release, mirror = _release(), _mirror()
    program = shutil.which("mmdebstrap")
    if program is None or release is None:
        raise ConfigError(
            "no base image can be made of this system's packages", where=platform.platform(),
            cause="mmdebstrap is not installed" if program is None else "neither Debian nor Ubuntu",
            next_step="`apt-get install mmdebstrap`, or `envsynth image build --base --from IMAGE@sha256:DIGEST`, or "
            "--from a tar archive of a root file system",
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="envsynth-base-") as folder:
        archive = Path(folder, "base.tar")
        removal = " ".join(f'"$1"/{place}' for place in _LEFT_OUT)
        command = [program, "--quiet", "--variant=apt", f"--include={_PACKAGES}", f"--customize-hook=rm -rf {removal}"]
        command += [release, str(archive), *([mirror] if mirror else [])]
        with boundary(SandboxError, "the base image cannot be made", where=release):
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_MAKE_BASE_S, check=False, stdin=subprocess.DEVNULL
            )
        if done.returncode != 0:
            cause = " ".join(done.stderr.split())[-400:]
            raise SandboxError("the base image cannot be made", where=release, cause=cause, retryable=True)
        return import_base(api, archive, reference)


def build(api: API, base: str, parts: Sequence[Part]) -> list[str]:
    """Make the images of the parts, each on the one before; returns their references.

    Raises:
        SandboxError: the daemon refuses.
    """
    made = []
    below = base
    for part in parts:
        reference = f"envsynth-{part.kind}:{_tag(part.name, below)}"
        if image_id(api, reference) is None:
            copies = "".join(f"COPY part{number} {part.target}\n" for number in range(len(part.folders)))
            settings = "".join(f"{line}\n" for line in part.settings)
            marks = f"LABEL {KIND}={part.kind} {PARENT}={below}\n"
            _build(api, f"FROM {below}\n{marks}{copies}{settings}", reference, part)
        made.append(reference)
        below = _made(api, reference)
    return made


def _tag(name: str, below: str) -> str:
    # The same environment on another base is another image.
    return f"{name[:12]}-{hashlib.sha256(below.encode()).hexdigest()[:8]}"


def listing(api: API) -> list[Image]:
    """Every image of ours, the base first.

    Raises:
        SandboxError: the daemon cannot be asked.
    """
    with boundary(SandboxError, "the images cannot be listed"):
        found = api.images(filters={"label": [KIND]})
    sizes = {image["Id"]: int(image["Size"]) for image in found}
    images = []
    for image in found:
        marks = image.get("Labels") or {}
        own = sizes[image["Id"]] - sizes.get(marks.get(PARENT, ""), 0)
        for reference in image.get("RepoTags") or ["<none>"]:
            images.append(Image(reference, marks[KIND], image["Id"], sizes[image["Id"]], own))
    order = {kind: number for number, kind in enumerate(KINDS)}
    return sorted(images, key=lambda image: (order.get(image.kind, len(KINDS)), image.reference))


class Pruned(NamedTuple):
    """What a clean-up removed."""

    leftovers: int
    """Containers and volumes of killed processes."""
    images: int
    bytes: int


def prune(api: API, *, every: bool) -> Pruned:
    """Remove what killed processes left, and images that lost their name; with `every` all images but the base.

    Raises:
        SandboxError: the daemon cannot be asked.
    """
    leftovers = sweep(api)
    count = size = 0
    for image in reversed(listing(api)):
        nameless = image.reference.startswith("<none>")
        if not (nameless or (every and image.kind != "base")):
            continue
        try:
            with boundary(SandboxError, "an image cannot be removed", where=image.reference):
                api.remove_image(image.id if nameless else image.reference)
        except SandboxError:
            continue  # in use, or the parent of one that is kept
        count += 1
        size += image.own_bytes
    return Pruned(leftovers, count, size)


def _build(api: API, recipe: str, reference: str, part: Part | None = None) -> None:
    with (
        boundary(SandboxError, "an image cannot be built", where=reference, next_step="check the daemon's free space"),
        _context(recipe, part) as context,
    ):
        for line in api.build(
            fileobj=context, custom_context=True, tag=reference, rm=True, forcerm=True, decode=True, network_mode="none"
        ):
            if "error" in line:
                raise SandboxError("an image cannot be built", where=reference, cause=str(line["error"]))


@contextmanager
def _context(recipe: str, part: Part | None) -> Iterator[IO[bytes]]:
    """What a build is sent: the recipe, and the part's folders."""
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            text = recipe.encode()
            head = tarfile.TarInfo("Dockerfile")
            head.size = len(text)
            archive.addfile(head, io.BytesIO(text))
            for number, folder in enumerate(part.folders if part else ()):
                archive.add(folder, f"part{number}", filter=_Filter(part.left_out if part else ()))
        file.seek(0)
        yield file


class _Filter:
    """Takes owners away, and what is left out."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(patterns)

    def __call__(self, member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        inside = member.name.partition("/")[2]
        if any(fnmatch.fnmatchcase(inside, pattern) for pattern in self._patterns):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member


def _made(api: API, reference: str) -> str:
    found = image_id(api, reference)
    if found is None:
        raise SandboxError("an image that was made is gone", where=reference, retryable=True)
    return found


def _release() -> str | None:
    """Code name of this machine's Debian or Ubuntu release."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    family = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    return release.get("VERSION_CODENAME") if family & {"debian", "ubuntu"} else None


def _mirror() -> str | None:
    """The first address among the machine's own package sources; None leaves the choice to mmdebstrap."""
    places = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.sources"))]
    for place in places:
        text = place.read_text("utf-8", "replace") if place.is_file() and os.access(place, os.R_OK) else ""
        found = re.search(r"^(?:deb\s+(?:\[[^\]]*\]\s*)?|URIs:\s*)(\S+)", text, re.M)
        if found:
            return found[1]
    return None
