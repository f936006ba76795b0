"""The generator: leads by counting, candidates by drawing, solving and playing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from math import lcm
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import JsonValue

from envsynth.errors import ConfigError
from envsynth.generators.mechanism.config import DEFAULT_LIMIT, read_settings, wardrobe_of
from envsynth.generators.mechanism.contract import Family, Presentation, Refused, Skin
from envsynth.generators.mechanism.draw import MAX_DRAWS, Draw, Shown, draw, find, play_attacks, show
from envsynth.generators.mechanism.dress import dressed_sql, instruction, skins_of
from envsynth.generators.mechanism.players import Played
from envsynth.generators.mechanism.registry import family
from envsynth.generators.mechanism.retold import original_of
from envsynth.generators.mechanism.setter import number_of, setter_version, setting_of
from envsynth.generators.mechanism.skin_checks import skin_faults
from envsynth.generators.mechanism.verifier import verifier
from envsynth.llm import Client, Role, Unrepaired
from envsynth.models import (
    Budget,
    Candidate,
    Dropped,
    Lead,
    Provenance,
    Source,
    Trajectory,
    Utility,
    WorldRef,
    digest_of,
)  # fmt: skip
from envsynth.protocols import Context
from envsynth.rewriting import rewrite, rewriting_version
from envsynth.runtime.rewards import normalised
from envsynth.runtime.version import world_digest
from envsynth.seeds import stream


class Mechanism:
    """Decision problems, solved before any text exists."""

    name = "mechanism"
    version = "3"
    environment = "world"
    models: ClassVar[tuple[str, ...]] = ("author",)

    def check(self, source: Source) -> None:
        """Read the options.

        Raises:
            ConfigError: the family or an option is unknown, or a value is bad.
        """
        read_settings(source)

    def asks(self, lead: Lead, source: Source) -> tuple[Role, ...]:
        """Roles of models that a lead is developed with: one in a skin that ships and in its own words needs none."""
        new = number_of(lead.ref.split("-", 2)[2]) is not None
        return ("author",) if new or read_settings(source).rewrite else ()

    def plan(self, source: Source, context: Context) -> Iterator[Lead | Dropped]:
        """`limit` leads: mechanisms in turn over levels and skins, each in every presentation.

        Raises:
            ConfigError: as for `check`, or a model is asked for and none is configured.
        """
        settings = read_settings(source)
        found, levels = family(source.location), settings.levels
        skins, vague = wardrobe_of(source, settings, configured=context.model("author") is not None)
        limit = source.options.limit or DEFAULT_LIMIT
        index = 0
        for number in count():
            level = levels[number % len(levels)]
            skin = skins[(number + number // lcm(len(levels), len(skins))) % len(skins)]
            for presentation in settings.presentations:
                if index == limit:
                    return
                yield Lead(
                    generator=self.name, generator_version=self.version, source=source.uri,
                    name=source.location.replace("_", "-"), revision=found.version, strategy=presentation.value,
                    ref=f"l{level}-{number:05d}-{skin}", title=f"{found.title}, level {level}, as {skin}",
                    seed=source.options.seed, index=index,
                    settings=_settings_digest(found, skin, vague[number % len(vague)]), group=f"{level}-{number}",
                )  # fmt: skip
                index += 1

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        """Draw, solve and play one mechanism in one presentation; its skin is written first where it is a new one.

        Raises:
            ModelError: as for `llm.author`.
        """
        kind = family(source.location)
        try:
            worn = _worn(kind, lead, context)
            solved = _solved(worn, kind, lead, context)
        except Unrepaired as exc:
            return Dropped(lead=lead, reason=exc.reason, detail=str(exc))
        except Refused as exc:
            return Dropped(lead=lead, reason="reference_refused", detail=str(exc))
        except _Unfair as exc:
            return Dropped(lead=lead, reason=exc.reason, detail=str(exc))
        settings = read_settings(source)
        level = settings.rewrite[int(lead.ref.split("-", 2)[1]) % len(settings.rewrite)] if settings.rewrite else None
        return _candidate(solved, worn, _told(solved, lead, level, context), lead, context)

    def faults(self) -> Iterator[str]:
        """What is wrong with skins, one line each: `envsynth plugins check`."""
        return skin_faults()


_TELLS: Mapping[Presentation, Literal["nothing", "rows", "instruction"]] = {
    Presentation.HIDDEN: "nothing", Presentation.REVEALED: "rows", Presentation.WRITTEN: "instruction",
}  # fmt: skip
"""Where each presentation tells what it does not hide."""


class _Worn(NamedTuple):
    """A skin, and who wrote it."""

    skin: Skin
    title: str = ""
    """What its author calls the domain."""
    author: str = "deterministic"
    repairs: int = 0


class _Solved(NamedTuple):
    """Everything that was found out of one mechanism in one presentation."""

    draw: Draw
    shown: Shown
    attacks: Mapping[str, Played]


class _Told(NamedTuple):
    """An instruction, and who put it into words that are not the skin's."""

    text: str
    author: str = ""
    metadata: Mapping[str, JsonValue] = MappingProxyType({})


