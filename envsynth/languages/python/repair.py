"""When every recipe of a project fails, the author model reads the log and proposes others; what worked is kept."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envsynth.errors import ModelOutputError
from envsynth.languages.python.choose import usable_versions
from envsynth.languages.python.declared import declared, requires_python
from envsynth.languages.python.layout import choose_runner
from envsynth.languages.python.prepare import Attempt, Builder, Solution, Unsolved, unsolved
from envsynth.languages.python.project import Project
from envsynth.languages.python.sdist import registry_settings
from envsynth.languages.python.wanted import WantedRecipe, unfit_parts, wanted_by
from envsynth.models import Finding, Source, digest_of
from envsynth.protocols import Context

if TYPE_CHECKING:
    from envsynth.llm import Client, Message

__all__ = ["ROUNDS", "Repair", "asked_for"]

ROUNDS = 10
"""How many recipes a model may propose for one project."""
_PROMPT = Path(__file__).with_name("prompts") / "repair.md"
_TELLING = re.compile(
    r"^(?:pyproject\.toml|setup\.(?:py|cfg)|tox\.(?:ini|toml)|noxfile\.py|Pipfile|environment\.ya?ml|Dockerfile|Makefile|"
    r"[^/]*requirements[^/]*|requirements/[^/]+|\.travis\.yml|\.?appveyor\.yml|\.circleci/config\.yml|conftest\.py|"
    r"(?:[^/]+/)?tests?/conftest\.py|pytest\.ini|meson\.build)$"
)
"""Files that tell how a project is installed and tested."""
_FILE, _FILES, _LOG, _LINE = 6_000, 40_000, 8_000, 1_000
"""Characters shown of one file, of all files, of the log, and of one line of it."""
_LOGIN = re.compile(r"(?<=://)[^/\s@]+@")
_PASSING = re.compile(r"(?:/[\w.-]+)*/(?:envsynth-sandbox-[\w-]+/state/work|(?:resolve|sdists)-\w+)(?=/)")
_SECRET = 8
"""Characters; a shorter value of a variable is nobody's secret."""
_SECRETIVE = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.I)


