"""What an agent's own commands find in an open episode, outside of what the start tree says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from envsynth.errors import SandboxError
from envsynth.models import Finding, Source, digest_of
from envsynth.protocols import Context
from envsynth.runtime.recipe import environment_mounts
from envsynth.runtime.workspace import WorkspaceEpisode, open_task
from envsynth.timing import Stopwatch
from envsynth.validators.leakage.guards import TEXT_BYTES, Guards
from envsynth.validators.leakage.passages import SIGNIFICANT
from envsynth.validators.leakage.secrets import secrets_in, words
from envsynth.validators.leakage.tree import Seen, search

__all__ = ["Probe", "Probed"]

MAX_MARKS = 400
_MAX_MARK_BYTES = 80_000
_MAX_FILES = 20
"""Files outside of workspace and environment of which the lines are looked at one by one."""
_LINES = 3
"""Distinct telling lines that make a leak of a file in the system."""
_UNPACKED = re.compile(r"^/tmp/\.packed/(\d+)/")
"""Where `grep.sh` unpacks wheels."""
_STANDARD_LIBRARY = re.compile(r"/lib/python3[^/]*/(?!(site|dist)-packages/)")


class Probed(NamedTuple):
    """What was seen, and what it took."""

    seen: Seen
    grep_s: float
    """Wall seconds of the search through everything readable."""
    files: int
    """Files that hold at least one line of the fix or the hidden tests."""


class _Hit(NamedTuple):
    path: str
    lines: int


@dataclass
class Probe:
    """One open episode and what is looked for in it."""

    guards: Guards
    source: Source
    context: Context

    def run(self) -> Probed:
        """Open an episode, look around, search, close.

        Raises:
            SandboxError: the environment failed.
        """
        candidate, context = self.guards.candidate, self.context
        backend = context.backend(self.source)
        document = {"candidate": candidate.document(), "tests": None}
        episode = open_task(document, context.blobs.get, context.cache_dir, backend, task_id=candidate.id)
        try:
            episode.reset(0)
            player = _Player(episode, isolated=backend.isolates)
            seen = self._surroundings(player, backend.name, isolates=backend.isolates)
            watch = Stopwatch()
            hits = player.hits(self.guards)
            grep_s = watch.cost().wall_s
            seen.fatal.extend(
                Finding(rule="history_visible", message="git's own files", where=path) for path in player.history
            )
            self._judge(player, hits, seen)
            seen.fatal.extend(_sourceless(self.guards, episode.task.environment))
            return Probed(seen, grep_s, len(hits))
        finally:
            episode.close()

    def _surroundings(self, player: _Player, backend: str, *, isolates: bool) -> Seen:
        """What is the same for every task of a project in an environment, looked at once."""
        candidate, environment = self.guards.candidate, player.environment
        variables = [list(pair) for pair in candidate.workspace.command.variables]
        key = digest_of([_script("surroundings"), candidate.workspace.recipe.digest(), backend, variables,
                         list(environment.parts), list(self.guards.packages)])  # fmt: skip
        text = self.context.remember(
            "leakage-surroundings", key, lambda: json.dumps(player.surroundings(self.guards.packages))
        )
        sections: dict[str, list[str]] = json.loads(text)
        player.named, player.wheels = sections.get("named", []), sections.get("wheels", [])
        seen = Seen([], [])
        if isolates:
            seen.fatal.extend(_mounts(sections["mounts"], environment))
            seen.noted.extend(
                Finding(rule="file_in_home", message="a file where nothing should be", where=path)
                for path in sections["homes"]
            )
        seen.fatal.extend(_links(sections["links"]))
        seen.fatal.extend(_variables(sections["variables"]))
        inside = f"{player.inside}/"
        for path in sections.get("stores", []):
            rule, to = ("history_visible", seen.fatal) if path.startswith(inside) else ("git_store", seen.noted)
            to.append(Finding(rule=rule, message="git's own files", where=path))
        return seen

    def _judge(self, player: _Player, hits: Sequence[_Hit], seen: Seen) -> None:
        """Look closely at each file that holds a line."""
        elsewhere: list[str] = []
        for hit in hits:
            if not hit.path.startswith(f"{player.inside}/"):
                elsewhere += [hit.path] if hit.lines >= min(_LINES, player.marks) else []
                continue
            file = player.environment / hit.path.removeprefix(f"{player.inside}/")
            if file.is_file() and file.stat().st_size <= TEXT_BYTES:
                for guarded, leak in search(self.guards, file.name, file.read_bytes(), ours=False):
                    if leak:
                        message = f"holds the changed text of {guarded.path}"
                        seen.fatal.append(
                            Finding(rule=f"{guarded.what}_in_environment", message=message, where=hit.path)
                        )
        if elsewhere:
            names = {PurePosixPath(guarded.path).name for guarded in self.guards.guarded}
            elsewhere.sort(key=lambda path: PurePosixPath(path).name not in names)  # stable: the fullest first of each
            self._judge_elsewhere(player.which(elsewhere[:_MAX_FILES]), player.wheels, seen)

    def _judge_elsewhere(self, lines: Mapping[str, set[str]], wheels: Sequence[str], seen: Seen) -> None:
        """Files of the system: telling lines are counted, since they are not read whole."""
        known = {" ".join(line.split()) for line in self.guards.known.splitlines()}
        for path, found in sorted(lines.items()):
            telling = [line for line in found if len(line) >= SIGNIFICANT and " ".join(line.split()) not in known]
            for guarded in self.guards.guarded:
                own = {mark for mark in guarded.marks if len(mark) >= SIGNIFICANT}
                same_name = PurePosixPath(path).name == PurePosixPath(guarded.path).name
                if len(own & set(telling)) < (min(_LINES, max(1, len(own))) if same_name else _LINES):
                    continue
                message = f"holds {len(own & set(telling))} lines of {guarded.path}"
                where = _UNPACKED.sub(lambda found: f"{wheels[int(found[1]) - 1]}!", path)
                if where == path and _STANDARD_LIBRARY.search(path):
                    seen.noted.append(Finding(rule="fix_in_standard_library", message=message, where=where))
                else:
                    seen.fatal.append(Finding(rule=f"{guarded.what}_in_system", message=message, where=where))


class _Player:
    """Plays commands in an episode, as an agent does."""

    def __init__(self, episode: WorkspaceEpisode, *, isolated: bool) -> None:
        self._episode = episode
        self.environment = episode.task.environment
        self.inside = self._run('printf %s "$VIRTUAL_ENV"')
        self.marks = 0
        self.history: list[str] = []
        """Git's own files in the workspace, known after `hits`."""
        self.named: list[str] = []
        """Files and folders of the system that bear the project's name."""
        self.wheels: list[str] = []
        """Archives of the system that hold a folder or module of the project's name."""
        prefixes = [mount.target for mount in environment_mounts(self.environment)[1:]]
        self._common = {
            "ISOLATED": "true" if isolated else "false",
            "SYSTEM": _words(["/usr", "/etc", *prefixes]) if isolated else "",
            "PRUNED": " ".join(f"-o -path {shlex.quote(prefix)}" for prefix in ("/etc", *prefixes)),
        }
        self._text = ""

    def surroundings(self, packages: Sequence[str]) -> dict[str, list[str]]:
        """The lines of each section of `surroundings.sh`."""
        patterns = [pattern for name in packages for pattern in (name, f"{name}.py", f"{name}-*", f"{name}.*-info")]
        values = {"NAMED": _names(patterns), "PACKAGES": "|".join(re.escape(name) for name in packages)}
        found: dict[str, list[str]] = {}
        name = ""
        for line in self._run(self._filled("surroundings", values)).splitlines():
            if line.startswith("== "):
                name = line.removeprefix("== ")
                found[name] = []
            elif line:
                found[name].append(line)
        if "end" not in found:
            raise SandboxError("the surroundings could not be looked at", where=self._episode.task.id)
        return found

    def hits(self, guards: Guards) -> list[_Hit]:
        """Files that hold a line, the fullest first."""
        marks = _marks(guards)
        self.marks, self._text = len(marks), "\n".join(marks)
        if not marks:
            return []
        alike = sorted({PurePosixPath(guarded.path).name for guarded in guards.guarded})
        values = {"ALIKE": _names(alike), "NAMED": _words(self.named), "WHEELS": _words(self.wheels)}
        output = self._run(self._filled("grep", values))
        lines = output.splitlines()
        if not lines or lines[-1] != "== end":
            raise SandboxError("the search did not end", where=self._episode.task.id, cause=output[-200:])
        pairs = [line.partition("\t")[::2] for line in lines[:-1]]
        self.history = [path for mark, path in pairs if mark == "history"]
        return [_Hit(path, int(count)) for count, path in pairs if count.isdecimal()]

    def which(self, paths: Sequence[str]) -> dict[str, set[str]]:
        """The lines that each file holds."""
        found: dict[str, set[str]] = {}
        for line in self._run(self._filled("which", {"PATHS": _words(paths)})).splitlines():
            path, tab, mark = line.partition("\t")
            if tab:
                found.setdefault(path, set()).add(mark)
        return found

    def _filled(self, name: str, values: Mapping[str, str]) -> str:
        words_of = {**self._common, **values, "END": f"END-{digest_of(self._text)[:16]}", "MARKS": self._text}
        return re.sub(r"@([A-Z]+)@", lambda found: words_of[found[1]], _script(name))

    def _run(self, command: str) -> str:
        answer = self._episode.call("bash", {"command": command})
        if not answer.ok or "stopped" in answer.result:
            cause = answer.error or str(answer.result["stopped"])
            raise SandboxError("a look into the episode failed", where=self._episode.task.id, cause=cause)
        return str(answer.result["output"])