class _Unfair(Exception):
    """Nothing that can be graded was drawn."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def _worn(kind: Family[Any, Any], lead: Lead, context: Context) -> _Worn:
    """The skin of a lead.

    Raises:
        Unrepaired: it is a new one, and could not be mended.
        ModelError: as for `llm.author`.
    """
    name = lead.ref.split("-", 2)[2]
    number = number_of(name)
    if number is None:
        return _Worn(skins_of(kind.name)[name])
    found = setting_of(kind, number, lead.seed, _author(context, lead.source), context)
    title = found.skin.title.strip() if found.skin else ""
    return _Worn(found.dressed(name, kind.name), title, found.model, found.repairs)


def _author(context: Context, where: str) -> Client:
    client = context.model("author")
    if client is None:
        raise ConfigError(
            "a model is to write, and no author model is configured", where=where,
            next_step="name one with --llm MODEL or under [llm.author] of envsynth.toml",
        )  # fmt: skip
    return client


def _solved(worn: _Worn, kind: Family[Any, Any], lead: Lead, context: Context) -> _Solved:
    """Draw and play.

    Raises:
        Refused: a reference policy made a call that is not possible.
        _Unfair: no draw can be graded.
    """
    level, number, _ = lead.ref.split("-", 2)
    skin, presentation = worn.skin, Presentation(lead.strategy)
    seed = f"{kind.name}/{lead.seed}/{level}/{number}/{skin.name}"
    # Found once for all presentations.
    key = digest_of([Mechanism.version, world_digest(), _skin_digest(kind, skin), seed])
    fair = int(context.remember("mechanism-draw", key, lambda: str(find(kind, skin, int(level[1:]), seed))))
    if not fair:
        detail = f"in {MAX_DRAWS} draws the default was never inside {kind.band} with every attack below"
        raise _Unfair("no_draw_in_band", detail)
    found = draw(kind, skin, int(level[1:]), seed, fair)
    shown = show(found, presentation)
    if shown.played[shown.reference].utility <= shown.played["default"].utility:
        raise _Unfair("reference_not_better", f"than the default, told {presentation}")
    return _Solved(found, shown, play_attacks(found, shown.world, presentation, stream(seed, "attacks")))


def _told(solved: _Solved, lead: Lead, level: int | None, context: Context) -> _Told:
    """The instruction, in other words where that is wanted.

    Raises:
        ModelEndpointError, BudgetSpent: as for `llm.author`.
    """
    presentation = Presentation(lead.strategy)
    facts = solved.draw.family.facts(solved.draw.parameters, presentation)
    text = instruction(solved.draw.skin, presentation, facts)
    if level is None:
        return _Told(text)
    done = rewrite(
        _author(context, lead.source), original_of(text, facts, solved.shown.world, solved.draw.skin.names), level
    )
    return _Told(done.text, "" if done.reason else done.model, {"rewrite": done.metadata()})


def _candidate(solved: _Solved, worn: _Worn, told: _Told, lead: Lead, context: Context) -> Candidate:
    kind, parameters = solved.draw.family, solved.draw.parameters
    world, utility, presentation = solved.shown.world, _utility(solved), Presentation(lead.strategy)
    return Candidate(
        instruction=told.text,
        environment=WorldRef(world=context.blobs.put(world.to_json().encode()), tells=_TELLS[presentation]),
        verifier=verifier(world, utility),
        panel=_panel(solved, utility.document()),
        budget=Budget(turns=kind.turns(parameters, presentation)),
        provenance=Provenance(lead=lead, author=told.author or worn.author),
        metadata={**_metadata(solved, lead, presentation), **_authored(worn), **told.metadata},
    )


def _authored(worn: _Worn) -> dict[str, JsonValue]:
    """What is told of a skin that a model wrote."""
    return {} if worn.author == "deterministic" else {"title": worn.title, "skin_repairs": worn.repairs}


def _utility(solved: _Solved) -> Utility:
    """How far an episode came, between the default and the reference as they were played."""
    kind, skin, parameters, tape = solved.draw.family, solved.draw.skin, solved.draw.parameters, solved.draw.tape
    realised = {name: played.utility for name, played in solved.shown.played.items()}
    return Utility(
        sql=dressed_sql(kind.utility(parameters), skin), default=realised["default"],
        reference=realised[solved.shown.reference], realised=realised, expected=dict(kind.expected(parameters)),
        hindsight=kind.hindsight(parameters, tape), band=kind.band, solved=kind.solved(parameters, tape),
    )  # fmt: skip


def _panel(solved: _Solved, scale: Mapping[str, Any]) -> tuple[Trajectory, ...]:
    """The references and attacks, as they were played, with the outcomes that follow from their utilities."""
    shown = solved.shown
    labels = {"default": "mutant:default", "oracle": "alternative:oracle", "idle": "idle", shown.reference: "reference"}
    lines = {labels[name]: played for name, played in shown.played.items()}
    lines |= {f"attack:{name}": played for name, played in solved.attacks.items()}
    return tuple(
        Trajectory(label=label, calls=played.calls, outcome=normalised(played.utility, scale) if played.calls else 0.0)
        for label, played in lines.items()
    )


def _metadata(solved: _Solved, lead: Lead, presentation: Presentation) -> dict[str, JsonValue]:
    kind, found = solved.draw.family, solved.draw
    level = int(lead.ref.split("-", 1)[0][1:])
    return {
        "family": kind.name,
        "kin": kind.kin,
        "skin": found.skin.name,
        "level": level,
        "presentation": presentation.value,
        "mechanism": digest_of([kind.name, kind.version, lead.seed, lead.ref])[:16],
        "draws": found.number,
    }


def _settings_digest(kind: Family[Any, Any], skin: str, rewrite_to: int | None) -> str:
    """Digest of what a lead is made from, as far as it is known when it is planned."""
    shipped = skins_of(kind.name).get(skin)
    if shipped is not None and rewrite_to is None:
        return _skin_digest(kind, shipped)
    documents = [_skin_document(one) for one in ([shipped] if shipped else skins_of(kind.name).values())]
    setter = setter_version() if shipped is None else ""
    again = "" if rewrite_to is None else f"{rewrite_to} {rewriting_version()}"
    return digest_of([kind.version, setter, again, documents])


def _skin_digest(kind: Family[Any, Any], skin: Skin) -> str:
    return digest_of([kind.version, *_skin_document(skin)])


def _skin_document(skin: Skin) -> list[JsonValue]:
    return [skin.name, skin.unit, dict(skin.words), dict(skin.names), list(skin.labels), dict(skin.texts)]