class Repair:
    """One project's way from no recipe to one.

    Args:
        builder: what tries recipes.
        project: the tree.
        newest: ISO 8601 moment of the tree's commit.
        source: names the project.
        context: the pipeline's services.
    """

    def __init__(self, builder: Builder, project: Project, newest: str, source: Source, context: Context) -> None:
        self._builder, self._project, self._newest = builder, project, newest
        self._source, self._context = source, context
        self._best: tuple[Attempt, WantedRecipe] | None = None
        self._interpreters = usable_versions()
        self._rounds = 0

    def kept(self) -> bool:
        """Whether an earlier repair led to a recipe: the project's own need not be tried again."""

        def missing() -> str:
            raise LookupError

        try:
            self._context.remember("python-repaired", self._builder.key(), missing)
        except LookupError:
            return False
        return True

    def solve(self, failure: Unsolved) -> Solution:
        """The solution of an earlier repair, else of a new one by the author's model.

        Args:
            failure: why the project's own recipes are no use; with its log, where they were tried just now.

        Raises:
            SourceError: there is no author, the network may not be used, or no recipe of the model's helped.
            ModelError: the endpoint failed, or the budget is spent.
            SandboxError: the registry, the disk or the sandbox failed.
        """

        def make() -> str:
            # None of this is kept where it fails: another model, or none of the limits, may be there next time.
            client = None if self._context.offline else self._context.model("author")
            if client is None:
                raise failure
            return self._asked(client, failure)

        text = self._context.remember("python-repaired", self._builder.key(), make)
        return Solution.from_json(text, self._source.uri)

    def _asked(self, client: Client, failure: Unsolved) -> str:
        """The solution that a model's recipes lead to, kept for each tree and model, as is that there is none."""
        from envsynth.llm import load_prompt

        prompt = load_prompt(_PROMPT)
        settings = client.settings
        key = digest_of(
            [self._project.tree.digest(), self._builder.key(), settings.model, settings.sampling.document(),
             prompt.version]
        )  # fmt: skip

        def make() -> str:
            solution = self._proposed(client, failure)
            return solution.to_json() if solution is not None else json.dumps({"failed": "", "rounds": self._rounds})

        text = self._context.remember("python-repairs", key, make)
        if text.startswith('{"failed"'):
            rounds = json.loads(text)["rounds"]
            raise unsolved(self._source.uri, f"{failure.cause}; and {rounds} recipes by {settings.model}", failure.log)
        return text

    def _proposed(self, client: Client, failure: Unsolved) -> Solution | None:
        """Let a model propose recipes until one collects everything; else the one that collects most."""
        from envsynth.llm import Order, Unrepaired, author, load_prompt

        version = load_prompt(_PROMPT).version
        order = Order("recipe", WantedRecipe, self._messages(failure), version, self._examined)
        # Where what it wrote is no use, the project's own failure is what there is to tell.
        with suppress(Unrepaired, ModelOutputError):
            author(client, order, repairs=ROUNDS - 1)
        if self._best is None:
            return None
        attempt, wanted = self._best
        assert attempt.solution is not None
        self._keep(client.settings.model, attempt.solution, wanted)
        return attempt.solution

    def _examined(self, wanted: WantedRecipe) -> Sequence[Finding]:
        """Try a recipe; what went wrong, without the user's passwords."""
        self._rounds += 1
        if unfit := list(unfit_parts(wanted, self._interpreters, own_names(self._project))):
            return unfit
        # A build from source sees how the registry is reached; a login there is not for code that a model picked.
        attempt = self._builder.attempt(wanted, wheels_only=any(map(_LOGIN.search, registry_settings().values())))
        if attempt.collected and (self._best is None or attempt.collected > self._best[0].collected):
            self._best = (attempt, wanted)
        return [finding.model_copy(update={"message": _redacted(finding.message)}) for finding in attempt.findings]

    def _keep(self, model: str, solution: Solution, wanted: WantedRecipe) -> None:
        """Write the recipe with everything pinned, and say where."""
        own = own_names(self._project)  # one that another distribution brought along comes with it again
        pins = tuple(
            pin for pin in solution.recipe.requirements if canonicalize_name(pin.partition("==")[0]) not in own
        )
        pinned = WantedRecipe(
            python=solution.recipe.interpreter, requirements=pins,
            newest=solution.recipe.newest[:10], build=wanted.build, variables=wanted.variables,
        )  # fmt: skip
        folder = self._context.cache_dir / "recipes"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{digest_of(pinned.document())[:16]}.json"
        path.write_text(pinned.to_json() + "\n", "utf-8")
        times = "1 recipe" if self._rounds == 1 else f"{self._rounds} recipes"
        self._context.note(
            f"{self._source.uri}: {model} needed {times} to make its tests run; kept in {path}, which the option "
            "recipe=FILE takes where there is no model"
        )

    def _messages(self, failure: Unsolved) -> tuple[Message, ...]:
        from envsynth.llm import load_prompt, quoted, user

        lines = [f"- {line[-_LINE:]}" for line in failure.log] or [f"- {failure.cause}"]
        log = _redacted("\n".join(lines))[-_LOG:]
        runner = "unittest" if choose_runner(self._project) == "unittest" else "pytest"
        text = load_prompt(_PROMPT).fill(
            interpreters=", ".join(self._interpreters), requires=_plain(requires_python(self._project)) or "nothing",
            day=_plain(self._newest[:10]), runner=runner, log=quoted(log, "log of the recipes"),
            files="\n\n".join(self._files()),
        )  # fmt: skip
        return (user(text),)

    def _files(self) -> Iterator[str]:
        from envsynth.llm import quoted

        left = _FILES
        for path in self._project.paths:
            text = self._project.text(path) if _TELLING.match(path) else ""
            if text.strip() and left > 0:
                shown = _redacted(text[: min(_FILE, left)])
                left -= len(shown)
                yield quoted(shown, path)


def own_names(project: Project) -> frozenset[str]:
    """What a project may be called at the registry: its declared name, and those of its packages and modules."""
    tops = {path.partition("/")[0] for path in project.paths if path.endswith("/__init__.py")}
    tops |= {path.split("/")[1] for path in project.paths if re.fullmatch(r"(?:src|lib)/[^/]+/__init__\.py", path)}
    tops |= {path.removesuffix(".py") for path in project.paths if path.endswith(".py") and "/" not in path}
    names = {declared(project, "", usable_versions()[-1]).name, *tops} - {"", "src", "lib", "tests", "test", "docs"}
    return frozenset(canonicalize_name(name) for name in names)


def asked_for(builder: Builder, project: Project, source: Source, context: Context) -> Solution | None:
    """The solution of the recipe that a source's option `recipe=FILE` names; None: it names none.

    Raises:
        ConfigError: there is no such recipe, or it holds what no recipe may.
        SourceError: under it no test can be collected.
        SandboxError: the registry, the disk or the sandbox failed.
    """
    wanted = wanted_by(source, usable_versions(), own_names(project))
    if wanted is None:
        return None

    def make() -> str:
        attempt = builder.attempt(wanted)
        if attempt.solution is None or not attempt.collected:
            raise unsolved(source.uri, f"{attempt.findings[0].message[-300:]} (recipe={dict(source.extra)['recipe']})")
        return attempt.solution.to_json()

    key = digest_of([builder.key(), wanted.document()])
    return Solution.from_json(context.remember("python-asked-for", key, make), source.uri)


def _redacted(text: str) -> str:
    """A text without the logins of addresses, values of variables that hold secrets, and names of passing folders."""
    # What is different each time would keep answers from being found in the cache.
    text = _PASSING.sub("", _LOGIN.sub("***@", text))
    for name, value in os.environ.items():
        if len(value) >= _SECRET and _SECRETIVE.search(name):
            text = text.replace(value, "***")
    return text


def _plain(text: str) -> str:
    return re.sub(r"[^\w.,<>=!~* -]", "_", text)[:60]
