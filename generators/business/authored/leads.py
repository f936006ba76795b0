"""Leads whose worlds and tasks a model writes: worlds in turn, with some tasks each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, product
from typing import NamedTuple

from envsynth.generators.business.authored.stages import prompts_version
from envsynth.generators.business.authored.subject import Wanted, passage_of, personas, scene_of, words_of
from envsynth.generators.business.config import FREE, FreeSettings, Scenario, Wishes
from envsynth.generators.business.countries import country
from envsynth.generators.business.load import Library
from envsynth.models import Lead, Source, digest_of
from envsynth.seeds import stream

__all__ = ["AUTHORED", "AUTHORED_LIMIT", "VERSION", "Errand", "authored_leads", "errand_of", "free_leads", "wanted_of"]

AUTHORED = "authored"
"""The strategy of leads that a model writes."""
AUTHORED_LIMIT = 10
"""Tasks of one source that names no limit: each costs some calls of a model."""
VERSION = "1"
"""Raised whenever equal answers would give other worlds or tasks."""
_NOWHERE = "xx"


class Errand(NamedTuple):
    """What a lead's reference says."""

    place: str
    """Country code; `xx`: none."""
    world: int
    task: int
    """From 0, in its world."""
    level: int
    vagueness: int
    process: str

    @property
    def ref(self) -> str:
        """As it stands in a lead."""
        start = f"{self.place}{self.world:03d}-{self.task:02d}-l{self.level}-v{self.vagueness}"
        return f"{start}-{self.process}" if self.process else start


def errand_of(lead: Lead) -> Errand:
    """What an authored lead asks for."""
    world, task, level, vagueness, *process = lead.ref.split("-")
    return Errand(world[:2], int(world[2:]), int(task), int(level[1:]), int(vagueness[1:]), "-".join(process))


def wanted_of(settings: Wishes) -> Wanted:
    """What a source line says of its worlds."""
    brief = settings.brief if isinstance(settings, FreeSettings) else ""
    return Wanted(brief, settings.persona, settings.corpus)


def authored_leads(
    generator: tuple[str, str], scenario: Scenario, places: Sequence[str], source: Source, library: Library
) -> Iterator[Lead]:
    """Leads of an industry.

    Args:
        generator: name and version.
        scenario: what the line asks for.
        places: countries, in turn.
        source: the line.
        library: where the industry stands.

    Raises:
        ConfigError: a corpus or a file cannot be used.
    """
    title, name = scenario.industry.title, scenario.industry.industry.replace("_", "-")
    for index, errand in enumerate(_errands(scenario.settings, source, places, scenario.processes)):
        scene = scene_of(scenario.industry, errand.process, errand.place, library)
        process = errand.process.replace("_", " ")
        told = f"{title}, {country(errand.place).name}: {process}, level {errand.level}, by a model"
        yield _lead(generator, name, source, (index, errand), (scenario.settings, scene), told)


def free_leads(generator: tuple[str, str], settings: FreeSettings, source: Source) -> Iterator[Lead]:
    """Leads of `scenario:free`. Arguments and errors as for `authored_leads`."""
    for index, errand in enumerate(_errands(settings, source, (_NOWHERE,), ("",))):
        told = f"Free scenario, world {errand.world}, level {errand.level}, by a model"
        yield _lead(generator, FREE, source, (index, errand), (settings, ""), told)


def _lead(
    generator: tuple[str, str],
    name: str,
    source: Source,
    place: tuple[int, Errand],
    work: tuple[Wishes, str],
    title: str,
) -> Lead:
    (index, errand), (settings, scene) = place, work
    wanted = wanted_of(settings)
    passage = passage_of(wanted, source, errand.world)
    told = [
        words_of(wanted.brief, source, "brief") if wanted.brief else "",
        (personas().get(wanted.persona) or words_of(wanted.persona, source, "persona")) if wanted.persona else "",
        [passage.path, passage.digest] if passage else [],
    ]
    version = digest_of([VERSION, prompts_version(), scene, *told])
    return Lead(
        generator=generator[0], generator_version=generator[1], source=source.uri, name=name, revision=version[:12],
        strategy=AUTHORED, ref=errand.ref, title=title, seed=source.options.seed, index=index, settings=version,
        group=f"{AUTHORED}-{errand.world}",
    )  # fmt: skip


def _errands(settings: Wishes, source: Source, places: Sequence[str], processes: Sequence[str]) -> Iterator[Errand]:
    """Worlds over places and processes, tasks over levels and vagueness, each in an order of the seed."""
    seed = source.options.seed
    wishes = _again_and_again(list(product(settings.levels, settings.vagueness)), f"{seed}/authored wishes")
    themes = list(processes)
    for index in range(source.options.limit or AUTHORED_LIMIT):
        world, task = divmod(index, settings.tasks)
        level, vagueness = next(wishes)
        process = themes[world % len(themes)]
        yield Errand(places[world % len(places)], world, task, level, vagueness, process)


def _again_and_again(every: Sequence[tuple[int, int]], seed: str) -> Iterator[tuple[int, int]]:
    for turn in count():
        yield from stream(f"{seed}/{turn}", "wishes").sample(every, len(every))
