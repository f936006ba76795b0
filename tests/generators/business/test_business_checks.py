"""Every fault of a document is named with its file and line."""

from __future__ import annotations

import pytest

from envsynth.errors import ConfigError, GeneratorError
from envsynth.generators.business.checks import library_faults
from envsynth.generators.business.load import library

LOANS, MEMBERS, FINES, LIBRARY = (
    "blueprints/loans.yaml", "blueprints/members.yaml", "blueprints/fines.yaml", "industries/library.yaml"
)  # fmt: skip


def test_the_small_library_is_sound(small) -> None:
    assert [str(fault) for fault in library_faults(small)] == []


UNREADABLE = [
    (LOANS, "title: Loans", "title: [Loans", 1, "no YAML"),
    (LOANS, "title: Loans", "title: Loans\nservice: other", 1, "'service' stands there twice"),
    (LOANS, "title: Loans", "title: Loans\nbudget: 3", 1, "there is no field 'budget' here"),
    (LOANS, "kind: write\n    doc: Move", "kind: wrote\n    doc: Move", 0, "'read', 'write'"),
    (LOANS, "service: loans", "service: lendings", 0, "the file is called loans"),
    (LIBRARY, "services: [fines, loans, members, books]", "services: [fines]", 0, "at least 4"),
    (LIBRARY, "role:", "rolle:", 0, "there is no field 'rolle'"),
]


@pytest.mark.parametrize(("file", "old", "new", "below", "message"), UNREADABLE)
def test_a_file_that_cannot_be_read(change, file, old, new, below, message) -> None:
    changed = change(file, old, new)
    path, _, line = changed.where.rpartition(":")
    faults = list(changed.library.faults())
    assert any(fault.where == f"{path}:{int(line) + below}" and message in fault.message for fault in faults), faults


SERVICES = [
    ("derive: 'UPDATE' of nothing", FINES, "  - UPDATE fines SET owed_cents = (1", "  - UPDATE fine SET owed_cents = (1", "no such table: fine"),  # noqa: E501
    ("a trap that is no change", LOANS, "  - UPDATE loans SET due = date(:now), progress", "  - DROP TABLE loans; --", "is not the world's"),  # noqa: E501
    ("a guard", LOANS, "progress = 'running' FROM loans WHERE id = :loan", "progres = 'running' FROM loans WHERE id = :loan", "guard 1: no such column: progres"),  # noqa: E501
    ("an effect with a parameter that is not there", LOANS, "VALUES (:loan, :body)", "VALUES (:loan, :text)", "effect 1"),  # noqa: E501
    ("a result", LOANS, "l.lent, l.due, l.progress, (SELECT", "l.lend, l.due, l.progress, (SELECT", "result: no such column: l.lend"),  # noqa: E501
    ("an invariant", FINES, "sql: SELECT f.id FROM fines f WHERE", "sql: SELECT f.id FROM fines f WERE", "syntax error"),  # noqa: E501
    ("an invariant stated elsewhere", LOANS, "stated_in: policies/loans", "stated_in: policies/members", "it is stated in policies/loans"),  # noqa: E501
    ("a recipe's reference", LOANS, "book:     {ref: books}", "book:     {ref: shelves}", "shelves has no rows before"),
    ("two kinds of recipe", LOANS, "lent:     {days: [-60, -3]}", "lent:     {days: [-60, -3], serial: 1}", "two kinds"),  # noqa: E501
    ("bounds", LOANS, "{days: [-60, -3]}", "{days: [-3, -60]}", "nothing lies between -3 and -60"),
    ("a word that is not enumerated", MEMBERS, "{choice: {adult: 3, child: 1}}", "{choice: {adult: 3, kid: 1}}", "'kid' is none of adult, child"),  # noqa: E501
    ("a provider", MEMBERS, "{faker: city}", "{faker: town_hall}", "Faker has no provider 'town_hall'"),
    ("nothing for a column", FINES, "  fines:\n    count: [0, 1]\n", "  fines:\n    count: [0, 2]\n", "no recipe for fines.settled"),  # noqa: E501
    ("a setting that nobody is told", LOANS, "by up to {extra_days} days", "by a week", "says nothing of {extra_days}"),
    ("a pick", MEMBERS, "pick: SELECT id AS member_id, name FROM members", "pick: SELECT id AS member_id, nam FROM members", "pick: no such column: nam"),  # noqa: E501
    ("a goal's tool", MEMBERS, "writes: [{tool: note_member", "writes: [{tool: note_members", "no tool note_members"),
    ("a goal's parameter", LOANS, "{loan: $loan_id, extra: $extra}", "{loan: $loan_id, days: $extra}", "has no parameter days"),  # noqa: E501
    ("a goal's variable", LOANS, "{loan: $loan_id, extra: $extra}", "{loan: $loan_id, extra: $more}", "pick gives no more"),  # noqa: E501
    ("a page", LOANS, "policy: loans", "policy: lendings", "there is no page lendings"),
    ("an entity's column", MEMBERS, "{column: city, phrase:", "{column: town, phrase:", "no column members.town"),
    ("a goal's entity", MEMBERS, "about: {member_id: member}", "about: {member_id: person}", "no entity person"),
    ("a thing that is not named", LOANS, 'says: {0: ["Extend loan {loan_id} by {extra} days."]}', 'says: {0: ["Extend the loan by {extra} days."]}', "does not name {loan_id}, and so may be about any loan"),  # noqa: E501
    ("a wrong value", LOANS, 'extra: "$extra + 1"', 'extra: "$extr + 1"', "wrong:"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "message"), [row[1:] for row in SERVICES], ids=[r[0] for r in SERVICES])