def _script(name: str) -> str:
    return (resources.files(__package__) / "scripts" / f"{name}.sh").read_text("utf-8")


def _words(texts: Sequence[str]) -> str:
    return " ".join(shlex.quote(text) for text in texts)


def _names(patterns: Sequence[str]) -> str:
    """The condition of `find` for any of these names."""
    return " -o ".join(f"-name {shlex.quote(pattern)}" for pattern in patterns)


def _marks(guards: Guards) -> list[str]:
    """The lines to search for: the longest, where there are many."""
    every = sorted({mark for guarded in guards.guarded for mark in guarded.marks}, key=lambda mark: (-len(mark), mark))
    kept, total = [], 0
    for mark in every[:MAX_MARKS]:
        total += len(mark.encode()) + 1
        if total > _MAX_MARK_BYTES:
            break
        kept.append(mark)
    return kept


def _mounts(targets: Sequence[str], environment: Path) -> list[Finding]:
    """Mounts where neither the system nor the task has anything."""
    allowed = [*words("mounts"), "/workspace", *(mount.target for mount in environment_mounts(environment))]
    return [
        Finding(rule="host_folder_visible", message="a mount that no task needs", where=target)
        for target in targets
        if target != "/" and not any(target == one or target.startswith(f"{one}/") for one in allowed)
    ]


