"""Builds the environment of a project, down a ladder of recipes, until its tests can be collected."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envsynth.errors import SourceError
from envsynth.languages.python.choose import fitting_interpreters
from envsynth.languages.python.declared import Declared, declared, highest_classifier, requires_python
from envsynth.languages.python.layout import (
    choose_runner,
    collection_targets,
    known_imports,
    own_modules,
    source_roots,
)
from envsynth.languages.python.project import Project
from envsynth.languages.python.requirement_files import ToxEnvironment
from envsynth.languages.python.sdist import FromSource
from envsynth.languages.python.uv import Unresolvable, resolve
from envsynth.languages.python.wanted import WantedRecipe
from envsynth.languages.python.wheel import Wheel, build_wheel, generated_files, site_tree
from envsynth.models import Finding, Recipe, Source, TestCommand, Tree, digest_of
from envsynth.protocols import Context
from envsynth.runtime.interpreters import Interpreter, installed_interpreters
from envsynth.runtime.recipe import ensure_environment
from envsynth.runtime.testrun import TestReport, TestResult, run_tests

LADDER_VERSION = "1"
"""Part of the cache key: raise it when the ladder would come to another result."""

COLLECT_SECONDS = 120.0
INTERPRETERS = 2
"""How many of the fitting interpreters are tried."""
_REASON = 300
_TOLD = 1500
"""Characters of what a tool says about a recipe that was asked for."""
_SHOWN = 8


class Rung(NamedTuple):
    """One try."""

    what: str
    requirements: tuple[str, ...]
    newest: str


class Solution(NamedTuple):
    """A recipe under which the tests can be collected."""

    recipe: Recipe
    names: tuple[str, ...]
    """Top-level import names of the built project; empty where it was not built."""
    generated: Tree
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables that the tests need, besides those that the project itself names."""

    def to_json(self) -> str:
        """JSON text for the cache."""
        document = {"recipe": self.recipe.document(), "names": self.names, "generated": self.generated.document()}
        return json.dumps(document | ({"variables": self.variables} if self.variables else {}))

    @classmethod
    def from_json(cls, text: str, source: str) -> Solution:
        """What `Builder.solve_to_json` wrote.

        Raises:
            Unsolved: that there is none.
        """
        document = json.loads(text)
        if "failed" in document:
            raise unsolved(source, document["failed"], document.get("log", ()))
        recipe, generated = Recipe.model_validate(document["recipe"]), Tree.model_validate(document["generated"])
        variables = tuple((name, value) for name, value in document.get("variables", ()))
        return cls(recipe, tuple(document["names"]), generated, variables)


class Unsolved(SourceError):
    """Under no recipe the tests of a project can be collected."""

    log: tuple[str, ...] = ()
    """What became of each recipe, in order."""


class Attempt(NamedTuple):
    """What became of a recipe that was asked for."""

    solution: Solution | None
    """None: nothing could be installed."""
    collected: int
    """How many tests were found."""
    findings: tuple[Finding, ...]
    """What went wrong; empty: every test could be collected."""


