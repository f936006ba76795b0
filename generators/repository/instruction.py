"""The text that the agent gets: what is wrong, what is expected, in the words of a maintainer; never the fix."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.repository.excerpt import TODAY, Excerpt
from envsynth.generators.repository.interface import Demand, Project, demands
from envsynth.generators.repository.message import Prose, read_message
from envsynth.generators.repository.said import what_happens
from envsynth.generators.repository.testcode import Imported
from envsynth.leaks import Secrets, leaks

MAX_LENGTH = 4500
"""Characters; what is demanded and does not fit is no task for one sitting."""
_MAX_TARGETS = 3
_ERROR = re.compile(r"(Error|Exception|Warning)$")


class Material(NamedTuple):
    """What an instruction is written from."""

    message: str
    """The commit's."""
    excerpts: Sequence[Excerpt]
    functions: Sequence[str]
    """Names of the functions that the solution changes."""
    project: Project
    defined: frozenset[str]
    """Names that the solution's files define."""
    said: Sequence[str]
    """What the failing tests and the modules that could not be imported say."""
    strict: Secrets
    """What no sentence of the message may say: everything new to the files the solution touches."""
    secrets: Secrets
    """What the finished text may not say: everything new to the whole tree."""


class Written(NamedTuple):
    """An instruction, or why there is none."""

    text: str
    reason: str = ""
    detail: str = ""
    author: str = "deterministic"
    """Who wrote it, or a model's name."""
    notes: Mapping[str, JsonValue] = MappingProxyType({})
    """How it came about, for the candidate's metadata."""


def write(material: Material) -> Written:
    """Write the instruction; the same material gives the same text."""
    if not material.excerpts:
        return Written("", "tests_not_readable", "no failing test could be found in the test files' source")
    prose = read_message(material.message, lambda sentence: not leaks(sentence, material.strict))
    wanted = demands(material.excerpts, material.project, material.defined, material.said)
    private = [demand.name for demand in wanted if demand.name.startswith("_") and not demand.name.endswith("__")]
    if private:
        return Written("", "demands_private_name", f"the failing tests use {private[0]}, which only the solution has")
    opening, interface = _opening(prose, wanted, material), _interface(wanted)
    for body, bare in ((prose.body, False), (prose.body, True), ((), True)):
        parts = (opening, *body, _examples(material.excerpts, wanted, bare=bare), interface)
        text = "\n\n".join(part for part in parts if part)
        if len(text) <= MAX_LENGTH:
            break
    else:
        return Written("", "instruction_too_long", f"{len(text)} characters for {len(material.excerpts)} failing tests")
    if found := leaks(text, material.secrets):
        return Written("", "instruction_leaks_fix", f"it says {', '.join(map(repr, found[:3]))}")
    return Written(text)


def _opening(prose: Prose, wanted: Sequence[Demand], material: Material) -> str:
    if prose.title:
        return prose.title
    new = [demand for demand in wanted if demand.kind in ("name", "module")]
    if new:
        return _say("feature", target=_name(new[0]))
    parameters = [demand for demand in wanted if demand.kind == "parameter"]
    if parameters:
        names = ", ".join(f"`{demand.name}`" for demand in parameters if demand.owner == parameters[0].owner)
        return _say("parameter", target=f"`{parameters[0].owner}`", names=names)
    if prose.body:
        return ""
    targets = _targets(material)
    if not targets:
        return ""
    names = " and ".join(f"`{target}`" for target in targets)
    return _say("bug" if len(targets) == 1 else "bugs", target=names)


def _targets(material: Material) -> list[str]:
    """What the tests call and the solution changes; public names of the project."""
    code = "\n".join(excerpt.code for excerpt in material.excerpts)
    imported = {found.alias: found for excerpt in material.excerpts for found in excerpt.imports}
    called: list[str] = []
    for function in material.functions:
        owner, _, last = function.rpartition(".")
        if owner in imported and imported[owner].name:
            public = owner if last.startswith("_") or f".{last}(" not in code else function
            called.append(f"{imported[owner].module}.{public}")
        elif not owner and not last.startswith("_"):
            called += _called(last, code, imported, material.project)
    if called:
        return list(dict.fromkeys(called))[:_MAX_TARGETS]
    names = [found for found in imported.values() if _is_subject(found, material.project)]
    return [f"{names[0].module}.{names[0].name}"] if len(names) == 1 else []


def _is_subject(found: Imported, project: Project) -> bool:
    """Whether an import is a thing of the project that can misbehave: no module, no exception."""
    if not found.name or not project.owns(found.module) or _ERROR.search(found.name):
        return False
    return not project.has_module(f"{found.module}.{found.name}")


