"""Source lines whose worlds a model writes: options, leads, keys, and the passages that worlds come from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envsynth import work
from envsynth.errors import ConfigError
from envsynth.generators.business import Business
from envsynth.generators.business.authored.corpus import draw_passage
from envsynth.generators.business.authored.leads import errand_of
from envsynth.generators.business.authored.subject import Wanted, personas, subject_of
from envsynth.llm import LlmSettings, RoleSettings
from envsynth.models import Lead, Origin, Source, SourceKind, SourceOptions
from envsynth.sources import read_sources

AUTHOR = RoleSettings(model="big", base_url="http://127.0.0.1:1/v1")
WITH_MODEL: Any = SimpleNamespace(model=lambda role: object())
WITHOUT: Any = SimpleNamespace(model=lambda role: None)


def source(location: str = "free", file: str = "--source", seed: int = 0, limit: int = 4, **extra: str) -> Source:
    return Source(
        uri=f"scenario:{location}", kind=SourceKind.SCENARIO, location=location,
        options=SourceOptions(seed=seed, limit=limit), extra=tuple(sorted(extra.items())),
        origin=Origin(file=file, line=3),
    )  # fmt: skip


def leads(one: Source, context: Any = WITH_MODEL) -> list[Lead]:
    return [lead for lead in Business().plan(one, context) if isinstance(lead, Lead)]


@pytest.mark.parametrize(
    ("location", "extra", "context", "message"),
    [
        ("free", {}, WITHOUT, r"scenario:free needs an author model, and none is configured.*--llm MODEL or under"),
        ("free", {"author": "deterministic"}, WITH_MODEL, "scenario:free is written by a model"),
        ("free/returns", {}, WITH_MODEL, "scenario:free has no processes"),
        ("free", {"countries": "gb"}, WITH_MODEL, "unknown option 'countries' for scenario:free"),
        ("free", {"brief": "notes/nowhere.md"}, WITH_MODEL, "there is no file .*nowhere.md"),
        ("free", {"brief": "x" * 9000}, WITH_MODEL, "brief= has 9000 characters"),
        ("free", {"corpus": "nowhere"}, WITH_MODEL, "the corpus .*nowhere is no folder"),
        ("retail", {"author": "model"}, WITHOUT, "author=model needs an author model"),
        ("retail", {"corpus": "docs"}, WITHOUT, "corpus= needs an author model"),
        ("retail", {"author": "deterministic", "persona": "night_shift"}, WITH_MODEL, "persona= is for worlds that a"),
        ("retail", {"author": "nobody"}, WITH_MODEL, "bad value 'nobody' for 'author'"),
    ],
)  # fmt: skip
def test_bad_lines_say_what_would_be_right(location: str, extra: dict[str, str], context: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=f"--source:3: {message}"):
        leads(source(location, **extra), context)


def test_what_a_line_names_is_looked_for_before_any_work() -> None:
    for extra in ({"brief": "notes/nowhere.md"}, {"corpus": "nowhere"}, {"persona": "notes/nobody.txt"}):
        with pytest.raises(ConfigError, match=r"nowhere|nobody"):
            Business().check(source(**extra))


def test_a_configured_author_writes_unless_the_line_says_otherwise() -> None:
    assert {lead.strategy for lead in leads(source("retail"))} == {"authored"}
    assert "authored" not in {lead.strategy for lead in leads(source("retail"), WITHOUT)}
    assert leads(source("retail", author="deterministic")) == leads(source("retail", author="deterministic"), WITHOUT)
    without = [lead.model_copy(update={"source": ""}) for lead in leads(source("retail"), WITHOUT)]
    with_ = [lead.model_copy(update={"source": ""}) for lead in leads(source("retail", author="deterministic"))]
    assert without == with_


def test_only_authored_leads_are_keyed_by_the_model() -> None:
    llm = LlmSettings(author=AUTHOR)
    written, counted = source("retail"), source("retail", author="deterministic")
    for lead in leads(counted):
        assert work.keyed(lead, counted, llm) == lead
    (first, *_) = leads(written)
    assert work.keyed(first, written, llm).key != first.key
    assert work.roles_asked(leads(counted), counted, "world") == work.roles_asked((), counted, "world")
    assert "author" in work.roles_asked(leads(written), written, "world")


def test_worlds_come_in_turn_and_their_tasks_differ() -> None:
    planned = leads(source("retail", limit=8, tasks="4", countries="gb,jp"))
    errands = [errand_of(lead) for lead in planned]
    assert [(one.place, one.world, one.task) for one in errands] == [
        *(("gb", 0, task) for task in range(4)), *(("jp", 1, task) for task in range(4)),
    ]  # fmt: skip
    assert [one.ref for one in errands] == [lead.ref for lead in planned]
    assert len({lead.group for lead in planned}) == 2
    assert len({one.process for one in errands[:4]}) == 1
    assert errands[0].process != errands[4].process
    assert len({(one.level, one.vagueness) for one in errands}) == 8
    assert leads(source("retail", limit=8, tasks="4")) == leads(source("retail", limit=8, tasks="4"))
    assert not {lead.key for lead in planned} & {lead.key for lead in leads(source("retail", limit=8, seed=1))}


def test_what_worlds_are_about_is_part_of_their_keys(tmp_path: Path) -> None:
    keys = {leads(source(brief=brief))[0].key for brief in ("a_ferry_office", "a_ferry_office_at_night")}
    keys |= {leads(source(persona=persona))[0].key for persona in ("night_shift", "somebody_patient")}
    brief = tmp_path / "brief.md"
    for text in ("A ferry office with two boats.", "A ferry office with three boats."):
        brief.write_text(text)
        keys.add(leads(source(file=str(tmp_path / "list.txt"), brief="brief.md"))[0].key)
    assert len(keys) == 6


def test_a_brief_is_words_or_a_file_beside_the_list(tmp_path: Path) -> None:
    (tmp_path / "brief.txt").write_text("A lighthouse.")
    beside = source(file=str(tmp_path / "list.txt"), brief="brief.txt")
    assert "\nA lighthouse.\n" in subject_of(Wanted(brief="brief.txt"), beside, 0, "").material
    assert "\na ferry office\n" in subject_of(Wanted(brief="a_ferry_office"), source(), 0, "").material
    named = subject_of(Wanted(persona="tool_server"), source(), 0, "")
    assert personas()["tool_server"] in named.material
    assert named.metadata == {"persona": "tool_server"}
    assert "choose a trade" in subject_of(Wanted(), source(), 0, "").material


def test_lines_of_lists_are_read(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("scenario:free brief=a_ferry_office limit=2\nscenario:retail author=model\n")
    listed = read_sources([str(tmp_path / "list.txt")])
    assert not listed.errors
    for one in listed.sources:
        Business().check(one)


def _corpus(folder: Path) -> Path:
    corpus = folder / "corpus"
    (corpus / "inner").mkdir(parents=True)
    for number in range(3):
        (corpus / "inner" / f"{number}.md").write_text(f"Chapter {number}.\n\n" + f"Line {number} of it. " * 60)
    (corpus / "long.txt").write_text("\n\n".join(f"Paragraph {number}. {'It goes on. ' * 50}" for number in range(8)))
    (corpus / "short.txt").write_text("Too short.")
    (corpus / "code.py").write_text("print('no prose')\n" * 100)
    (corpus / ".hidden.md").write_text("Not a document. " * 60)
    (folder / "outside.md").write_text("Outside of the corpus. " * 60)
    (corpus / "link.md").symlink_to(folder / "outside.md")
    (corpus / "linked").symlink_to(folder)
    return corpus


def test_passages_are_drawn_by_seed_and_none_comes_again_before_all_have_come(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path)
    drawn = [draw_passage(corpus, 5, number, where="x") for number in range(5)]
    assert len({passage.digest for passage in drawn}) == 5
    assert {passage.path for passage in drawn} == {"inner/0.md", "inner/1.md", "inner/2.md", "long.txt"}
    assert draw_passage(corpus, 5, 5, where="x") == drawn[0]
    assert all(400 <= len(passage.text) <= 2600 for passage in drawn)
    other = [draw_passage(corpus, 6, number, where="x") for number in range(5)]
    assert other != drawn
    assert set(other) == set(drawn)


def test_a_corpus_without_prose_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("short")
    with pytest.raises(ConfigError, match=r"has no passage.*400 characters of prose.*put documents into it"):
        draw_passage(tmp_path, 0, 0, where="list:1")
