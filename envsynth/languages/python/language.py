"""The Python plug-in: the class that the pipeline sees."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from envsynth.errors import SandboxError, SourceError, boundary
from envsynth.languages.python.controls import controls
from envsynth.languages.python.layout import collection_targets, files_with_tests
from envsynth.languages.python.mutants import mutants
from envsynth.languages.python.prepare import Builder, Solution, Unsolved, command_for, unsolved
from envsynth.languages.python.project import Project
from envsynth.languages.python.repair import Repair, asked_for
from envsynth.languages.python.rewrites import rewrites
from envsynth.languages.python.roles import RULES
from envsynth.models import (
    Control,
    Cost,
    Recipe,
    Role,
    RoleRule,
    Source,
    TestCommand,
    TestRecord,
    TestRun,
    TestStatus,
    Tree,
    Variant,
    Workspace,
    role_of,
)
from envsynth.protocols import Context, Prepared
from envsynth.runtime.recipe import ensure_environment
from envsynth.runtime.testkeys import functions_of
from envsynth.runtime.testrun import run_tests

GUARDED = (Role.TEST, Role.CONFIG)


class Python:
    """Python projects tested by pytest or unittest."""

    name = "python"
    version = "1"

    def detect(self, tree: Tree) -> bool:
        """Whether a tree has Python packaging, or Python files with tests among them."""
        paths = tree.by_path
        if any(name in paths for name in ("pyproject.toml", "setup.py", "setup.cfg")):
            return any(path.endswith(".py") for path in paths)
        return bool(files_with_tests(Project(tree, lambda _: b"")))

    def roles(self) -> tuple[RoleRule, ...]:
        """What each path is to a solution."""
        return RULES

    def prepare(self, tree: Tree, *, newest: str, version_hint: str, source: Source, context: Context) -> Prepared:
        """Find or build the environment of a project as of a date.

        The source's option `recipe=FILE` names the recipe. Without it the project's own requirements are tried; where
        none of them will do, the recipe of an earlier repair, or those that the author's model proposes.

        Raises:
            ConfigError: the recipe that was asked for cannot be used.
            NoInterpreter: no installed interpreter fits.
            SourceError: under no recipe a test can be collected.
            ModelError: the author's endpoint failed, or its budget is spent.
            SandboxError: the registry cannot be reached, the disk is full, or the sandbox failed.
        """
        began = time.perf_counter()
        project = Project(tree, context.blobs.get)
        builder = Builder(project, newest, version_hint, source, context)
        repair = Repair(builder, project, newest, source, context)
        made = False

        def make() -> str:
            nonlocal made
            if repair.kept():
                raise unsolved(source.uri, "its own recipes failed before")
            made = True
            return builder.solve_to_json()

        if not collection_targets(project):
            raise SourceError(
                "there are no tests", where=source.uri, cause="no file named test_*.py, *_test.py or tests.py",
                next_step="leave the source out",
            )  # fmt: skip
        with boundary(SandboxError, "the environment could not be prepared", where=source.uri):
            solution = asked_for(builder, project, source, context)
            if solution is None:
                try:
                    solution = Solution.from_json(context.remember("python-solution", builder.key(), make), source.uri)
                except Unsolved as exc:
                    solution = repair.solve(exc)
            environment = self.environment(solution.recipe, context)
            generated = Tree(entries=tuple(one for one in solution.generated.entries if not project.has(one.path)))
            whole = Project(tree.overlay(generated), context.blobs.get)
            command = command_for(whole, solution, environment)
        size = sum(path.lstat().st_size for path in environment.rglob("*")) if made else 0
        cost = Cost(wall_s=time.perf_counter() - began, disk_bytes=size, cached=not made)
        return Prepared(path=environment, recipe=solution.recipe, command=command, generated=generated, cost=cost)

    def environment(self, recipe: Recipe, context: Context) -> Path:
        """The host folder of an environment, rebuilt from its recipe where it is gone."""
        return ensure_environment(recipe.document(), context.blobs.get, context.cache_dir, note=context.note)

    def run_tests(
        self, workspace: Workspace, tree: Tree, *, source: Source, context: Context, select: Sequence[str] = ()
    ) -> TestRun:
        """Run the tests once on a solution tree, the hidden files laid over; `select`: keys of the only ones to run."""
        graded = graded_tree(workspace, tree, context)
        base = context.blobs.get_tree(workspace.tree)
        files = {
            one.path: (context.blobs.get(one.blob), one.mode.value)
            for one in graded.entries
            if base.by_path.get(one.path) != one
        }
        report = run_tests(
            context.backend(source),
            workspace.command.document(),
            environment=self.environment(workspace.recipe, context),
            layers=(context.materialise(base),),
            files=files,
            removed=tuple(path for path in base.by_path if path not in graded.by_path),
            select=functions_of(select),
        )
        return TestRun(
            state="",
            repeat=0,
            complete=report.complete,
            exit_code=report.exit_code,
            records=tuple(
                TestRecord(
                    key=one.key, id=one.id, status=TestStatus(one.status), message=one.message, line=one.line
                )
                for one in report.results
            ),
            trouble=report.trouble,
            timed_out=report.timed_out,
            output_tail=report.output_tail,
            cost=Cost(wall_s=report.wall_s, cpu_s=report.cpu_s),
        )  # fmt: skip

    def controls(self, hidden: Mapping[str, str], keys: Sequence[str], command: TestCommand) -> Iterable[Control]:
        """Changes to hidden tests after which every right solution must fail them."""
        return controls(hidden, keys, command)

    def mutants(self, before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[Variant]:
        """Wrong variants of the reference, the most telling first."""
        return mutants(before, after)

    def rewrites(self, before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[Variant]:
        """Variants that behave as the reference does."""
        return rewrites(before, after)


def graded_tree(workspace: Workspace, tree: Tree, context: Context) -> Tree:
    """The solution's own files, with tests and configuration from the hidden tree.

    A path of role test or config that the hidden tree lacks is absent, unless the task allows it.
    """
    free = frozenset(workspace.allowed)
    own = tree.select(lambda path: path in free or role_of(path, workspace.roles) not in GUARDED)
    hidden = context.blobs.get_tree(workspace.hidden).select(lambda path: path not in free)
    return own.overlay(hidden)
