"""Builds a project's wheel without network, and reads what is needed of it: metadata, names, generated files."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from envsynth.errors import SandboxError, boundary
from envsynth.languages.python.project import Project, strings
from envsynth.languages.python.uv import Unresolvable, resolve
from envsynth.models import FileMode, Recipe, Source, Tree, TreeEntry
from envsynth.protocols import Context
from envsynth.runtime.contract import Limits, Mount, SandboxSpec
from envsynth.runtime.interpreters import Interpreter
from envsynth.runtime.recipe import ensure_environment, environment_mounts, environment_variables

BUILD_SECONDS = 300.0
GENERATED_BYTES = 8 * 2**20
"""Largest generated file that is taken into the tree."""
_LEGACY = "setuptools.build_meta:__legacy__"
_METADATA_FILES = ("METADATA", "WHEEL", "entry_points.txt", "top_level.txt")


class Wheel(NamedTuple):
    """What a built wheel says."""

    metadata: str
    """Text of `METADATA`."""
    site: dict[str, bytes]
    """Files of the metadata folder, relative to the library folder."""
    names: tuple[str, ...]
    """Top-level import names, the one with the most files first."""
    files: dict[str, bytes]
    """Everything outside the metadata folder, by path in the wheel; large files left out."""


def build_wheel(
    project: Project, interpreter: Interpreter, *, newest: str, version: str, source: Source, context: Context
) -> Wheel | None:
    """Build the project's wheel in the sandbox; None where that cannot be done.

    The build requirements are installed from wheels beforehand, so the project's own code never sees the network.

    Args:
        project: the tree.
        interpreter: builds and will run it.
        newest: nothing published later is used for building.
        version: what tools that read versions from git are told.
        source: chooses the sandbox.
        context: the pipeline's services.
    """
    if not (project.has("pyproject.toml") or project.has("setup.py") or project.has("setup.cfg")):
        return None
    system = project.pyproject.get("build-system")
    table: dict[str, Any] = system if isinstance(system, dict) else {}
    requires = strings(table.get("requires")) or ["setuptools", "wheel"]
    config: dict[str, Any] = {"version": version}
    config |= {"backend": table.get("build-backend") or _LEGACY, "backend_path": strings(table.get("backend-path"))}
    if config["backend"] == _LEGACY:
        config["backend_path"] = [*config["backend_path"], "."]
    with boundary(SandboxError, "the project's wheel could not be built", where=source.uri):
        for _ in range(2):
            environment = _build_environment(requires, interpreter, newest, context)
            if environment is None:
                return None
            with tempfile.TemporaryDirectory(prefix="wheel-") as folder:
                _run_hook(project, environment, config, Path(folder), source=source, context=context)
                built = sorted(Path(folder).glob("*.whl"))
                if built:
                    wheel = read_wheel(built[0])
                    return wheel and with_version(wheel, version)
                asked = Path(folder, "requires.json")
                if not asked.is_file():
                    return None
                requires = requires + strings(json.loads(asked.read_text("utf-8")))
    return None


def _build_environment(requires: list[str], interpreter: Interpreter, newest: str, context: Context) -> Path | None:
    """An environment with the build requirements as of the date, else the newest ones; None where there are none."""
    if any(re.match(r"setuptools\b", line) for line in requires):
        requires = [*requires, "wheel"]
    for moment in (newest, ""):
        try:
            pins = resolve(requires, interpreter.path, moment)
        except Unresolvable:
            continue
        recipe = Recipe(language="python", interpreter=interpreter.version, requirements=pins, newest=moment)
        return ensure_environment(recipe.document(), context.blobs.get, context.cache_dir, note=context.note)
    return None


def _run_hook(
    project: Project, environment: Path, config: dict[str, Any], out: Path, *, source: Source, context: Context
) -> None:
    hook = Path(__file__).with_name("build_hook.py")
    sandbox = context.backend(source).open(
        SandboxSpec(
            layers=(context.materialise(project.tree),),
            mounts=(
                *environment_mounts(environment), Mount(hook, "/envsynth/build_hook.py"),
                Mount(out, "/envsynth-out", writable=True),
            ),
        )
    )  # fmt: skip
    try:
        command = [f"{sandbox.path('/env')}/bin/python", "-s", sandbox.path("/envsynth/build_hook.py")]
        variables = environment_variables(sandbox, {"roots": ["."], "variables": pretend_versions(config["version"])})
        variables.pop("PYTHONPATH")
        sandbox.exec(
            command, limits=Limits(wall_s=BUILD_SECONDS), variables=variables,
            stdin=json.dumps({**config, "out": sandbox.path("/envsynth-out")}).encode(),
        )  # fmt: skip
    finally:
        sandbox.close()


def pretend_versions(version: str) -> list[tuple[str, str]]:
    """Variables for build tools that would ask git for the version."""
    known = version or "0.0.0"
    return [
        ("SETUPTOOLS_SCM_PRETEND_VERSION", known), ("PBR_VERSION", known), ("PDM_BUILD_SCM_VERSION", known),
        ("POETRY_DYNAMIC_VERSIONING_BYPASS", known), ("UV_DYNAMIC_VERSIONING_BYPASS", known),
        ("FLIT_ROOT_INSTALL", "1"),
    ]  # fmt: skip


def read_wheel(path: Path) -> Wheel | None:
    """Read a wheel; None where it is not one."""
    site: dict[str, bytes] = {}
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                name = _installed_path(entry.filename)
                if entry.is_dir() or name is None:
                    continue
                folder, _, rest = name.partition("/")
                if folder.endswith(".dist-info"):
                    if rest in _METADATA_FILES:
                        site[name] = archive.read(entry)
                elif entry.file_size <= GENERATED_BYTES:
                    files[name] = archive.read(entry)
    except (zipfile.BadZipFile, OSError, NotImplementedError):
        return None
    described = [name for name in site if name.endswith("/METADATA")]
    if not described:
        return None
    metadata = site[described[0]].decode("utf-8", "replace").partition("\n\n")[0] + "\n"
    site[described[0]] = _without_readme(metadata).encode()
    folder = described[0].partition("/")[0]
    site[f"{folder}/INSTALLER"] = b"envsynth\n"
    site[f"{folder}/RECORD"] = "".join(f"{name},,\n" for name in sorted([*site, f"{folder}/RECORD"])).encode()
    return Wheel(metadata, site, _names(files), files)


def with_version(wheel: Wheel, version: str) -> Wheel:
    """The wheel under the given version, where its build tool looked for git and found no better than a stand-in."""
    found = re.search(r"^Version: (?:0\.0\.[01]|0\+|0\.1\.dev)\S*$", wheel.metadata, re.M)
    if found is None or not version:
        return wheel
    line = f"Version: {version}"
    old, new = found[0].encode(), line.encode()
    site = {
        path: content.replace(old, new, 1) if path.endswith("/METADATA") else content
        for path, content in wheel.site.items()
    }
    return wheel._replace(metadata=wheel.metadata.replace(found[0], line, 1), site=site)


def _installed_path(name: str) -> str | None:
    """Where a wheel's member goes below the library folder; None for scripts, headers and data."""
    if name.startswith("/") or ".." in name.split("/"):
        return None
    data = re.match(r"[^/]+\.data/(purelib|platlib)/(.+)", name)
    if data:
        return data[2]
    return None if re.match(r"[^/]+\.data/", name) else name


