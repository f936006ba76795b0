"""Bugs that a model makes: a function changed so that it is subtly wrong, or written anew and not quite right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from envsynth.errors import ConfigError
from envsynth.generators.repository.suspicion import against, meaning_the_same
from envsynth.generators.repository.transplant import Place, Unfit, rebodied, written_function
from envsynth.generators.repository.trial import Bench, Tried
from envsynth.llm import Client, Message, Order, Unrepaired, author, load_prompt, quoted, user
from envsynth.models import Finding, Model, Source
from envsynth.protocols import Context

__all__ = ["LM_STRATEGIES", "Broken", "Failed", "broken_by_model", "require_author", "unified"]

LM_STRATEGIES = ("lm_modify", "lm_rewrite")
_PROMPTS = {name: load_prompt(Path(__file__).with_name("prompts") / f"{name}.md") for name in LM_STRATEGIES}
_WHOLE_FILE = 40_000
"""Characters; of a longer file the beginning and the surroundings of the function are shown."""
_BEGINNING, _AROUND = 4_000, 12_000
_MAX_FUNCTION = 30_000


class ModifiedFunction(Model):
    """A function that is subtly wrong."""

    function: str = Field(max_length=_MAX_FUNCTION)
    """The whole function, from its first decorator or `def` to its last line."""
    fault: str = Field(default="", max_length=2_000)
    """What is wrong with it now, in one sentence."""


class RewrittenFunction(Model):
    """A function written from scratch."""

    function: str = Field(max_length=_MAX_FUNCTION)
    """The whole function, from its first decorator or `def` to its last line."""


class Broken(NamedTuple):
    """A file with a function that a model broke."""

    text: str
    tried: Tried
    model: str
    """Who wrote it."""
    fault: str
    """What the model says is wrong; empty where it was not asked."""
    repairs: int
    """How often it had to write the function again."""


class Failed(NamedTuple):
    """No bug, and why."""

    reason: str
    detail: str


def require_author(strategy: str, source: Source, context: Context) -> Client:
    """The model that writes functions.

    Raises:
        ConfigError: there is none, or it cannot be asked.
    """
    client = context.model("author")
    if client is None:
        raise ConfigError(
            f"strategy {strategy} needs a model", where=str(source.origin), cause="no author is configured",
            next_step="name one with --llm MODEL or in [llm.author] of envsynth.toml, or take the strategy out",
        )  # fmt: skip
    return client


def broken_by_model(client: Client, strategy: str, place: Place, bench: Bench) -> Broken | Failed:
    """Have a function broken, and see what the tests say.

    Args:
        client: the author's model.
        strategy: `lm_modify` or `lm_rewrite`.
        place: the function.
        bench: the project, whose tests ran once as they are.

    Raises:
        ModelError: the model's answer is no use, or there was none.
        SandboxError: the environment failed.
    """
    attempt = _Attempt(place, bench)
    try:
        if strategy == "lm_modify":
            return _modified(client, place, attempt)
        return _rewritten(client, place, attempt)
    except Unrepaired as exc:
        return Failed(exc.reason, str(exc))


def unified(path: str, before: str, after: str) -> bytes:
    """The change of one file as a unified diff that `git apply` takes."""
    lines = []
    for line in unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    ):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return f"diff --git a/{path} b/{path}\n{''.join(lines)}".encode()


def _modified(client: Client, place: Place, attempt: _Attempt) -> Broken:
    order = Order(
        "function", ModifiedFunction, _asked("lm_modify", place, place.function, place.text),
        _PROMPTS["lm_modify"].version, lambda written: attempt.examined(written.function),
    )  # fmt: skip
    done = author(client, order)
    return Broken(attempt.text, attempt.tried(), client.settings.model, done.value.fault, len(done.repairs))


def _rewritten(client: Client, place: Place, attempt: _Attempt) -> Broken | Failed:
    order = Order(
        "function", RewrittenFunction, _asked("lm_rewrite", place, place.head, place.without_body()),
        _PROMPTS["lm_rewrite"].version, lambda written: attempt.placed(written.function, subtle=False),
    )  # fmt: skip
    done = author(client, order)
    if meaning_the_same(place.text, attempt.text):
        return Failed("rewrite_is_right", "the function is written as it was")
    # What the tests say is not told: a model that is asked again for a right function would only learn from it.
    tried = attempt.tried()
    if tried.finding is not None:
        right = tried.finding.rule == "nothing_fails"
        return Failed("rewrite_is_right" if right else tried.finding.rule, tried.finding.message)
    return Broken(attempt.text, tried, client.settings.model, "", len(done.repairs))


@dataclass
class _Attempt:
    """One function's way: the file with what the model wrote last, and what became of it."""

    place: Place
    bench: Bench
    text: str = ""
    last: Tried | None = None

    def placed(self, written: str, *, subtle: bool) -> Sequence[Finding]:
        """What can be seen without running anything; the file is kept."""
        self.last = None
        try:
            source, node = written_function(written, self.place)
            found = against(self.place, node, subtle=subtle)
            self.text = rebodied(self.place, source, node)
        except Unfit as exc:
            return [Finding(rule=exc.rule, message=str(exc), where=self.place.name)]
        return found

    def examined(self, written: str) -> Sequence[Finding]:
        """Everything that is wrong with a function that is to be subtly wrong."""
        found = self.placed(written, subtle=True)
        if found:
            return found
        if meaning_the_same(self.place.text, self.text):
            return [Finding(rule="formatting_only", message="the code means the same as before")]
        wrong = self.tried().finding
        return [] if wrong is None else [wrong]

    def tried(self) -> Tried:
        """What the tests say of the file."""
        if self.last is None:
            self.last = self.bench.tried(self.place.path, self.text)
        return self.last


def _asked(strategy: str, place: Place, function: str, file: str) -> tuple[Message, ...]:
    prompt = _PROMPTS[strategy].fill(
        name=place.name, path=_plain(place.path),
        function=quoted(function, f"{place.name} in {place.path}"), file=quoted(_shown(file, place), place.path),
    )  # fmt: skip
    return (user(prompt),)


def _plain(path: str) -> str:
    """A path that cannot be read as anything else."""
    return re.sub(r"[^\w./ +-]", "_", path)


def _shown(file: str, place: Place) -> str:
    """A file, or of a long one its beginning and what surrounds the function."""
    if len(file) <= _WHOLE_FILE:
        return file
    at = len("".join(place.lines[: place.first - 1]))
    before, after = max(_BEGINNING, at - _AROUND), at + _AROUND
    middle = file[before:after]
    return f"{file[:_BEGINNING]}\n# [...]\n{middle}\n# [...]\n"
