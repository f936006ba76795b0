"""The generator: leads from a repository's history, candidates from its commits."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator

from envsynth.cache import Cache
from envsynth.errors import GeneratorError, boundary
from envsynth.generators.repository.candidates import LANGUAGE, Work
from envsynth.generators.repository.clones import Clones, without_password
from envsynth.generators.repository.config import DEFAULT_LIMIT, Settings, read_settings
from envsynth.generators.repository.drill import Drilled, drill
from envsynth.generators.repository.gitdir import GitDir
from envsynth.generators.repository.history import Scanned, read_commit, scan
from envsynth.generators.repository.roles import RoleBook
from envsynth.generators.repository.split import Split, TreeReader, split
from envsynth.models import Candidate, Dropped, Lead, Source, digest_of
from envsynth.protocols import Context

_KINDS = {
    "submodule": "submodules", "lfs": "files kept in Git LFS", "odd_path": "paths that are not UTF-8",
    "symlink_out": "links that lead out of the repository",
}  # fmt: skip


class Repository:
    """Tasks mined from a Python repository's history."""

    name = "repository"
    version = "2"

    def __init__(self) -> None:
        self._readers: dict[str, TreeReader] = {}
        self._noted: set[str] = set()

    def check(self, source: Source) -> None:
        """Read the options.

        Raises:
            ConfigError: one is unknown or has a bad value.
        """
        read_settings(source)

    # --- plan ----------------------------------------------------------------------------------------------

    def plan(self, source: Source, context: Context) -> Iterator[Lead | Dropped]:
        """Every scanned commit, newest first: a lead, or dropped with its reason.

        `limit` counts leads; the scan ends with the last one.

        Raises:
            ConfigError: an option of the source is wrong.
            SourceError: the repository cannot be read.
            SandboxError: its host is at fault, or the disk is full.
        """
        settings = read_settings(source)
        language = context.language(LANGUAGE)
        role = RoleBook(language.roles())
        git, revision = self._open(source, settings, context, refresh=True)
        key = digest_of([revision, settings.document(), [rule.document() for rule in role.rules], self.version])

        def look() -> str:
            with boundary(GeneratorError, "the history cannot be read", where=without_password(source.location)):
                return json.dumps([_project_name(git, revision, source), scan(git, revision, settings, role)])

        name, rows = json.loads(context.remember("history", key, look))
        digest = settings.work_digest(language.name, language.version)
        left = source.options.limit or DEFAULT_LIMIT
        for index, row in enumerate(rows):
            commit = Scanned(*row)
            lead = Lead(
                generator=self.name, generator_version=self.version, source=source.uri, name=name, revision=revision,
                strategy="history", ref=commit.oid, title=commit.title[:200], seed=source.options.seed, index=index,
                settings=digest,
            )  # fmt: skip
            if commit.reason:
                yield Dropped(lead=lead, reason=commit.reason, detail=commit.detail)
                continue
            yield lead
            left -= 1
            if not left:
                return

    # --- develop -------------------------------------------------------------------------------------------

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        """Turn a commit into a candidate.

        Raises:
            SandboxError: the environment failed; the lead is owed another try.
        """
        settings = read_settings(source)
        rules = context.language(LANGUAGE).roles()
        git, _ = self._open(source, settings, context, refresh=False, revision=lead.ref)
        where = f"{without_password(source.location)}@{lead.ref[:12]}"
        with boundary(GeneratorError, "the commit cannot be read", where=where):
            commit = read_commit(git, lead.ref)
            parts = split(self._reader(git, context), commit, rules)
            drilled = drill(git, commit.oid, parts.role, Cache(context.cache_dir))
        self._note_left_out(parts, source, context)
        dropped = _unfit(lead, parts, drilled)
        if dropped is not None:
            return dropped
        return Work(lead, source, context, settings, git, commit, parts, drilled).candidate()

    def _open(
        self, source: Source, settings: Settings, context: Context, *, refresh: bool, revision: str | None = None
    ) -> tuple[GitDir, str]:
        clones = Clones(context.cache_dir, timeout=settings.timeout, offline=context.offline)
        return clones.open(source.location, revision or source.revision, refresh=refresh)

    def _reader(self, git: GitDir, context: Context) -> TreeReader:
        key = str(git.path)
        if key not in self._readers:
            self._readers[key] = TreeReader(git, context.blobs)
        return self._readers[key]

    def _note_left_out(self, parts: Split, source: Source, context: Context) -> None:
        """One line for each kind of path that no tree can hold, once."""
        for kind, words in _KINDS.items():
            paths = [entry.path.decode("utf-8", "backslashreplace") for entry in parts.left_out if entry.kind == kind]
            key = f"{source.location}:{kind}"
            if paths and key not in self._noted:
                self._noted.add(key)
                shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
                context.note(f"{without_password(source.location)}: {words} are left out of its trees: {shown}")


def _unfit(lead: Lead, parts: Split, drilled: Drilled) -> Dropped | None:
    """What a closer look says against a commit."""
    if parts.touched_left_out:
        entry = parts.touched_left_out[0]
        return Dropped(lead=lead, reason=f"touches_{entry.kind}", detail=entry.path.decode("utf-8", "backslashreplace"))
    if not parts.changes.entries and not parts.removed:
        return Dropped(lead=lead, reason="no_source_touched", detail="nothing that a solution may change")
    if drilled.same_code:
        return Dropped(lead=lead, reason="formatting_only", detail="the code means the same as before")
    return None


def _project_name(git: GitDir, revision: str, source: Source) -> str:
    """What the project calls itself, else the last part of its location, as the first part of task ids."""
    name = ""
    with boundary(GeneratorError, "the project's name cannot be read", where=without_password(source.location)):
        try:
            document = tomllib.loads(git.text(revision, "pyproject.toml") or "")
            for table in (document.get("project"), document.get("tool", {}).get("poetry")):
                name = name or str((table or {}).get("name", ""))
        except (tomllib.TOMLDecodeError, AttributeError):
            name = ""
        if not name:
            found = re.search(r"^name\s*=\s*([\w.-]+)\s*$", git.text(revision, "setup.cfg") or "", re.M)
            found = found or re.search(r"\bname\s*=\s*['\"]([\w.-]+)['\"]", git.text(revision, "setup.py") or "")
            name = found[1] if found else ""
    parts = [part for part in re.split(r"[/\\:]", source.location.rstrip("/")) if part not in ("", ".git")]
    name = name or (parts[-1].removesuffix(".git").removesuffix(".bundle") if parts else "")
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "repository"
