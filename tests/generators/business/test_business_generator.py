"""The generator: leads over countries, levels, vagueness and processes; bad options; the same candidate again."""

from __future__ import annotations

import hashlib
from itertools import islice
from types import SimpleNamespace

import pytest

from envsynth.errors import ConfigError, GeneratorError
from envsynth.generators.business import Business
from envsynth.generators.business.config import LEVELS
from envsynth.generators.business.load import library
from envsynth.models import Candidate, Origin, Source, SourceKind, SourceOptions


class Blobs(dict):
    def put(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self[digest] = content
        return digest


def scenario(location: str = "retail", seed: int = 0, limit: int | None = None, **extra: str) -> Source:
    return Source(
        uri=f"scenario:{location}", kind=SourceKind.SCENARIO, location=location,
        options=SourceOptions(seed=seed, limit=limit), extra=tuple(extra.items()), origin=Origin(file="list", line=4),
    )  # fmt: skip


@pytest.fixture
def context() -> SimpleNamespace:
    return SimpleNamespace(blobs=Blobs(), model=lambda role: None)


def leads(source: Source, context) -> list:
    return list(Business().plan(source, context))


def wish(lead) -> tuple[str, str, str]:
    _, _, level, vagueness = lead.ref.split("-")
    return level, vagueness, lead.strategy


def test_leads_cover_every_combination_once_before_any_comes_again(context) -> None:
    processes = library().industry("retail").processes
    combinations = len(LEVELS) * 4 * len(processes)
    planned = leads(scenario(limit=2 * combinations), context)
    assert len({wish(lead) for lead in planned[:combinations]}) == combinations
    assert len({wish(lead) for lead in planned[combinations:]}) == combinations
    assert [wish(lead) for lead in planned[:combinations]] != [wish(lead) for lead in planned[combinations:]]
    assert len({lead.key for lead in planned}) == len(planned)


def test_companies_go_around_the_world(context) -> None:
    planned = leads(scenario(limit=100, tasks="2"), context)
    assert len({lead.ref[:2] for lead in planned}) == 50
    assert leads(scenario(limit=6), context)[5].ref.startswith(planned[2].ref[:2] + "001-00")
    assert {lead.ref[:2] for lead in leads(scenario(limit=20, countries="jp,gb"), context)} == {"jp", "gb"}


def test_plans_depend_on_their_arguments_alone(context) -> None:
    assert leads(scenario(seed=3), context) == leads(scenario(seed=3), context)
    one, two = leads(scenario(seed=3), context), leads(scenario(seed=4), context)
    assert not {lead.key for lead in one} & {lead.key for lead in two}
    assert [lead.ref for lead in one] != [lead.ref for lead in two]


def test_a_process_has_its_own_tasks_only(context) -> None:
    planned = leads(scenario("retail/returns", limit=12, levels="1,2", vagueness="0"), context)
    assert {wish(lead) for lead in planned} == {("l1", "v0", "returns"), ("l2", "v0", "returns")}


@pytest.mark.parametrize(
    ("location", "extra", "message"),
    [
        ("retial", {}, "list:4: there is no industry 'retial'. Next: use retail"),
        ("retail/retuns", {}, "list:4: there is no process 'retuns' of retail. Next: use returns"),
        ("retail", {"countries": "jp,germany"}, "list:4: there is no country 'germany'. Next: use de"),
        (
            "retail",
            {"level": "1"},
            "list:4: unknown option 'level' for a scenario. Next: use one of author, corpus, countries, levels",
        ),
        ("retail", {"levels": "7"}, "bad value '7' for 'levels' (they are 1 to 5)"),
        ("retail", {"vagueness": "few"}, "bad value 'few' for 'vagueness'"),
        ("retail", {"tasks": "0"}, "bad value '0' for 'tasks'"),
    ],
)
def test_bad_options_name_their_line(location, extra, message) -> None:
    with pytest.raises(ConfigError) as raised:
        Business().check(scenario(location, **extra))
    assert str(raised.value).startswith("list:4: ")
    assert message in str(raised.value)


def test_a_scenario_has_no_strategies() -> None:
    source = scenario().model_copy(update={"options": SourceOptions(strategies=("fast",))})
    with pytest.raises(ConfigError, match="no strategies"):
        Business().check(source)


@pytest.mark.slow
def test_the_same_lead_gives_the_same_candidate_and_the_next_another(context) -> None:
    source = scenario(limit=20, levels="1,2", tasks="4")
    made = []
    for lead in leads(source, context):
        found = Business().develop(lead, source, context)
        if isinstance(found, Candidate):
            again = Business().develop(lead, source, context)
            assert again == found
            made.append(found)
    assert len(made) >= 15
    assert len({one.instruction for one in made}) == len(made)
    assert len({one.id for one in made}) == len(made)
    assert len(context.blobs) >= 5, "a world for each company"


def test_faults_of_our_own_documents_stop_before_worlds_are_made(monkeypatch, tmp_path) -> None:
    from envsynth.generators.business import generator
    from envsynth.generators.business.load import Library

    (tmp_path / "blueprints").mkdir()
    (tmp_path / "blueprints" / "desk.yaml").write_text("service: desk\ntitle: [\n")
    monkeypatch.setattr(generator, "library", lambda: Library(tmp_path))
    faults = list(islice(Business().faults(), 5))
    assert len(faults) == 1
    assert faults[0].startswith(f"{tmp_path / 'blueprints' / 'desk.yaml'}:")


def test_a_build_names_file_and_line_of_a_fault(monkeypatch, change) -> None:
    from envsynth.generators.business import generator

    changed = change("blueprints/loans.yaml", "b.title, l.lent, l.due", "b.title, l.lend, l.due")
    monkeypatch.setattr(generator, "library", lambda: changed.library)
    generator._first_fault.cache_clear()
    with pytest.raises(GeneratorError) as raised:
        Business().check(scenario("library"))
    generator._first_fault.cache_clear()
    assert raised.value.where == changed.where
    assert "the industry library cannot be used (tool list_loans: result:" in str(raised.value)
