"""An author model writes the instruction, back from the change to the issue; it is examined as soon as it is there."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, JsonValue

from envsynth.asking import fault_reason
from envsynth.errors import ModelOutputError
from envsynth.generators.repository.asserted import strings_in
from envsynth.generators.repository.config import Settings
from envsynth.generators.repository.excerpt import Excerpt
from envsynth.generators.repository.existence import Names
from envsynth.generators.repository.instruction import MAX_LENGTH, Material, Written, write
from envsynth.generators.repository.interface import demands
from envsynth.generators.repository.stated import Stated
from envsynth.generators.repository.sufficiency import Facts, Needs, insufficient, wanted
from envsynth.generators.repository.testcode import imports_of
from envsynth.generators.repository.vagueness import LEVELS, level_of, misfit
from envsynth.generators.repository.wording import HiddenTests, leaking, unseemly
from envsynth.leaks import Change
from envsynth.llm import Client, Message, Order, Prompt, Unrepaired, author, load_prompt, quoted, system, user
from envsynth.models import Finding, Lead, Model, Source, digest_of
from envsynth.options import needs_author
from envsynth.protocols import Context

__all__ = ["Brief", "Examination", "Fact", "Issue", "author_of", "instruct", "keyed", "prompt_version"]

RESCUED = ("instruction_too_long", "instruction_leaks_fix")
"""Why there may be no deterministic text although a model's may be fit."""
_LOOKED_AT = 2 * MAX_LENGTH
"""Characters; a longer text is not even searched."""
_PROMPTS = Path(__file__).with_name("prompts")
_LIMITS = {"message": 3_000, "diff": 16_000, "tests": 14_000, "failures": 4_000, "before": 24_000, "needs": 6_000}
"""Characters of each document that the model is shown."""


class Fact(Model):
    """Something a solution needs to know, and where it can be found."""

    value: str = Field(min_length=1, max_length=2000)
    """The name or value, as it is written there."""
    found: Literal["instruction", "file", "symbol"]
    """In the issue, in a visible file, or as the name of something that exists."""
    where: str = Field(default="", max_length=500)
    """The file's path, or the name."""


class Issue(Model):
    """What a model writes."""

    title: str
    """One line."""
    body: str
    """The rest."""
    facts: tuple[Fact, ...] = Field(min_length=1, max_length=200)
    """What a solution needs to know."""

    @property
    def text(self) -> str:
        """What the agent gets."""
        return f"{self.title.strip()}\n\n{self.body.strip()}"


class Brief(NamedTuple):
    """What an instruction is written from, by a model too."""

    material: Material
    changes: Sequence[Change]
    """The solution's files that are text."""
    texts: Mapping[str, str]
    """Text of each file of the start tree, by path."""
    paths: Sequence[str]
    """Every path of the start tree."""
    diff: str
    """The solution as a unified diff."""
    tests: Mapping[str, str]
    """Text of each test file that only the grader has in this version, by path."""
    level: int
    """Vagueness."""


def author_of(settings: Settings, source: Source, context: Context) -> Client | None:
    """The model that writes; None: deterministic code does.

    Raises:
        ConfigError: a model is asked for, and the author role has none.
    """
    if settings.author == "deterministic":
        return None
    client = context.model("author")
    if client is None and settings.author == "model":
        raise needs_author("author=model", source)
    return client


def instruct(brief: Brief, client: Client | None, tell: Callable[[str], None]) -> Written:
    """The instruction: a model's where there is one and what it writes is fit, else the deterministic one.

    Args:
        brief: what it is written from.
        client: the author's model.
        tell: told in one line where the model's text is not used.

    Raises:
        ModelOutputError: the model's answer is no use, and there is no other text.
        ModelError: there was no answer.
    """
    plain = write(brief.material)
    if client is None or plain.reason not in ("", *RESCUED):
        return plain
    name = client.settings.model
    examination = Examination(brief)
    order = Order("issue", Issue, _messages(brief, examination.needs), prompt_version(), examination.findings)
    try:
        authored = author(client, order)
    except Unrepaired as exc:
        reason, detail = exc.reason, str(exc)
    except ModelOutputError as exc:
        if plain.reason:
            raise
        reason, detail = fault_reason(exc), str(exc)
    else:
        repairs: list[JsonValue] = [[*dict.fromkeys(finding.rule for finding in found)] for found in authored.repairs]
        about: JsonValue = {"vagueness": brief.level, "prompt": prompt_version(), "repairs": repairs}
        return Written(authored.value.text, author=name, notes={"authored": about})
    if plain.reason:
        return Written("", reason, detail)
    tell(f"what {name} wrote of a change was not fit ({reason}): its deterministic instruction is used")
    return plain._replace(notes={"not_authored": {"model": name, "vagueness": brief.level, "reason": reason,
                                                  "detail": detail[:500]}})  # fmt: skip


