"""The generator: leads by counting, candidates by drawing, solving and playing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from math import lcm
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from envsynth.generators.mechanism.config import DEFAULT_LIMIT, read_settings
from envsynth.generators.mechanism.contract import Presentation, Refused, Skin
from envsynth.generators.mechanism.draw import MAX_DRAWS, Draw, Shown, draw, find, play_attacks, show
from envsynth.generators.mechanism.dress import dressed_sql, instruction, skins_of
from envsynth.generators.mechanism.players import Played
from envsynth.generators.mechanism.registry import family
from envsynth.generators.mechanism.skin_checks import skin_faults
from envsynth.generators.mechanism.verifier import verifier
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
from envsynth.runtime.rewards import normalised
from envsynth.runtime.version import world_digest
from envsynth.seeds import stream


class Mechanism:
    """Decision problems, solved before any text exists."""

    name = "mechanism"
    version = "3"
    environment = "world"

    def check(self, source: Source) -> None:
        """Read the options.

        Raises:
            ConfigError: the family or an option is unknown, or a value is bad.
        """
        read_settings(source)

    def plan(self, source: Source, context: Context) -> Iterator[Lead | Dropped]:
        """`limit` leads: mechanisms in turn over levels and skins, each in every presentation."""
        settings = read_settings(source)
        found, skins, levels = family(source.location), settings.skins, settings.levels
        told = skins_of(source.location)
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
                    settings=digest_of([found.version, *_skin_document(told[skin])]), group=f"{level}-{number}",
                )  # fmt: skip
                index += 1

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        """Draw, solve and play one mechanism in one presentation."""
        level, number, skin_name = lead.ref.split("-", 2)
        kind, skin = family(source.location), skins_of(source.location)[skin_name]
        seed = f"{kind.name}/{lead.seed}/{level}/{number}/{skin.name}"
        presentation = Presentation(lead.strategy)
        try:
            # Found once for all presentations.
            key = digest_of([self.version, world_digest(), lead.settings, seed])
            fair = int(context.remember("mechanism-draw", key, lambda: str(find(kind, skin, int(level[1:]), seed))))
            if not fair:
                detail = f"in {MAX_DRAWS} draws the default was never inside {kind.band} with every attack below"
                return Dropped(lead=lead, reason="no_draw_in_band", detail=detail)
            found = draw(kind, skin, int(level[1:]), seed, fair)
            shown = show(found, presentation)
        except Refused as exc:
            return Dropped(lead=lead, reason="reference_refused", detail=str(exc))
        if shown.played[shown.reference].utility <= shown.played["default"].utility:
            return Dropped(lead=lead, reason="reference_not_better", detail=f"than the default, told {presentation}")
        attacks = play_attacks(found, shown.world, presentation, stream(seed, "attacks"))
        return _candidate(_Solved(found, shown, attacks), lead, presentation, context)

    def faults(self) -> Iterator[str]:
        """What is wrong with skins, one line each: `envsynth plugins check`."""
        return skin_faults()


_TELLS: Mapping[Presentation, Literal["nothing", "rows", "instruction"]] = {
    Presentation.HIDDEN: "nothing", Presentation.REVEALED: "rows", Presentation.WRITTEN: "instruction",
}  # fmt: skip
"""Where each presentation tells what it does not hide."""


class _Solved(NamedTuple):
    """Everything that was found out of one mechanism in one presentation."""

    draw: Draw
    shown: Shown
    attacks: Mapping[str, Played]


def _candidate(solved: _Solved, lead: Lead, presentation: Presentation, context: Context) -> Candidate:
    kind, skin, parameters = solved.draw.family, solved.draw.skin, solved.draw.parameters
    world, utility = solved.shown.world, _utility(solved)
    return Candidate(
        instruction=instruction(skin, presentation, kind.facts(parameters, presentation)),
        environment=WorldRef(world=context.blobs.put(world.to_json().encode()), tells=_TELLS[presentation]),
        verifier=verifier(world, utility),
        panel=_panel(solved, utility.document()),
        budget=Budget(turns=kind.turns(parameters, presentation)),
        provenance=Provenance(lead=lead),
        metadata=_metadata(solved, lead, presentation),
    )


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


def _skin_document(skin: Skin) -> list[JsonValue]:
    return [skin.name, skin.unit, dict(skin.words), dict(skin.names), list(skin.labels), dict(skin.texts)]
