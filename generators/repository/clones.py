"""Full, bare, cached clones of any location git can read: a path, a bundle, file, ssh, http or https."""

from __future__ import annotations

import hashlib
import math
import re
import subprocess
import tempfile
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from envsynth.cache import Cache, remove_folder
from envsynth.errors import DiskFull, EnvsynthError, SandboxError, SourceError, boundary, disk_full
from envsynth.generators.repository.gitdir import GitDir, GitFailed, run_git

_CLONE_S = 3600.0
_FULL_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REMOTE = re.compile(r"^([a-z][a-z0-9+.-]*://|[^/]*[^/:]:)")
_BRANCHES = ("refs/heads/main", "refs/heads/master", "refs/heads/trunk", "refs/heads/develop")


class Remote(NamedTuple):
    """What a location says of itself."""

    head: str
    """Branch that HEAD names, or nothing."""
    refs: dict[str, str]
    """Hash by ref: branches and tags."""


class Clones:
    """The clones below one cache folder."""

    def __init__(self, cache_dir: Path, *, timeout: float, offline: bool) -> None:
        self._cache = Cache(cache_dir)
        self._timeout = timeout
        self._offline = offline

    def open(self, location: str, revision: str | None, *, refresh: bool) -> tuple[GitDir, str]:
        """The clone of a location, and the full hash of a revision in it.

        Args:
            location: what git clones from.
            revision: a branch, tag, hash or ref; None: the default branch.
            refresh: whether to ask the location for news; without it a clone that is there is taken as it is.

        Raises:
            SourceError: the location cannot be read, or has no such revision.
            SandboxError: the host is at fault, or the disk is full.
        """
        where = without_password(location)
        with boundary(SourceError, "the repository cannot be read", where=where):
            _refuse_odd(location, where)
            key = hashlib.sha256(location.encode("utf-8", "surrogateescape")).hexdigest()[:32]
            with self._cache.lock(f"clone-{key}"):
                clone = GitDir(self._cache.folder("clones") / f"{key}.git")
                known = self._resolve(clone, revision) if clone.path.is_dir() else None
                pinned = revision is not None and _FULL_HASH.fullmatch(revision) is not None
                if known and (pinned or not refresh or self._offline):
                    return clone, known
                if self._offline:
                    raise SourceError(
                        "the repository is not in the cache", where=where, cause="the network may not be used",
                        next_step="run the same command once without --offline",
                    )  # fmt: skip
                self._update(clone, location, where)
                found = self._resolve(clone, revision) or self._fetch_one(clone, location, revision, where)
        return clone, found

    def _resolve(self, clone: GitDir, revision: str | None) -> str | None:
        if revision is None:
            return clone.resolve("HEAD")
        return clone.resolve(f"refs/heads/{revision}") or clone.resolve(revision)

    def _update(self, clone: GitDir, location: str, where: str) -> None:
        remote = self._ask(location, where)
        if not remote.refs:
            raise _without_commits(location, where)
        if clone.path.is_dir() and self._refs(clone) is None:
            remove_folder(clone.path)
        if not clone.path.is_dir():
            self._clone(clone, location, where)
        elif self._refs(clone) != remote.refs:
            self._git(clone, location, where, "--prune", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        head = (
            remote.head if remote.head in remote.refs else next((name for name in _BRANCHES if name in remote.refs), "")
        )
        if head := head or next((name for name in sorted(remote.refs) if name.startswith("refs/heads/")), ""):
            clone.run("symbolic-ref", "HEAD", head)

    def _ask(self, location: str, where: str) -> Remote:
        try:
            text = run_git("ls-remote", "--symref", "--", location, timeout=self._timeout)
        except GitFailed as exc:
            raise explain(str(exc), where) from None
        except subprocess.TimeoutExpired:
            raise SandboxError(
                "the host does not answer", where=where, cause=f"nothing in {self._timeout:.0f} s",
                next_step="try again later, or give it more with timeout=SECONDS",
            ) from None  # fmt: skip
        head, refs = "", {}
        for line in text.decode("utf-8", "replace").splitlines():
            left, _, name = line.partition("\t")
            if left.startswith("ref: ") and name == "HEAD":
                head = left.removeprefix("ref: ")
            elif name.startswith(("refs/heads/", "refs/tags/")) and not name.endswith("^{}"):
                refs[name] = left
        return Remote(head, refs)

    def _refs(self, clone: GitDir) -> dict[str, str] | None:
        """Hash by ref of a clone; None where the clone is broken."""
        try:
            listed = clone.run("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
            clone.run("rev-list", "--max-count=1", "--all")
        except GitFailed:
            return None
        lines = listed.decode("utf-8", "replace").splitlines()
        return {name: oid for oid, _, name in (line.partition(" ") for line in lines)}

    def _clone(self, clone: GitDir, location: str, where: str) -> None:
        folder = clone.path.parent
        for left_over in folder.glob(f"new-{clone.path.stem}-*"):
            remove_folder(left_over)
        # Cloned beside its place and renamed into it: a clone that has its name is whole.
        scratch = Path(tempfile.mkdtemp(prefix=f"new-{clone.path.stem}-", dir=folder))
        words = ("clone", "--quiet", "--bare", "--no-local", "--reject-shallow", "--", location, str(scratch / "git"))
        try:
            self._transfer(where, *words)
            (scratch / "git").rename(clone.path)
        finally:
            remove_folder(scratch)

    def _git(self, clone: GitDir, location: str, where: str, *refspecs: str) -> None:
        words = ("fetch", "--quiet", "--force", "--no-recurse-submodules", *_split(refspecs, location))
        self._transfer(where, f"--git-dir={clone.path}", *words)

    def _transfer(self, where: str, *arguments: str) -> None:
        """Run a git command that moves objects, as long as they move."""
        patience = f"http.lowSpeedTime={math.ceil(self._timeout)}"
        try:
            run_git("-c", patience, *arguments, timeout=_CLONE_S)
        except GitFailed as exc:
            error = explain(str(exc), where)
            # Whatever git read from, it is the clone that there was no room for.
            raise disk_full(str(self._cache.root)) if isinstance(error, DiskFull) else error from None

    def _fetch_one(self, clone: GitDir, location: str, revision: str | None, where: str) -> str:
        """A revision that no branch or tag reaches, such as `refs/pull/1/head` or a bare hash."""
        if (
            revision
            and not revision.startswith("-")
            and (revision.startswith("refs/") or _FULL_HASH.fullmatch(revision))
        ):
            try:
                self._git(clone, location, where, f"+{revision}:refs/envsynth/{revision.removeprefix('refs/')}")
            except EnvsynthError as exc:
                if exc.exit_code == SandboxError.exit_code:
                    raise
            if found := clone.resolve(f"refs/envsynth/{revision.removeprefix('refs/')}"):
                return found
        raise SourceError(
            f"no revision {revision!r}" if revision else "the default branch has no commits", where=where,
            cause="no branch, tag or commit of that name" if revision else "HEAD names a branch that is not there",
            next_step=f"list what there is with `git ls-remote {where}`",
        )  # fmt: skip


def without_password(location: str) -> str:
    """A location as it may be shown."""
    return re.sub(r"\b([a-z+]+://)[^/@\s]*@", r"\1", location)


def _without_commits(location: str, where: str) -> SourceError:
    """The error for a location that names no branch and no tag."""
    if not location.lower().startswith(("http://", "https://")):
        return SourceError("the repository has no commits", where=where, cause="it is empty", next_step="push one")
    # Git takes any page that is answered with 200 for the list of an old server's refs.
    return SourceError(
        "the address names no branch and no tag", where=where,
        cause="a login page or another server that is not git's may answer there, or the repository is empty",
        next_step="open the address in a browser; then sign in to the network, correct the address, or push a commit",
    )  # fmt: skip


def explain(said: str, where: str) -> EnvsynthError:
    """The error that git's own words mean."""
    for pattern, kind, words in _explanations():
        match = pattern.search(said)
        if match is None:
            continue
        if kind == "disk":
            return disk_full(where)
        cause = words["cause"] or _last_line(said)
        error = SandboxError if kind == "host" else SourceError
        return error(words["what"], where=where, cause=cause, next_step=words["next"])
    return SourceError("git cannot read the repository", where=where, cause=_last_line(said))


@cache
def _explanations() -> tuple[tuple[re.Pattern[str], str, dict[str, str]], ...]:
    text = (resources.files(__package__) / "words" / "git_errors.toml").read_text("utf-8")
    return tuple((re.compile(row["pattern"], re.I), row["kind"], row) for row in tomllib.loads(text)["error"])


def _last_line(said: str) -> str:
    lines = [line.strip().strip("'") for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"(fatal|error|ssh|remote)\b", line)] or lines
    return without_password(telling[0].removeprefix("fatal: "))[:200] if telling else "it gave no reason"


def _refuse_odd(location: str, where: str) -> None:
    if location.startswith("-") or "\0" in location or "\n" in location:
        raise SourceError("not a location", where=where, cause="it looks like an option", next_step="check the line")
    if "::" in location.partition("/")[0]:
        raise explain("transport 'helper' not allowed", where)
    if not _REMOTE.match(location) and not Path(location).exists():
        raise SourceError(
            "the repository does not exist", where=where, cause="no such path", next_step="check the path"
        )


def _split(refspecs: tuple[str, ...], location: str) -> list[str]:
    """Options, then the location behind `--`, then the refspecs."""
    options = [word for word in refspecs if word.startswith("--")]
    return [*options, "--", location, *(word for word in refspecs if not word.startswith("--"))]