def _links(lines: Sequence[str]) -> list[Finding]:
    """Links from the environment to a folder elsewhere: an editable installation is the project, fixed or not."""
    found = []
    for line in lines:
        path, colon, text = line.partition(":")
        text = text.strip()
        leads = not colon and "__editable__" in path
        if colon and path.endswith((".pth", ".egg-link")):
            leads = bool(text) and (text.startswith("/") or ".." in text.split("/") or "__editable__" in text)
        elif path.endswith("direct_url.json"):
            leads = '"file://' in text
        if leads:
            message = f"leads to {text[:100] or 'a folder elsewhere'}"
            found.append(Finding(rule="editable_link", message=message, where=path))
    return found


def _variables(lines: Sequence[str]) -> list[Finding]:
    return [
        Finding(rule="secret_in_variables", message=f"looks like a {kind}", where=line.partition("=")[0])
        for line in lines
        for kind in secrets_in(line.encode())
    ]


def _sourceless(guards: Guards, environment: Path) -> list[Finding]:
    """Byte code in the environment that stands for a module of the fix and has no source beside it."""
    found = []
    wanted = {(PurePosixPath(change.path).parent.name, PurePosixPath(change.path).stem): change.path
              for change in guards.changes if change.path.endswith(".py")}  # fmt: skip
    for site in environment.glob("lib/python3*/site-packages"):
        for path in site.rglob("*.pyc"):
            cached = path.parent.name == "__pycache__"
            folder = path.parent.parent if cached else path.parent
            stem = path.name.partition(".")[0]
            name = (folder.name if folder != site else "", stem)
            if name in wanted and not (folder / f"{stem}.py").exists():
                where = str(path.relative_to(environment))
                message = f"byte code of {wanted[name]} without its source"
                found.append(Finding(rule="byte_code_of_fix", message=message, where=where))
    return found