def test_a_fault_of_a_service(change, file, old, new, message) -> None:
    if "no recipe" in message:
        change(file, "      settled:    {value: unpaid}\n", "")
    changed = change(file, old, new)
    faults = list(library_faults(changed.library))
    assert any(message in fault.message for fault in faults), faults
    assert changed.where in {fault.where for fault in faults if message in fault.message}


def test_a_tool_that_no_goal_uses(change) -> None:
    change(LIBRARY, "  fines: charges\n", "  fines: charges\n  count_fines: count_charges\n")
    changed = change(
        FINES,
        "  list_fines:\n",
        "  count_fines:\n    kind: read\n    doc: How many.\n    result: SELECT count(*) AS owed_cents FROM fines\n  list_fines:\n",  # noqa: E501
    )
    assert [tuple(fault) for fault in library_faults(changed.library)] == [
        (changed.where, "no goal of library uses the tool count_fines")
    ]


def test_foreign_keys_in_a_circle(change) -> None:
    changed = change(
        LOANS,
        "loan:  {type: integer, references: loans.id}",
        "loan:  {type: integer, references: loans.id}\n      next:  {type: integer, references: loans.id}",
    )
    assert not any("cycle" in fault.message for fault in library_faults(changed.library))
    changed = change(
        LOANS,
        "due:      {type: text, doc: ISO date}",
        "due:      {type: text, doc: ISO date}\n      open:     {type: integer, references: loan_flags.id}",
    )
    faults = library_faults(changed.library)
    assert any("a cycle of foreign keys: loans, loan_flags" in fault.message for fault in faults)


def test_services_that_need_each_other(change) -> None:
    changed = change(MEMBERS, "tables:\n", "needs: [loans]\ntables:\n")
    faults = [fault for fault in library_faults(changed.library) if "in a circle" in fault.message]
    assert faults
    assert "members → loans → members" in faults[0].message or "loans → members → loans" in faults[0].message


