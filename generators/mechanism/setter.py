"""The setter: a model writes new skins for a solved family. It sees words only: no solver, parameters or scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from envsynth.asking import fault_reason
from envsynth.errors import ModelOutputError
from envsynth.generators.mechanism.authored import AuthoredSkin, example_of, worn
from envsynth.generators.mechanism.contract import Family, Skin
from envsynth.generators.mechanism.dress import shared_texts, skins_of
from envsynth.generators.mechanism.needs import needs_of
from envsynth.generators.mechanism.skin_findings import MAX_UNIT, Taken, examined
from envsynth.llm import Client, Message, Order, Unrepaired, author, load_prompt, quoted, system, user
from envsynth.models import Finding, Model, digest_of
from envsynth.protocols import Context
from envsynth.seeds import stream

__all__ = ["NEW", "Setting", "number_of", "setter_version", "setting_of"]

NEW = "new-"
"""How names of skins begin that a model wrote."""
_FOLDER = Path(__file__).with_name("prompts")
_KIND = "mechanism-skins"
_SHOWN = 5


class Reading(Model):
    """What a reader finds in a setting."""

    objections: tuple[str, ...] = ()
    """What it says about the game that the rules do not."""


class Setting(Model):
    """What became of one new skin; kept for all leads that wear it."""

    skin: AuthoredSkin | None = None
    """None: it could not be mended."""
    findings: tuple[Finding, ...] = ()
    """Why there is none."""
    repairs: int = 0
    """How often it was sent back."""
    model: str = ""
    """Who wrote it."""

    def dressed(self, name: str, family: str) -> Skin:
        """The skin, under a name.

        Raises:
            Unrepaired: there is none.
        """
        if self.skin is None:
            raise Unrepaired("skin", self.findings, self.repairs)
        return worn(self.skin, name, shared_texts(family))


def setter_version() -> str:
    """Digest of the prompts and word tables: other texts, other skins."""
    prompts = [load_prompt(_FOLDER / f"{name}.md").version for name in ("setter", "setter_system", "skin_reading")]
    names = ("domains.txt", "claims.txt", "praise.txt", "truth.txt")
    tables = [Path(__file__).with_name(name).read_text("utf-8") for name in names]
    return digest_of([*prompts, *tables])


def number_of(skin: str) -> int | None:
    """The number of a new skin, from 1; None for one that ships."""
    tail = skin.removeprefix(NEW)
    return int(tail) if skin.startswith(NEW) and tail.isdecimal() else None


def setting_of(kind: Family[Any, Any], number: int, seed: int, client: Client, context: Context) -> Setting:
    """The new skin of a number, written once for a family and a seed.

    Those before it are written first: it must differ from them.

    Raises:
        ModelError: as for `llm.author`.
    """
    earlier: dict[str, AuthoredSkin] = {}
    for before in range(1, number):
        try:
            found = _remembered(kind, before, seed, client, context, earlier)
        except ModelOutputError:
            continue
        if found.skin is not None:
            earlier[f"{NEW}{before}"] = found.skin
    return _remembered(kind, number, seed, client, context, earlier)


def _remembered(
    kind: Family[Any, Any], number: int, seed: int, client: Client, context: Context,
    earlier: Mapping[str, AuthoredSkin],
) -> Setting:  # fmt: skip
    """The new skin of a number after those before it."""
    shipped = {name: [dict(skin.names), dict(skin.words)] for name, skin in skins_of(kind.name).items()}
    key = digest_of([
        setter_version(), client.settings.model, client.settings.sampling.document(), kind.name, kind.version, number,
        seed, shipped, dict(shared_texts(kind.name)), [skin.document() for skin in earlier.values()],
    ])  # fmt: skip
    return Setting.from_json(
        context.remember(_KIND, key, lambda: _written(kind, number, seed, client, earlier).to_json())
    )


def _written(
    kind: Family[Any, Any], number: int, seed: int, client: Client, earlier: Mapping[str, AuthoredSkin]
) -> Setting:
    """Have a skin written, examined and mended."""
    taken = _taken(kind, earlier)
    prompt, draw = load_prompt(_FOLDER / "setter.md"), _draw(number, seed)

    def examine(skin: AuthoredSkin) -> list[Finding]:
        return examined(skin, kind, f"{NEW}{number}", taken) or list(_read(skin, kind, client, draw))

    order = Order(
        artefact="skin", kind=AuthoredSkin, messages=_messages(kind, number, seed, taken),
        prompt_version=prompt.version, examine=examine,
    )  # fmt: skip
    try:
        found = author(client, order, draw=draw)
    except Unrepaired as exc:
        return Setting(findings=exc.findings, repairs=exc.repairs, model=client.settings.model)
    return Setting(skin=found.value, repairs=len(found.repairs), model=client.settings.model)


def _read(skin: AuthoredSkin, kind: Family[Any, Any], client: Client, draw: int) -> Iterator[Finding]:
    """What a reader of rules and setting, in a conversation of its own, objects to. It can make nothing good.

    What is played cannot tell: a story may lie about a game that is the same as ever.
    """
    prompt = load_prompt(_FOLDER / "skin_reading.md")
    told = skin.document() | {"names": {}, "labels": list(skin.labels)}
    asked = prompt.fill(texts=quoted(_json(shared_texts(kind.name)), "rules"), skin=quoted(_json(told), "setting"))
    messages = [system(load_prompt(_FOLDER / "setter_system.md").text), user(asked)]
    try:
        reading = client.structured(messages, Reading, prompt_version=prompt.version, draw=draw)
    except ModelOutputError as exc:
        yield Finding(rule="skin_not_read", message=f"nobody could compare it with the rules: {fault_reason(exc)}")
        return
    for line in reading.objections[:_SHOWN]:
        yield Finding(rule="skin_contradicts_rules", message=line[:300])


def _messages(kind: Family[Any, Any], number: int, seed: int, taken: Taken) -> tuple[Message, ...]:
    needs, shipped = needs_of(kind), list(skins_of(kind.name).values())
    example = shipped[stream(f"{kind.name}/{seed}/{number}", "setter/example").randrange(len(shipped))]
    names = "\n".join(f"- {name}: {what}" for name, what in needs.names.items())
    words = "\n".join(f"- {word}: {'; '.join(said)}" for word, said in needs.words.items())
    labels = f"{needs.labels} different names of things, without digits" if needs.labels else "an empty list"
    told = load_prompt(_FOLDER / "setter.md").fill(
        title=kind.title, domain=_domain(kind, number, seed), texts=quoted(_json(shared_texts(kind.name)), "texts"),
        names=quoted(names, "names"), words=quoted(words, "words"),
        example=quoted(_json(example_of(example).document()), example.name),
        titles=quoted("; ".join(sorted(taken.titles)), "titles"), most_unit=str(MAX_UNIT), labels=labels,
        tools=", ".join(needs.tools), parameters=", ".join(needs.parameters),
        taken=quoted(", ".join(sorted(taken.tools)), "names of tools"),
    )  # fmt: skip
    return (system(load_prompt(_FOLDER / "setter_system.md").text), user(told))


def _taken(kind: Family[Any, Any], earlier: Mapping[str, AuthoredSkin]) -> Taken:
    """What the skins that ship and the earlier new ones have."""
    shipped = skins_of(kind.name)
    named = {name: skin.names for name, skin in shipped.items()} | {name: one.names for name, one in earlier.items()}
    tools = {names[tool]: name for name, names in named.items() for tool in needs_of(kind).tools if tool in names}
    titles = {name.replace("_", " ").casefold() for name in shipped}
    return Taken(tools, frozenset(titles | {skin.title.strip().casefold() for skin in earlier.values()}))


def _draw(number: int, seed: int) -> int:
    return stream(f"{seed}/{number}", "setter/draw").getrandbits(31)


def _domain(kind: Family[Any, Any], number: int, seed: int) -> str:
    """A corner for each number, all different while there are enough."""
    corners = _domains()
    order = stream(f"{kind.name}/{seed}", "setter/domains").sample(corners, len(corners))
    return order[(number - 1) % len(order)]


@cache
def _domains() -> tuple[str, ...]:
    lines = Path(__file__).with_name("domains.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def _json(value: Any) -> str:
    return json.dumps(value if isinstance(value, dict) else dict(value), ensure_ascii=False, indent=1)
