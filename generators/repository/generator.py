"""The generator: leads from a repository's history and functions, candidates from them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator

from envsynth.cache import Cache
from envsynth.errors import GeneratorError, boundary
from envsynth.generators.repository.authored import author_of, keyed
from envsynth.generators.repository.breaking import Revision, breakable_functions, broken_candidate, in_turn
from envsynth.generators.repository.candidates import LANGUAGE, Work
from envsynth.generators.repository.clones import Clones, without_password
from envsynth.generators.repository.config import (
    DEFAULT_LIMIT,
    DEFAULT_STRATEGIES,
    Settings,
    read_settings,
)
from envsynth.generators.repository.drill import Drilled, drill
from envsynth.generators.repository.gitdir import GitDir
from envsynth.generators.repository.history import Scanned, read_commit, scan
from envsynth.generators.repository.lm_bugs import LM_STRATEGIES, require_author
from envsynth.generators.repository.retold import rekeyed, rewriter_of
from envsynth.generators.repository.roles import RoleBook
from envsynth.generators.repository.split import Split, TreeReader, split
from envsynth.models import Candidate, Dropped, Lead, Source, digest_of
from envsynth.protocols import Context

_KINDS = {
    "submodule": "submodules", "lfs": "files kept in Git LFS", "odd_path": "paths that are not UTF-8",
    "symlink_out": "links that lead out of the repository",
}  # fmt: skip


class Repository:
    """Tasks from a Python repository: mined from its history, or made by breaking its functions."""

    name = "repository"
    version = "2"
    models = ("author",)

    def __init__(self) -> None:
        self._readers: dict[str, TreeReader] = {}
        self._noted: set[str] = set()

    def check(self, source: Source) -> None:
        """Read the options.

        Raises:
            ConfigError: one is unknown or has a bad value.
        """
        read_settings(source)

    def asks(self, lead: Lead, source: Source) -> tuple[str, ...]:
        """Roles of models that are asked for a lead."""
        settings = read_settings(source)
        told = settings.author != "deterministic" or settings.rewrite
        return ("author",) if told or lead.strategy in LM_STRATEGIES else ()

    # --- plan ----------------------------------------------------------------------------------------------

    def plan(self, source: Source, context: Context) -> Iterator[Lead | Dropped]:
        """The leads of each strategy in turn: commits, newest first, and functions; or dropped with the reason.

        `limit` counts leads; the scan ends with the last one.

        Raises:
            ConfigError: an option of the source is wrong, or a model is needed and there is none.
            SourceError: the repository cannot be read.
            SandboxError: its host is at fault, or the disk is full.
        """
        settings = read_settings(source)
        strategies = tuple(dict.fromkeys(source.options.strategies)) or DEFAULT_STRATEGIES
        for strategy in set(strategies) & set(LM_STRATEGIES):
            require_author(strategy, source, context)
        language = context.language(LANGUAGE)
        git, revision = self._open(source, settings, context, refresh=True)
        blank = Lead(
            generator=self.name, generator_version=self.version, source=source.uri, name="repository",
            revision=revision, strategy="", ref="", seed=source.options.seed, index=0,
            settings=settings.work_digest(language.name, language.version),
        )  # fmt: skip
        plans = [
            self._commits(blank, git, source, context) if strategy == "history"
            else self._functions(blank.model_copy(update={"strategy": strategy}), git, source, context)
            for strategy in strategies
        ]  # fmt: skip
        authored = author_of(settings, source, context) is not None
        rewritten = rewriter_of(settings, source, context) is not None
        for found in in_turn(plans, source.options.limit or DEFAULT_LIMIT):
            if isinstance(found, Lead) and (rewritten or authored):
                yield rekeyed(found, settings) if rewritten else keyed(found, settings)
            else:
                yield found

    def _commits(self, blank: Lead, git: GitDir, source: Source, context: Context) -> Iterator[Lead | Dropped]:
        """Every scanned commit, newest first: a lead, or dropped with its reason."""
        settings, revision = read_settings(source), blank.revision
        role = RoleBook(context.language(LANGUAGE).roles())
        key = digest_of([revision, settings.document(), [rule.document() for rule in role.rules], self.version])

        def look() -> str:
            with boundary(GeneratorError, "the history cannot be read", where=without_password(source.location)):
                return json.dumps([_project_name(git, revision, source), scan(git, revision, settings, role)])

        name, rows = json.loads(context.remember("history", key, look))
        for row in rows:
            commit = Scanned(*row)
            about = {"name": name, "strategy": "history", "ref": commit.oid, "title": commit.title[:200]}
            lead = blank.model_copy(update=about)
            yield Dropped(lead=lead, reason=commit.reason, detail=commit.detail) if commit.reason else lead

    def _functions(self, blank: Lead, git: GitDir, source: Source, context: Context) -> Iterator[Lead]:
        """The functions that a model is to break, spread over the files."""
        where = without_password(source.location)
        with boundary(GeneratorError, "the functions cannot be listed", where=where):
            found = breakable_functions(
                Revision(git, blank.revision), context.language(LANGUAGE).roles(), read_settings(source),
                f"{self.name}/{blank.strategy}/{blank.seed}", context.remember,
            )  # fmt: skip
        if not found:
            context.note(f"{where}: no function is worth breaking: none with branches or loops is named in tests")
        name = _project_name(git, blank.revision, source)
        # A function means another one with every revision; a commit is what it is.
        settings = digest_of([blank.settings, blank.revision])
        for path, function in found:
            about = {"name": name, "ref": f"{function}:{path}", "title": f"{function} in {path}", "settings": settings}
            yield blank.model_copy(update=about)

    # --- develop -------------------------------------------------------------------------------------------

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        """Turn a commit, or a function that a model breaks, into a candidate.

        Raises:
            ModelError: the model's answer is no use, or there was none.
            SandboxError: the environment failed; the lead is owed another try.
        """
        settings = read_settings(source)
        if lead.strategy in LM_STRATEGIES:
            git, _ = self._open(source, settings, context, refresh=False, revision=lead.revision)
            return broken_candidate(lead, source, context, settings, git, self._reader(git, context))
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
