"""The generator: leads by counting companies and tasks, candidates by composing, solving and writing down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import count, product
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import faker
from pydantic import JsonValue

from envsynth.errors import GeneratorError
from envsynth.generators.business.authored.develop import Job, develop_authored
from envsynth.generators.business.authored.leads import AUTHORED, authored_leads, errand_of, free_leads, wanted_of
from envsynth.generators.business.authored.subject import check_wanted, scene_of
from envsynth.generators.business.authoring import authoring_findings
from envsynth.generators.business.checks import first_fault, library_faults
from envsynth.generators.business.compose import compose
from envsynth.generators.business.config import (
    DEFAULT_LIMIT,
    Scenario,
    by_model,
    every_country,
    is_free,
    read_free,
    read_scenario,
    rewrites,
)
from envsynth.generators.business.countries import country
from envsynth.generators.business.load import Library, library
from envsynth.generators.business.places import place_of
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.stage import Stage
from envsynth.generators.business.tasks import NoTask, Wish, Written, talks, write_task
from envsynth.generators.business.yamllines import Fault
from envsynth.llm import Role
from envsynth.models import Candidate, Dropped, Lead, Provenance, Source, WorldRef, digest_of
from envsynth.protocols import Context
from envsynth.rewriting import rewrite, rewriting_version
from envsynth.seeds import stream

_KEPT = 4
"""Companies that a process keeps at hand; tasks of one company follow each other."""
_CHECKED = 2
"""Companies of each industry that `faults` tries out: what is wrong may depend on the draw of a setting."""


class Business:
    """Companies with services, policies and tasks, from blueprints and industries, or written by a model."""

    name = "business"
    version = "4"
    environment = "world"
    models: ClassVar[tuple[str, ...]] = ("author",)

    def check(self, source: Source) -> None:
        """Read the options.

        Raises:
            ConfigError: the industry, the process or an option is unknown, or a value is bad.
            GeneratorError: a document of the industry is not as it should be; says which, and on which line.
        """
        settings = read_free(source) if is_free(source) else _sound(read_scenario(source, library())).settings
        check_wanted(wanted_of(settings), source)

    def asks(self, lead: Lead, source: Source) -> tuple[Role, ...]:
        """Roles of models that a lead is developed with."""
        authored = lead.strategy == AUTHORED or dict(source.extra).get("rewrite")
        return ("author",) if authored else ()

    def plan(self, source: Source, context: Context) -> Iterator[Lead | Dropped]:
        """`limit` leads: companies in turn over countries, with `tasks` each over levels, vagueness and processes.

        Raises:
            ConfigError: as for `check`; or a model has to write them, and none is configured.
        """
        if is_free(source):
            free = read_free(source)
            by_model(free, context, source)
            yield from free_leads((self.name, self.version), free, source)
            return
        scenario = _sound(read_scenario(source, library()))
        settings, seed = scenario.settings, source.options.seed
        places = settings.countries or _shuffled(seed)
        if by_model(settings, context, source):
            yield from authored_leads((self.name, self.version), scenario, places, source, library())
            return
        version, vague = _documents(scenario), rewrites(settings, context, source)
        wishes = _wishes(scenario, seed)
        for index in range(source.options.limit or DEFAULT_LIMIT):
            number, task = divmod(index, settings.tasks)
            level, vagueness, process = next(wishes)
            place = places[number % len(places)]
            yield Lead(
                generator=self.name, generator_version=self.version, source=source.uri,
                name=scenario.industry.industry.replace("_", "-"), revision=version[:12], strategy=process,
                ref=f"{place}{number:03d}-{task:02d}-l{level}-v{vagueness}",
                title=f"{scenario.industry.title}, {country(place).name}: {process.replace('_', ' ')}, level {level}",
                seed=seed, index=index, settings=_told(version, vague[index % len(vague)]), group=f"{place}{number}",
            )  # fmt: skip

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        """Compose the lead's company, or find it, and write one task in it.

        Raises:
            GeneratorError: the documents do not make a world.
            ModelError: a model writes it, and gave nothing to go on.
        """
        if lead.strategy == AUTHORED:
            return develop_authored(_job(lead, source), context)
        wanted = _wanted(lead)
        industry = source.location.partition("/")[0]
        scene, stage = _staged(industry, wanted.country, f"{lead.seed}-{wanted.company}")
        wish = Wish(level=wanted.level, vagueness=wanted.vagueness, process=lead.strategy)
        seed = f"{lead.seed}/{industry}/{lead.strategy}/{lead.ref}"
        try:
            task = write_task(scene, stage, wish._replace(conversation=talks(wish, seed)), seed)
        except NoTask as exc:
            return Dropped(lead=lead, reason=exc.last.reason, detail=exc.last.detail)
        text = _reworded(task, lead, source, context)
        return Candidate(
            instruction=text.instruction,
            environment=WorldRef(world=context.blobs.put(task.world.to_json().encode())),
            verifier=task.verifier,
            panel=task.panel,
            budget=task.budget,
            provenance=Provenance(lead=lead, author=text.author),
            metadata={**task.metadata, **text.metadata},
        )

    def faults(self) -> Iterator[str]:
        """What is wrong with the documents that ship here, one line each: `envsynth plugins check`.

        Where the documents are sound, some companies of every industry are composed and tried out.
        """
        known = library()
        broken = False
        for fault in library_faults(known):
            broken = True
            yield str(fault)
        if broken:
            return
        for name in known.industries:
            yield from dict.fromkeys(line for number in range(_CHECKED) for line in _world_faults(known, name, number))


def _world_faults(known: Library, industry: str, number: int) -> Iterator[str]:
    """What is wrong with one company of an industry."""
    places = every_country()
    place = country(places[(7 * known.industries.index(industry) + 11 * number) % len(places)])
    company = compose(known, known.industry(industry), place, f"check-{number}")
    for finding in authoring_findings(company, known):
        yield f"{place_of(finding, company, known)}: {finding.rule}: {finding.where}: {finding.message}"


def _sound(scenario: Scenario) -> Scenario:
    """The scenario, where nothing is wrong with its documents.

    Raises:
        GeneratorError: something is; the first fault, with file and line.
    """
    name = scenario.industry.industry
    fault = _first_fault(name)
    if fault is not None:
        raise GeneratorError(
            f"the industry {name} cannot be used", where=fault.where, cause=fault.message,
            next_step="envsynth plugins check business",
        )  # fmt: skip
    return scenario


@cache
def _first_fault(industry: str) -> Fault | None:
    return first_fault(library(), industry)


def _job(lead: Lead, source: Source) -> Job:
    """What a model is to write for a lead."""
    if is_free(source):
        return Job(lead, source, read_free(source), "", hint=True)
    scenario, errand = read_scenario(source, library()), errand_of(lead)
    scene = scene_of(scenario.industry, errand.process, errand.place, library())
    return Job(lead, source, scenario.settings, scene)


class _Reworded(NamedTuple):
    """An instruction, and who put it into words."""

    instruction: str
    author: str = "deterministic"
    metadata: Mapping[str, JsonValue] = MappingProxyType({})


def _reworded(task: Written, lead: Lead, source: Source, context: Context) -> _Reworded:
    """A composed task's instruction, in other words where that is wanted.

    Raises:
        ModelEndpointError, BudgetSpent: as for `llm.author`.
    """
    if not dict(source.extra).get("rewrite"):
        return _Reworded(task.instruction)
    settings = read_scenario(source, library()).settings
    company, number, _, _ = lead.ref.split("-")
    level = settings.rewrite[(int(company[2:]) * settings.tasks + int(number)) % len(settings.rewrite)]
    client = context.model("author")
    if task.original is None or client is None:
        stays = "conversation" if client else "no_author_model"
        return _Reworded(task.instruction, metadata={"rewrite": {"level": level, "original_stays": stays}})
    done = rewrite(client, task.original, level)
    author = "deterministic" if done.reason else done.model
    return _Reworded(done.text, author, {"rewrite": done.metadata()})


class _Wanted(NamedTuple):
    """What a lead's reference says."""

    country: str
    company: int
    level: int
    vagueness: int