def _without_readme(metadata: str) -> str:
    """The headers without a folded description: a changed README is no other environment."""
    return re.sub(r"^Description:.*\n(?:[ \t].*\n)*", "", metadata, flags=re.M)


def _names(files: dict[str, bytes]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for path in files:
        top = re.split(r"[/.]", path, maxsplit=1)[0]
        if path.endswith((".py", ".so", ".pyi")):
            counts[top] = counts.get(top, 0) + 1
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def generated_files(wheel: Wheel, project: Project, roots: tuple[str, ...], context: Context) -> Tree:
    """Files of the wheel that the tree lacks, at the place beside the sources where they would be imported from."""
    entries = []
    for path, content in sorted(wheel.files.items()):
        places = [path if root == "." else f"{root}/{path}" for root in roots]
        if any(project.has(place) for place in places):
            continue
        top = path.partition("/")[0]
        place = next((place for place in places if project.has_folder(place[: -len(path)] + top)), None)
        if "/" in path and place is not None:
            digest = context.blobs.put(content)
            entries.append(TreeEntry(path=place, mode=FileMode.FILE, blob=digest, size=len(content)))
    return Tree(entries=tuple(entries))


def site_tree(site: dict[str, bytes], context: Context) -> Tree:
    """Keep files of the library folder as a tree."""
    return Tree(
        entries=tuple(
            TreeEntry(path=path, mode=FileMode.FILE, blob=context.blobs.put(content), size=len(content))
            for path, content in sorted(site.items())
        )
    )
