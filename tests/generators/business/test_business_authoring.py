"""The twelve authoring validators: silent about a sound world, and each has a world that it speaks about."""

from __future__ import annotations

import pytest

from envsynth.generators.business.authoring import VALIDATORS, authoring_findings
from envsynth.generators.business.places import place_of
from envsynth.generators.business.trial import TARGETS, Trial
from envsynth.models import Finding

LOANS, MEMBERS, FINES, BOOKS, LIBRARY = (
    "blueprints/loans.yaml", "blueprints/members.yaml", "blueprints/fines.yaml", "blueprints/books.yaml",
    "industries/library.yaml",
)  # fmt: skip


def test_there_are_twelve() -> None:
    assert len(VALIDATORS) == 12


@pytest.mark.parametrize("place", ["gb", "jp", "ae"])
def test_a_sound_world_has_no_finding(composed, small, place) -> None:
    assert authoring_findings(composed(place), small) == []


IDLE_GUARD = (
    '    enforced: [extend_loan, {sql: "SELECT NOT EXISTS(SELECT 1 FROM fines WHERE id = 0)", error: "no"}]\n'
    "    goals:\n"
)
FAULTY = [
    ("sizes", LIBRARY, "processes:", "counts: {members: [3, 3], books: [5, 5]}\nprocesses:", "", "rows: 500 to 5000 are wanted"),  # noqa: E501
    ("tools_succeed", LOANS, "SELECT progress = 'running' FROM loans WHERE id = :loan", "SELECT progress = 'ended' AND progress = 'running' FROM loans WHERE id = :loan", "tool extend_loan", "no plan's call of it succeeds"),  # noqa: E501
    ("tools_succeed", LOANS, "progress = 'running' AND l.due >= date(:now) ORDER", "progress = 'running' AND l.due >= '2999-01-01' ORDER", "goal extend", "no row is a target"),  # noqa: E501
    ("tools_succeed", LOANS, "{extra_days} AS extra FROM", "{extra_days} + 1 AS extra FROM", "goal extend", "it violates extended_in_time"),  # noqa: E501
    ("tools_used", FINES, "tools:\n", "tools:\n  count_fines:\n    kind: read\n    doc: How many.\n    result: SELECT count(*) AS owed_cents FROM fines\n", "tool count_fines", "no goal and no entity"),  # noqa: E501
    ("references", FINES, "      loan:       {ref: owner}", "      loan:       {value: 7}", "", "points at nothing in loans"),  # noqa: E501
    ("coherent", LOANS, "  - UPDATE loans SET due = date(:now), progress", "  - UPDATE loans SET due = date(lent, '-1 day') WHERE id % 7 = 1\n  - UPDATE loans SET due = date(:now), progress", "table loans", "due lies before lent"),  # noqa: E501
    ("coherent", LOANS, "date(:now), progress = 'running' WHERE id % 11 = 3", "'soon', progress = 'running' WHERE id % 11 = 3", "loans.due", "'soon' is no day"),  # noqa: E501
    ("coherent", FINES, "coalesce((SELECT sum(r.paid_cents) FROM fine_receipts r WHERE r.fine = f.id), 0)\npage", "0 AND 0\npage", "service fines", "sums are derived"),  # noqa: E501
    ("invariants_hold", FINES, "SET settled = 'paid' WHERE paid_cents = owed_cents\n", "SET settled = 'paid' WHERE paid_cents = owed_cents\n  - UPDATE fines SET paid_cents = 1 WHERE id = 901\n", "invariant fines_add_up", "violated at the start"),  # noqa: E501
    ("invariants_bite", LOANS, "    enforced: false\n    stated_in: policies/loans\n", "", "invariant extended_in_time", "it counts as enforced, and"),  # noqa: E501
    ("invariants_bite", LOANS, "  - id: extended_once\n", "  - id: extended_once\n    enforced: false\n    stated_in: policies/loans\n", "invariant extended_once", "no wrong, near or forbidden plan"),  # noqa: E501
    ("rules_cross", LIBRARY, "    trigger: fines", "    trigger: books", "rule no_time_while_owing", "reads nothing of books"),  # noqa: E501
    ("rules_cross", LIBRARY, "    goals:\n", IDLE_GUARD, "rule no_time_while_owing", "its guard stops no forbidden plan"),  # noqa: E501
    ("traps", LOANS, "WHERE id % 11 = 3", "WHERE id % 11 = 33", "service loans, traps 1", "it changes no row"),
    ("traps", MEMBERS, "JOIN members m ON m.name = o.name AND m.id <> o.id", "JOIN members m ON m.name = o.name AND m.id < o.id AND m.id > 9999", "goal note", "no target has a plausible wrong one"),  # noqa: E501
    ("names", LIBRARY, "  find_books: search_volumes", "  find_books: find_books", "find_books", "has the blueprint's name"),  # noqa: E501
]  # fmt: skip