class Builder:
    """Climbs down the ladder for one tree.

    Args:
        project: the tree.
        newest: ISO 8601 moment of the tree's commit.
        version_hint: version for tools that would ask git.
        source: names the project, chooses the sandbox.
        context: the pipeline's services.
    """

    def __init__(self, project: Project, newest: str, version_hint: str, source: Source, context: Context) -> None:
        self._project, self._newest, self._hint = project, newest, version_hint
        self._source, self._context = source, context
        self._log: list[str] = []
        self._best: tuple[int, Solution] | None = None
        self._judged = False

    def key(self) -> str:
        """Commits with the same key share a solution: equal packaging, interpreters and month."""
        return digest_of(
            [LADDER_VERSION, self._project.packaging_digest, self._bucket, choose_runner(self._project)]
            + [one.version for one in self._interpreters()[:INTERPRETERS]]
        )

    @property
    def _bucket(self) -> str:
        """The first moment of the commit's month, so that neighbouring commits share an environment."""
        return f"{self._newest[:7]}-01T00:00:00Z"

    def _interpreters(self) -> list[Interpreter]:
        requires, cap = requires_python(self._project), highest_classifier(self._project)
        return fitting_interpreters(requires, newest=self._newest, cap=cap, where=self._source.uri)

    def solve_to_json(self) -> str:
        """The solution for the cache, or why there can be none for any commit with this key.

        Raises:
            Unsolved: something was installed, but this tree's tests could not be collected; another tree's may be.
            SandboxError: as `solve`.
        """
        try:
            return self.solve().to_json()
        except Unsolved as exc:
            if self._judged:
                raise
            return json.dumps({"failed": exc.cause, "log": exc.log})

    def solve(self) -> Solution:
        """The first recipe under which everything is collected, else the one under which most is.

        Raises:
            Unsolved: under no recipe a test can be collected.
            SandboxError: the registry, the disk or the sandbox failed.
        """
        for interpreter in self._interpreters()[:INTERPRETERS]:
            if self._climb(interpreter) and self._best is not None:
                break
        if self._best is None:
            raise unsolved(self._source.uri, self._log[-1] if self._log else "no recipe could be installed", self._log)
        return self._best[1]

    def _climb(self, interpreter: Interpreter) -> bool:
        """Try every rung with one interpreter; whether one of them collects without an error."""
        wheel = build_wheel(
            self._project, interpreter, newest=self._bucket, version=self._hint, source=self._source,
            context=self._context,
        )  # fmt: skip
        facts = declared(self._project, wheel.metadata if wheel else "", interpreter.version)
        for rung in self._rungs(facts, wheel):
            solution = self._install(rung, interpreter, wheel)
            if solution is None and self._newest[:10] != self._bucket[:10]:
                later = rung._replace(what=f"{rung.what}, to the day", newest=self._newest)
                solution = self._install(later, interpreter, wheel)
            if solution is not None and self._judge(solution, rung):
                return True
        return False

    def _install(self, rung: Rung, interpreter: Interpreter, wheel: Wheel | None) -> Solution | None:
        """The rung's solution, not yet judged; None where its requirements cannot be met."""
        try:
            pins, site = self._resolve(rung, interpreter)
        except Unresolvable as exc:
            self._note(rung, interpreter.version, " ".join(str(exc).split())[:_REASON])
            return None
        return self._solution(interpreter, rung, pins, site, wheel)

    def _rungs(self, facts: Declared, wheel: Wheel | None) -> Iterator[Rung]:
        """From what the project says of its tests down to the runner alone."""
        runner = () if choose_runner(self._project) == "unittest" else ("pytest",)
        names = (facts.name.replace("-", "_"), *(wheel.names if wheel else ()))
        imports = known_imports(self._project, names)
        seen: set[tuple[str, ...]] = set()
        for what, wanted in (
            ("test requirements", (*facts.runtime, *facts.test)),
            ("all developer requirements", (*facts.runtime, *facts.test, *facts.dev)),
            ("test requirements of any version", (*facts.runtime, *map(_unpinned, facts.test))),
            ("what the tests import", (*facts.runtime, *imports)),
            ("runtime requirements", facts.runtime),
        ):
            requirements = _with_runner(wanted, runner)
            if requirements not in seen:
                seen.add(requirements)
                yield Rung(what, requirements, self._bucket)

    def _resolve(
        self, rung: Rung, interpreter: Interpreter, *, wheels_only: bool = False
    ) -> tuple[tuple[str, ...], dict[str, bytes]]:
        """Pins and files of the library folder, from wheels alone where that is possible."""
        if not rung.requirements:
            return (), {}
        try:
            return resolve(rung.requirements, interpreter.path, rung.newest), {}
        except Unresolvable as exc:
            if wheels_only or ("wheel" not in str(exc).lower() and "building" not in str(exc).lower()):
                raise
        return FromSource(interpreter, rung.newest, self._source, self._context).resolve(rung.requirements)

    def _solution(
        self, interpreter: Interpreter, rung: Rung, pins: tuple[str, ...], site: dict[str, bytes], wheel: Wheel | None
    ) -> Solution:
        files = dict(site)
        pinned = {canonicalize_name(pin.partition("==")[0]) for pin in pins}
        if wheel is not None and _wheel_name(wheel) not in pinned:
            files |= wheel.site
        recipe = Recipe(
            language="python", interpreter=interpreter.version, requires=requires_python(self._project),
            requirements=pins, newest=rung.newest,
            site=self._context.blobs.put_tree(site_tree(files, self._context)) if files else None,
        )  # fmt: skip
        names = wheel.names if wheel is not None else ()
        roots = source_roots(self._project, names)
        generated = generated_files(wheel, self._project, roots, self._context) if wheel is not None else Tree()
        return Solution(recipe, names, generated)

    def _judge(self, solution: Solution, rung: Rung) -> bool:
        """Collect the tests; keep the solution when it is the best so far. True when nothing was left uncollected."""
        self._judged = True
        report = self._collect(solution, self._environment(solution))
        found, errors = _collected(report)
        if not found:
            said = errors[0].message if errors else report.trouble or report.output_tail
            said = " ".join(said.split())[-_REASON:] or "nothing was collected"
            self._note(rung, solution.recipe.interpreter, said)
            return False
        if self._best is None or found > self._best[0]:
            self._best = (found, solution)
        return not errors

    def attempt(self, wanted: WantedRecipe, *, wheels_only: bool = False) -> Attempt:
        """Try a recipe that was asked for, whatever the project itself says it needs.

        Args:
            wanted: the recipe; its parts are fit.
            wheels_only: whether nothing may be built from source to meet its requirements.

        Raises:
            SandboxError: the registry, the disk or the sandbox failed.
        """
        interpreter = next(one for one in installed_interpreters() if one.version == wanted.python)
        wheel = None
        if wanted.build:
            wheel = build_wheel(
                self._project, interpreter, newest=self._bucket, version=self._hint, source=self._source,
                context=self._context,
            )  # fmt: skip
        runner = () if choose_runner(self._project) == "unittest" else ("pytest",)
        newest = f"{wanted.newest}T23:59:59Z" if wanted.newest else self._newest
        rung = Rung("a recipe that was asked for", _with_runner(wanted.requirements, runner), newest)
        try:
            pins, site = self._resolve(rung, interpreter, wheels_only=wheels_only)
        except Unresolvable as exc:
            message = " ".join(str(exc).split())[:_TOLD]
            return Attempt(None, 0, (Finding(rule="requirements_not_met", message=message),))
        solution = self._solution(interpreter, rung, pins, site, wheel)
        solution = solution._replace(variables=tuple(sorted(wanted.variables.items())))
        report = self._collect(solution, self._environment(solution))
        found, errors = _collected(report)
        findings = [
            Finding(rule="tests_not_collected", where=error.id, message=error.message[-_TOLD:] or "no reason given")
            for error in errors[:_SHOWN]
        ]  # fmt: skip
        if not found and not findings:
            said = " ".join((report.trouble or report.output_tail).split())[-_TOLD:]
            findings.append(Finding(rule="nothing_collected", message=said or "nothing was collected"))
        return Attempt(solution, found, tuple(findings))

    def _note(self, rung: Rung, version: str, said: str) -> None:
        self._log.append(f"{rung.what}, Python {version}: {said}")

    def _environment(self, solution: Solution) -> Path:
        return ensure_environment(
            solution.recipe.document(), self._context.blobs.get, self._context.cache_dir, note=self._context.note
        )

    def _collect(self, solution: Solution, environment: Path) -> TestReport:
        tree = self._project.tree.overlay(solution.generated)
        command = command_for(Project(tree, self._context.blobs.get), solution, environment)
        return run_tests(
            self._context.backend(self._source),
            command.model_copy(update={"timeout_s": COLLECT_SECONDS}).document(),
            environment=environment,
            layers=(self._context.materialise(tree),),
            collect_only=True,
        )