def _called(name: str, code: str, imported: Mapping[str, Imported], project: Project) -> list[str]:
    """A function's public name, where the code calls it by that."""
    found = imported.get(name)
    if found is not None and found.name and project.owns(found.module):
        return [f"{found.module}.{found.name}"]
    for prefix in re.findall(rf"\b(\w+)\.{re.escape(name)}\(", code):
        module = imported.get(prefix)
        if module is not None and project.owns(module.module):
            return [f"{prefix}.{name}"]
    return []


def _name(demand: Demand) -> str:
    return f"`{demand.owner}.{demand.name}`" if demand.owner else f"`{demand.name}`"


# --- examples -------------------------------------------------------------------------------------------------


def _examples(excerpts: Sequence[Excerpt], wanted: Sequence[Demand], *, bare: bool) -> str:
    """The calls and what they must give; bare: without comments and docstrings."""
    new = any(demand.kind in ("name", "module", "member", "parameter") for demand in wanted)
    key = f"{'one' if len(excerpts) == 1 else 'many'}_{'new' if new else 'case' if len(excerpts) == 1 else 'cases'}"
    blocks = [_imports(excerpts)]
    helpers = dict.fromkeys(helper for excerpt in excerpts for helper in excerpt.helpers)
    blocks += [_bare(helper) if bare else helper for helper in helpers]
    for excerpt in excerpts:
        lines = [f"# {excerpt.heading}"] if len(excerpts) > 1 or _adds(excerpt.heading, excerpt.code) else []
        said = what_happens(excerpt.test.message)
        if new and re.match(r"raises (\w*Attribute|Import|Name|ModuleNotFound)Error", said):
            said = ""
        lines.append(_bare(excerpt.code) if bare else _with_today(excerpt.code, said))
        blocks.append("\n".join(lines))
    code = "\n\n".join(block for block in blocks if block)
    fixtures = sorted({name for excerpt in excerpts for name in excerpt.fixtures})
    about = ""
    if fixtures:
        plural = len(fixtures) > 1
        about = _say(
            "fixtures", names=" and ".join(f"`{name}`" for name in fixtures),
            is_are="are" if plural else "is", word="fixtures" if plural else "fixture",
        )  # fmt: skip
    return f"{_say(key)}\n\n```python\n{code}\n```" + (f"\n\n{about}" if about else "")


def _with_today(code: str, said: str) -> str:
    """What happens today, told right below the statement that fails."""
    lines = [line for line in code.splitlines() if said or line.strip() != TODAY]
    today = _say("today", said=said)
    told = [line.replace(TODAY, today) if line.strip() == TODAY else line for line in lines]
    return "\n".join(told if not said or told != lines else [*told, today])


def _bare(code: str) -> str:
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return code
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _imports(excerpts: Iterable[Excerpt]) -> str:
    plain: set[str] = set()
    names: dict[str, set[str]] = {}
    for found in (found for excerpt in excerpts for found in excerpt.imports):
        if found.name:
            names.setdefault(found.module, set()).add(
                found.name + (f" as {found.alias}" if found.alias != found.name else "")
            )
        else:
            plain.add(found.statement())
    from_lines = [f"from {module} import {', '.join(sorted(words))}" for module, words in sorted(names.items())]
    return "\n".join([*sorted(plain), *from_lines])


def _adds(heading: str, code: str) -> bool:
    """Whether a heading says more than the code under it."""
    words = {word.lower() for word in re.findall(r"[A-Za-z]{3,}", heading)}
    return bool(words - {word.lower() for word in re.findall(r"[A-Za-z]{3,}", code.replace("_", " "))})


# --- interface ------------------------------------------------------------------------------------------------


def _interface(wanted: Sequence[Demand]) -> str:
    lines = []
    for demand in wanted:
        calls = " and ".join(f"`{call}`" for call in demand.calls)
        if demand.kind == "module":
            lines.append(_say("interface_module", module=demand.name))
        elif demand.kind == "name":
            key = "interface_called" if calls else "interface_name"
            lines.append(_say(key, name=demand.name, module=demand.owner, calls=calls))
        elif demand.kind == "member" and calls:
            lines.append(_say("interface_member", name=demand.name, calls=calls))
        elif demand.kind == "parameter" and calls:
            lines.append(_say("interface_parameter", name=demand.name, function=demand.owner, calls=calls))
    return _say("interface_title") + "\n\n" + "\n".join(lines) if lines else ""


# --- words ----------------------------------------------------------------------------------------------------


def _say(key: str, **names: str) -> str:
    return _templates()[key].format(**names)


@cache
def _templates() -> Mapping[str, str]:
    return dict(tomllib.loads((resources.files(__package__) / "templates" / "instruction.toml").read_text("utf-8")))