GUARDED = (
    '    enforced: [{tool}, {{sql: "SELECT NOT EXISTS(SELECT 1 FROM {table} WHERE id = 0)",'
    " error: no_time_while_owing forbids it}}]\n    goals:\n"
)
INDUSTRY = [
    ("a name", "  lent: lent_on\n", "", "no name for lent, which"),
    ("a name twice", "  due: back_by\n", "  due: lent_on\n", "due and lent are both called lent_on"),
    ("a name of nothing", "  due: back_by\n", "  due: back_by\n  ghost: spectre\n", "ghost is the name of nothing"),
    ("a name that is SQL's", "  due: back_by\n", "  due: order\n", "order is a word of SQL"),
    ("a tool named as in the blueprint", "  find_books: search_volumes", "  find_books: find_books", "the tool find_books has the blueprint's name"),  # noqa: E501
    ("an enumerated word", "{adult: grown_up, ", "{", "no word for 'adult', which"),
    ("two words alike", "unpaid: open, paid: cleared", "unpaid: open, paid: open", "are both called open"),
    ("a word for texts", "book: volume, ", "", "no word for {book}"),
    ("a list's field", "- {title: The Salt Road, price: 1250}", "- {title: The Salt Road}", "an entry has no price"),
    ("a list", "  books:\n    - {title: The Salt", "  stock:\n    - {title: The Salt", "there is no list books"),
    ("a rule within one service", "    target: loans", "    target: fines", "trigger and target lie in one service"),
    ("a rule that reads one side only", "JOIN fines f ON f.loan = o.id WHERE l.due <> b.due AND f.settled = 'unpaid' AND f.owed_cents >= {debt_cents}", "WHERE l.due <> b.due AND o.id > {debt_cents}", "reads no table of fines"),  # noqa: E501
    ("a rule's setting that nobody is told", "of {debt_cents:money} or more", "of some size", "says nothing of {debt_cents}"),  # noqa: E501
    ("a process", "  desk: [note, pay]", "  desk: [note, pays]", "a goal pays, which is none"),
    ("a company's pattern", '"{city} Library"', '"{town} Library"', "no word for {town}"),
    ("a guard on a tool of another service", "    goals:\n", GUARDED.format(tool="pay_fine", table="fines"), "where its target lies, has no tool pay_fine"),  # noqa: E501
    ("a guard that does not look at the trigger", "    goals:\n", GUARDED.format(tool="extend_loan", table="books"), "reads no table of fines"),  # noqa: E501
    ("a guard that names no page", "    goals:\n", GUARDED.format(tool="extend_loan", table="fines").replace("no_time_while_owing", "it"), "does not name no_time_while_owing"),  # noqa: E501
    ("a guard of bad SQL", "    goals:\n", GUARDED.format(tool="extend_loan", table="fine"), "no such table: fine"),
    ("a tool to do without that is not there", "company:", "without: [lend]\ncompany:", "has the tool lend, which it is to do without"),  # noqa: E501
    ("a tool that is needed", "company:", "without: [list_fines]\ncompany:", "cannot do without list_fines, with which the fine is looked up"),  # noqa: E501
    ("a goal that calls a tool it does without", "company:", "without: [pay_fine]\ncompany:", "a goal pay, which is none"),  # noqa: E501
    ("a rule that calls a tool it does without", "company:", "without: [flag_loan]\ncompany:", "there is no tool flag_loan"),  # noqa: E501
    ("a name of a tool it does without", "company:", "without: [pay_fine]\ncompany:", "pay_fine is the name of nothing"),  # noqa: E501
    ("a rule's goal", "policy: no_time_while_owing", "policy: no_time", "there is no page no_time"),
    ("a service", "services: [fines, loans, members, books]", "services: [fine, loans, members, books]", "there is no service 'fine'"),  # noqa: E501
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), [row[1:] for row in INDUSTRY], ids=[row[0] for row in INDUSTRY])
def test_a_fault_of_an_industry(change, old, new, message) -> None:
    changed = change(LIBRARY, old, new)
    faults = [fault for fault in library_faults(changed.library) if message in fault.message]
    assert faults
    assert all(LIBRARY in fault.where and fault.where.rpartition(":")[2].isdigit() for fault in faults)


def test_two_industries_share_no_names(change) -> None:
    changed = change(LIBRARY, "industry: library", "industry: library")
    path = changed.library.folder / "industries" / "archive.yaml"
    text = (changed.library.folder / LIBRARY).read_text("utf-8")
    path.write_text(text.replace("industry: library", "industry: archive").replace("search_readers", "find_people"))
    messages = [fault.message for fault in library_faults(changed.library)]
    assert "the tool search_volumes is called so in archive and library" in messages
    assert "the table readers is called so in archive and library" in messages
    assert not any("find_people" in message or "search_readers" in message for message in messages)
    assert any("columns have the names of archive" in message for message in messages)


def test_nearest_names(small) -> None:
    with pytest.raises(ConfigError, match="use library"):
        small.industry("libary")
    with pytest.raises(ConfigError, match="use lending"):
        small.process(small.industry("library"), "landing")
    with pytest.raises(ConfigError, match=r"l\.txt:3: there is no industry 'zzz'. Next: use one of library"):
        small.industry("zzz", where="l.txt:3")


def test_a_build_names_the_line_too(change) -> None:
    changed = change(LOANS, "title: Loans", "titel: Loans")
    with pytest.raises(GeneratorError) as raised:
        changed.library.composed(changed.library.industry("library"))
    assert raised.value.where == changed.where or raised.value.where.startswith(changed.where.rpartition(":")[0])
    assert "titel" in str(raised.value) or "title is missing" in str(raised.value)


@pytest.mark.slow
def test_our_own_documents_are_sound() -> None:
    assert [str(fault) for fault in library_faults(library())] == []