@pytest.mark.parametrize("case", FAULTY, ids=[f"{row[0]}-{row[4] or row[5]}" for row in FAULTY])
def test_each_validator_finds_what_it_is_for(change, composed, case) -> None:
    rule, file, old, new, where, message = case
    library = change(file, old, new).library
    if "count_fines" in new:
        library = change(LIBRARY, "  fines: charges\n", "  fines: charges\n  count_fines: count_charges\n").library
    company = composed("gb", "1", library)
    found = [f for f in authoring_findings(company, library) if (f.rule, f.where) == (rule, where or f.where)]
    assert any(message in finding.message for finding in found), found


def test_a_forbidden_plan_that_another_rule_stops_is_tried_on_further_targets(change, composed) -> None:
    says = "error: that loan does not run}"
    running = f"      - {{sql: \"SELECT progress = 'running' FROM loans WHERE id = :loan\", {says}\n"
    late = "o.progress = 'running' AND o.due < date(:now)"
    first = f"SELECT (SELECT count(*) FROM loans o WHERE {late} AND o.id < :loan) >= {TARGETS}"
    stops = f'{running}      - {{sql: "{first}", error: not of these}}\n'
    trial = Trial(composed("gb", "1", change(LOANS, running, stops).library))
    try:
        tried = trial.goals["too_late"]
    finally:
        trial.close()
    plays = [play for play in tried.plays if play.kind == "forbidden 1"]
    assert [play.refusal for play in plays[:TARGETS]] == ["extend_loan: not of these"] * TARGETS
    assert (plays[-1].refusal, plays[-1].violated) == ("", {"extended_in_time"})


def test_the_manual_must_be_readable(composed, small) -> None:
    company = composed()
    rows = {**company.neutral.rows, "policies": tuple(r for r in company.neutral.rows["policies"] if r[0] != "loans")}
    broken = type(company)(**{**vars(company), "neutral": company.neutral.model_copy(update={"rows": rows})})
    findings = [finding for finding in authoring_findings(broken, small) if finding.rule == "rules_readable"]
    assert [finding.where for finding in findings] == ["invariant extended_in_time"]


def test_a_world_that_is_not_its_seeds_is_found(composed, small) -> None:
    company, other = composed(), composed("gb", "2")
    changed = type(company)(**{**vars(company), "world": other.world})
    findings = [finding for finding in authoring_findings(changed, small) if finding.rule == "deterministic"]
    assert [finding.message for finding in findings] == ["composed again, it is another world"]


@pytest.mark.parametrize(
    ("where", "file", "text"),
    [
        ("goal extend", LOANS, "  extend:"), ("tool pay_fine", FINES, "  pay_fine:"),
        ("invariant fines_add_up", FINES, "  - id: fines_add_up"), ("service loans, traps 2", LOANS, "  - UPDATE loans SET due = date(:now, '-1 day')"),  # noqa: E501
        ("rule no_time_while_owing", LIBRARY, "  no_time_while_owing:"), ("goal owing", LIBRARY, "      owing:"),
        ("", LIBRARY, "industry: library"), ("nothing known", LIBRARY, "industry: library"),
    ],
)  # fmt: skip
def test_findings_have_a_file_and_a_line(composed, small, where, file, text) -> None:
    place = place_of(Finding(rule="sizes", message="", where=where), composed(), small)
    path, _, line = place.rpartition(":")
    assert path == str(small.folder / file)
    assert (small.folder / file).read_text("utf-8").splitlines()[int(line) - 1].startswith(text)
