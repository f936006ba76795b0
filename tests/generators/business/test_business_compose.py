"""Composed worlds: the same for the same seed, coherent, and in the industry's own names throughout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from envsynth.errors import GeneratorError
from envsynth.generators.business.checks import library_faults
from envsynth.generators.business.countries import country
from envsynth.generators.business.words import TRIVIAL
from envsynth.renaming import names_of
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask
from envsynth.runtime.worlds.image import build_image

_VERIFIER = {"checks": [{"id": "any", "kind": "sql", "sql": "SELECT 1"}], "rubric": [], "reward": {"gate": []}}


def episode(world) -> WorldEpisode:
    document = {"candidate": {"instruction": "", "verifier": _VERIFIER, "budget": {"turns": 50}}}
    found = WorldEpisode(WorldTask(document, WorldModel(world.document()), task_id=world.id))
    found.reset()
    return found


def table(company, name):
    columns = [c.name for t in company.neutral.tables if t.name == name for c in t.columns]
    return [dict(zip(columns, row, strict=True)) for row in company.neutral.rows[name]]


def test_equal_arguments_give_equal_worlds_in_every_process(composed) -> None:
    code = (
        "import sys; from pathlib import Path; from envsynth.generators.business.load import Library;"
        "from envsynth.generators.business.compose import compose;"
        "from envsynth.generators.business.countries import country; lib = Library(Path(sys.argv[1]));"
        "print(compose(lib, lib.industry('library'), country('jp'), '7').world.digest())"
    )
    folder = str(Path(__file__).parents[2] / "data" / "business")
    told = {
        subprocess.run(
            [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert told == {composed("jp", "7").world.digest()}


def test_seeds_and_countries_share_no_rows(composed) -> None:
    worlds = [composed("gb", "1"), composed("gb", "2"), composed("de", "1")]
    people = [frozenset(row["name"] + row["email"] for row in table(one, "members")) for one in worlds]
    assert not people[0] & people[1]
    assert not people[0] & people[2]
    assert len({one.world.digest() for one in worlds}) == 3


def test_nothing_neutral_is_left_but_trivial_names(composed) -> None:
    company = composed()
    own, neutral = set(names_of(company.world)), set(names_of(company.neutral))
    assert own & neutral <= TRIVIAL
    assert {"readers", "worth_pence", "search_readers", "read_house_rule"} <= own
    shown = json.dumps([tool.document() for tool in company.world.tools])
    for word in ("members", "list_loans", ":loan ", "'running'", "price_cents"):
        assert word not in shown
    assert "lending_state = 'out'" in shown


def test_rows_keep_their_words_and_references(composed) -> None:
    company = composed()
    build_image(company.world.document())
    states = {row[-1] for row in company.world.rows["lendings"]}
    assert states == {"out", "back"}
    assert {row["progress"] for row in table(company, "loans")} == {"running", "ended"}
    members = {row["id"] for row in table(company, "members")}
    assert all(row["member"] in members for row in table(company, "loans"))
    assert 3 * len(members) <= len(table(company, "loans")) <= 4 * len(members)


def test_days_follow_each_other_and_the_working_week(composed) -> None:
    company = composed("sa", "3")
    today, home = company.today, company.country
    assert home.is_working(today)
    since = {row["id"]: row["since"] for row in table(company, "members")}
    notes = table(company, "member_notes")
    assert notes
    assert all(note["noted"] > since[note["member"]] for note in notes)
    loans = [loan for loan in table(company, "loans") if loan["id"] % 11 not in (3, 4)]
    for loan in loans:
        days = (date.fromisoformat(loan["due"]) - date.fromisoformat(loan["lent"])).days
        assert 14 <= days <= 35
        assert home.is_working(date.fromisoformat(loan["due"]))
        assert -60 <= (date.fromisoformat(loan["lent"]) - today).days <= -3
    assert {date.fromisoformat(loan["due"]).weekday() for loan in loans} == {0, 1, 2, 3, 6}


def test_derived_sums_and_traps(composed) -> None:
    company = composed()
    paid: dict[int, int] = {}
    for row in table(company, "fine_receipts"):
        paid[row["fine"]] = paid.get(row["fine"], 0) + row["paid_cents"]
    fines = table(company, "fines")
    assert fines
    assert all(fine["paid_cents"] == paid.get(fine["id"], 0) for fine in fines)
    assert all((fine["settled"] == "paid") == (fine["paid_cents"] == fine["owed_cents"]) for fine in fines)
    assert company.trapped["service loans, traps 1"] == len([r for r in table(company, "loans") if r["id"] % 11 == 3])
    first, second = table(company, "members")[:2]
    assert first["name"] == second["name"]
    assert second["city"] == first["city"] + " Nord"


def test_money_is_the_countrys(composed) -> None:
    pounds, yen = composed("gb"), composed("jp")
    assert pounds.settings["fine_cents"] in (40, 80)
    assert yen.settings["fine_cents"] in (65, 130)
    prices = {row["price_cents"] for row in table(yen, "books")}
    assert prices == {country("jp").amount(cents) for cents in (1250, 980, 2400, 1100, 1890)}
    page = next(row[2] for row in yen.world.rows["house_rules"] if row[0] == "charges")
    assert f"¥{yen.settings['fine_cents']}" in page
    assert "open until it is cleared" in page
    assert "worth_yen" in set(names_of(yen.world))


def test_the_manual_can_be_read(composed) -> None:
    company = composed()
    play = episode(company.world)
    pages = [row["page"] for row in play.call("list_house_rules", {}).result]
    assert pages == ["charges", "lendings", "no_time_while_owing", "readers", "volumes"]
    body = play.call("read_house_rule", {"page": "lendings"}).result["body"]
    assert f"by up to {company.settings['extra_days']} days" in body
    stated = {one.id: one.stated_in for one in company.world.invariants}
    assert stated["extended_in_time"] == "house_rules/lendings"
    assert stated["no_time_while_owing"] == "house_rules/no_time_while_owing"


def test_calls_and_queries_go_over_and_back(composed) -> None:
    company = composed()
    renamer, play = company.renamer, episode(company.world)
    fine = next(row for row in table(company, "fines") if row["settled"] == "unpaid")
    tool, arguments = renamer.call("pay_fine", {"fine": fine["id"], "settled": "paid"})
    assert (tool, arguments) == ("book_charge", {"charge": fine["id"], "charge_state": "cleared"})
    answer = play.call(tool, arguments)
    assert answer.result == {"charge": fine["id"], "received_pence": fine["owed_cents"], "charge_state": "cleared"}
    assert renamer.result(answer.result) == {
        "fine": fine["id"], "paid_cents": fine["owed_cents"], "settled": "paid"
    }  # fmt: skip
    assert renamer.call("read_page", {"page": "loans"}) == ("read_house_rule", {"page": "lendings"})
    assert renamer.sql("SELECT 1 FROM trace WHERE tool = 'pay_fine' AND json_extract(arguments, '$.fine') = 3") == (
        "SELECT 1 FROM trace WHERE tool = 'book_charge' AND json_extract(arguments, '$.charge') = 3"
    )
    assert renamer.sql("SELECT count(*) FROM fines WHERE settled = 'unpaid' AND 'fine' <> 'paid late'") == (
        "SELECT count(*) FROM charges WHERE charge_state = 'open' AND 'fine' <> 'paid late'"
    )


def test_both_worlds_answer_alike(composed) -> None:
    company = composed("br", "5")
    neutral, own = episode(company.neutral), episode(company.world)
    for loan in table(company, "loans")[:12]:
        for tool, arguments in (
            ("extend_loan", {"loan": loan["id"], "extra": 7}),
            ("list_loans", {"member": loan["member"]}),
        ):
            told = neutral.call(tool, arguments)
            theirs = own.call(*company.renamer.call(tool, arguments))
            assert (told.ok, told.error) == (theirs.ok, theirs.error)
            assert company.renamer.result(theirs.result) == told.result


def test_an_enforced_rule_is_a_guard(change, composed) -> None:
    library = change(
        "industries/library.yaml",
        "    goals:\n",
        '    enforced: [extend_loan, {sql: "SELECT NOT EXISTS(SELECT 1 FROM fines f JOIN loans o ON o.id = f.loan JOIN loans l ON l.member = o.member WHERE l.id = :loan AND f.settled = \'unpaid\')", error: "that {member} owes money"}]\n    goals:\n',  # noqa: E501
    ).library
    company = composed("gb", "1", library)
    owing = company.goals["owing"]
    assert owing.refuses
    debtor = next(row for row in table(company, "fines") if row["settled"] == "unpaid")["loan"]
    member = next(row for row in table(company, "loans") if row["id"] == debtor)["member"]
    running = [row["id"] for row in table(company, "loans") if row["member"] == member and row["progress"] == "running"]
    answer = episode(company.world).call("prolong_lending", {"lending": running[0], "more_days": 3})
    assert answer.error == "that reader owes money"


def test_an_industry_does_without_tools_and_their_goals(change, composed) -> None:
    file = "industries/library.yaml"
    change(file, "company:", "without: [pay_fine]\ncompany:")
    change(file, "  pay_fine: book_charge\n", "")
    library = change(file, "  desk: [note, pay]", "  desk: [note]").library
    assert [str(fault) for fault in library_faults(library)] == []
    whole, company = composed("gb", "1"), composed("gb", "1", library)
    left_out = {tool.name for tool in whole.neutral.tools} - {tool.name for tool in company.neutral.tools}
    assert (left_out, whole.goals.keys() - company.goals.keys()) == ({"pay_fine"}, {"pay"})
    assert company.neutral.rows == whole.neutral.rows
    faulty = change("blueprints/fines.yaml", "l.member = :member ORDER BY f.id", "l.membre = :member ORDER BY f.id")
    fault = next(fault for fault in library_faults(faulty.library) if "l.membre" in fault.message)
    assert fault.where == faulty.where


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  lent: lent_on\n", "", "has no name for lent"),
        ("  due: back_by\n", "  due: lent_on\n", "calls due and lent the same"),
        ("words: {member: reader, ", "words: {", "no word for {member}"),
        (
            "services: [fines, loans, members, books]",
            "services: [fines, loans, members, members]",
            "books, which library does not have",
        ),
    ],
)
def test_what_does_not_make_a_world_is_said(change, composed, old, new, message) -> None:
    library = change("industries/library.yaml", old, new).library
    with pytest.raises(GeneratorError, match=message):
        composed("gb", "1", library)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "UPDATE fines SET owed_cents = (1 + id % 4)",
            "UPDATE fines SET owed_cents = (1 + random() % 4)",
            "random is not allowed",
        ),
        (
            "UPDATE fines SET owed_cents = (1 + id % 4) * {fine_cents}",
            "UPDATE fines SET owed = 3",
            "no such column: owed",
        ),
    ],
)
def test_derived_rows_are_sealed_too(change, composed, old, new, message) -> None:
    library = change("blueprints/fines.yaml", old, new).library
    with pytest.raises(GeneratorError, match=message) as raised:
        composed("gb", "1", library)
    assert raised.value.where == "service fines, derive 1"