class Examination:
    """Everything that is asked of a text that a model wrote."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        material = brief.material
        excerpts = [_with_inner_imports(excerpt) for excerpt in material.excerpts]
        wanted = demands(excerpts, material.project, material.defined, material.said)
        facts = Facts(excerpts, material.project, wanted, brief.changes, material.functions, brief.texts)
        self.needs = Needs(facts)
        shown = "\n".join(text for excerpt in material.excerpts for text in (excerpt.code, *excerpt.helpers))
        imports = "\n".join(found.statement() for excerpt in material.excerpts for found in excerpt.imports)
        names = [name for excerpt in material.excerpts for name in excerpt.test.names]
        shown = f"{imports}\n{shown}"
        nodes = [node for excerpt in material.excerpts for node in excerpt.nodes]
        literals = "\n".join(text for text in strings_in(nodes) if isinstance(text, str))
        self._hidden = HiddenTests(tuple(brief.tests), names, shown, literals, "\n".join(brief.tests.values()))
        self._known = "\n".join(brief.texts.values())
        self._names = Names(material.project, brief.paths, shown, wanted)

    def findings(self, issue: Issue) -> list[Finding]:
        """Everything wrong with an issue, the worst first."""
        if len(issue.text) > _LOOKED_AT:
            return [Finding(rule="instruction_too_long", message=f"{len(issue.text)} characters")]
        found = unseemly(issue.title, issue.body, self._hidden, self._known)
        return [*dict.fromkeys([*found, *self.of_text(issue.text), *self._unfounded(issue)])]

    def of_text(self, text: str) -> list[Finding]:
        """What is wrong with a text, its wording aside."""
        material, level = self._brief.material, self._brief.level
        return [
            *leaking(text, material.secrets, material.strict, self._brief.diff, self._hidden.shown),
            *self._names.invented(text),
            *insufficient(text, self.needs, level),
            *misfit(text, self.needs, level),
        ]

    def _unfounded(self, issue: Issue) -> list[Finding]:
        """Facts that are not where the author says."""
        said = Stated(issue.text)
        lost = [fact for fact in issue.facts if not self._is_there(fact, issue.text, said)]
        if not lost:
            return []
        shown = "; ".join(
            f"{fact.value[:80]!r} ({fact.found} {fact.where[:80]})".replace(" )", ")") for fact in lost[:5]
        )
        return [Finding(rule="fact_not_found", message=f"not where the facts say: {shown}", where="facts")]

    def _is_there(self, fact: Fact, text: str, said: Stated) -> bool:
        if fact.found == "instruction":
            return said.says(fact.value) or _squeezed(fact.value) in _squeezed(text)
        if fact.found == "symbol":
            name = (fact.where or fact.value).strip("`").removesuffix("()")
            return self._names.has(name)
        content = self._brief.texts.get(fact.where.removeprefix("./"))
        return content is not None and (_squeezed(fact.value) in _squeezed(content) or Stated(content).says(fact.value))


def keyed(lead: Lead, settings: Settings) -> Lead:
    """A lead whose text a model writes: how much it is to say, and how the model is asked, are part of the work."""
    level = level_of(settings.vagueness, lead.seed, lead.ref)
    return lead.model_copy(update={"settings": digest_of([lead.settings, level, prompt_version()])})


@cache
def prompt_version() -> str:
    """Version of everything that the model is told beside the material."""
    texts = [_prompt("issue_writer").version, _prompt("issue_order").version]
    texts += [_prompt(f"vagueness_{level}").version for level in LEVELS]
    return hashlib.sha256(" ".join(texts).encode()).hexdigest()[:16]


def _prompt(name: str) -> Prompt:
    return load_prompt(_PROMPTS / f"{name}.md")


def _messages(brief: Brief, needs: Needs) -> tuple[Message, ...]:
    material = brief.material
    tests = "\n\n".join(
        f"# {excerpt.heading}\n" + "\n".join((*excerpt.helpers, excerpt.code)) for excerpt in material.excerpts
    )
    failures = "\n".join(dict.fromkeys(excerpt.test.message or "(not even collected)" for excerpt in material.excerpts))
    shown = {
        "message": (material.message, "message of the commit"),
        "diff": (brief.diff, "the change"),
        "tests": (tests, "the failing tests, as scripts"),
        "failures": ("\n".join((failures, *material.said[:10])), "what they say before the change"),
        "before": (_before(brief.changes), "the code before the change"),
        "needs": ("\n".join(wanted(needs, brief.level)), "what the failing tests require"),
    }
    values = {key: quoted(_clipped(text, _LIMITS[key]), name) for key, (text, name) in shown.items()}
    told = _prompt("issue_order").fill(vagueness=_prompt(f"vagueness_{brief.level}").text, **values)
    return system(_prompt("issue_writer").text), user(told)


def _with_inner_imports(excerpt: Excerpt) -> Excerpt:
    """An excerpt that knows what its own code imports."""
    parts = (part for node in excerpt.nodes for part in ast.walk(node))
    inner = {found.alias: found for part in parts for found in imports_of(part)}
    return excerpt._replace(imports=(*excerpt.imports, *inner.values()))


def _before(changes: Sequence[Change]) -> str:
    """The files that the solution changes, each with its share of the room."""
    kept = [change for change in changes if change.before]
    room = _LIMITS["before"] // max(1, len(kept))
    return "\n\n".join(f"# {change.path}\n{_around(change, room)}" for change in kept)


def _around(change: Change, room: int) -> str:
    """A file, or of a longer one what stands around its changed lines."""
    if len(change.before) <= room:
        return change.before
    after = set(change.after.splitlines())
    lines = change.before.splitlines()
    changed = [number for number, line in enumerate(lines) if line not in after] or [0]
    reach = max(5, room // 60 // (2 * len(changed)))
    wanted_lines = {near for number in changed for near in range(number - reach, number + reach + 1)}
    return "\n".join(line for number, line in enumerate(lines) if number in wanted_lines)


def _clipped(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room]}\n[... {len(text) - room} characters are left out]"


def _squeezed(text: str) -> str:
    return " ".join(text.split())