def _wanted(lead: Lead) -> _Wanted:
    company, _, level, vagueness = lead.ref.split("-")
    return _Wanted(company[:2], int(company[2:]), int(level[1:]), int(vagueness[1:]))


@lru_cache(maxsize=_KEPT)
def _staged(industry: str, place: str, seed: str) -> tuple[Scene, Stage]:
    known = library()
    scene = Scene(compose(known, known.industry(industry), country(place), seed))
    return scene, Stage.of(scene)


def _shuffled(seed: int) -> tuple[str, ...]:
    places = every_country()
    return tuple(stream(str(seed), "countries").sample(places, len(places)))


def _wishes(scenario: Scenario, seed: int) -> Iterator[tuple[int, int, str]]:
    """Level, vagueness and process: all combinations, again and again in another order."""
    settings = scenario.settings
    every = list(product(settings.levels, settings.vagueness, scenario.processes))
    for turn in count():
        yield from stream(f"{seed}/{turn}", "wishes").sample(every, len(every))


def _told(version: str, level: int | None) -> str:
    """Digest of what a composed task is made from, and of how its instruction is rewritten."""
    return version if level is None else digest_of([version, level, rewriting_version()])


def _documents(scenario: Scenario) -> str:
    """Digest of everything that an author supplied, and of what names people."""
    services = library().composed(scenario.industry)
    return digest_of([faker.VERSION, scenario.industry.document(), *(service.document() for service in services)])