def unsolved(where: str, cause: str, log: Iterable[str] = ()) -> Unsolved:
    """The error for a project whose tests cannot be made to run."""
    error = Unsolved(
        "no test of this project can be collected", where=where, cause=cause,
        next_step="leave the source out, or name an older revision with @REV",
    )  # fmt: skip
    error.log = tuple(log)
    return error


def _collected(report: TestReport) -> tuple[int, list[TestResult]]:
    """How many tests were found, and what could not be collected."""
    errors = [result for result in report.results if result.status == "error"]
    return sum(result.status == "absent" for result in report.results), errors


def command_for(project: Project, solution: Solution, environment: Path) -> TestCommand:
    """How the tests of a tree are run in a solution's environment."""
    roots = source_roots(project, solution.names)
    return TestCommand(
        runner="unittest" if choose_runner(project) == "unittest" else "pytest",
        targets=collection_targets(project),
        roots=roots,
        modules=own_modules(project, roots, environment),
        variables=tuple(
            (name, value)
            for name, value in {**dict(ToxEnvironment(project).variables), **dict(solution.variables)}.items()
            if not name.startswith(("PYTHON", "COV"))
        ),
    )


def _with_runner(requirements: tuple[str, ...], runner: tuple[str, ...]) -> tuple[str, ...]:
    named = {canonicalize_name(Requirement(line).name) for line in requirements}
    return tuple(sorted({*requirements, *(name for name in runner if name not in named)}))


def _unpinned(line: str) -> str:
    requirement = Requirement(line)
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}" + (f"; {requirement.marker}" if requirement.marker else "")


def _wheel_name(wheel: Wheel) -> str:
    folder = next(name for name in wheel.site).partition("/")[0]
    return str(canonicalize_name(folder.partition("-")[0]))
