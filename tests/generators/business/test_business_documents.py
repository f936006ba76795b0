"""The sixteen services and fourteen industries that come with envsynth."""

from __future__ import annotations

import pytest

from envsynth.generators.business.authoring import authoring_findings
from envsynth.generators.business.blueprint import Goal
from envsynth.generators.business.compose import compose
from envsynth.generators.business.countries import country
from envsynth.generators.business.load import library

SERVICES = (
    "appointments", "assets", "catalogue", "claims", "contracts", "customers", "inventory", "ledger", "orders",
    "payments", "procurement", "returns", "shipping", "staffing", "subscriptions", "support",
)  # fmt: skip
PLACES = {
    "airline": "pt", "banking": "de", "education": "ie", "healthcare": "in", "hospitality": "at", "insurance": "fr",
    "logistics": "nl", "manufacturing": "jp", "real_estate": "ke", "retail": "us", "software": "ee", "telecom": "kr",
    "utilities": "no", "wholesale": "ae",
}  # fmt: skip


def _goals(industry: str) -> dict[str, Goal]:
    document = library().industry(industry)
    owners = (*library().composed(document), *document.rules)
    return {goal.id: goal for owner in owners for goal in owner.goals}


def test_all_services_and_industries_are_there() -> None:
    assert library().services == SERVICES
    assert library().industries == tuple(PLACES)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_plans_refusals_and_a_page_that_states_its_numbers(name: str) -> None:
    service = library().service(name)
    assert any(goal.refuses for goal in service.goals)
    assert sum(not goal.refuses for goal in service.goals) >= 1
    assert all(goal.forbidden for goal in service.goals if goal.refuses and goal.id not in _REFUSED_BY_THE_SYSTEM)
    assert all(f"{{{setting}" in service.page for setting in service.settings)


_REFUSED_BY_THE_SYSTEM = frozenset({"reprice_too_early", "place_for_blocked", "transfer_frozen"})
"""What they wish for is stopped by a guard, so that no forbidden plan goes through."""


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_four_to_ten_tools(name: str) -> None:
    assert 4 <= len(library().service(name).tools) <= 10


@pytest.mark.parametrize("name", PLACES)
def test_a_company_has_ten_to_twenty_six_tools(name: str) -> None:
    assert 10 <= sum(len(service.tools) for service in library().composed(library().industry(name))) + 2 <= 26


@pytest.mark.parametrize("name", PLACES)
def test_some_rules_are_enforced_and_others_only_stated(name: str) -> None:
    assert {rule.enforced is None for rule in library().industry(name).rules} == {True, False}


@pytest.mark.parametrize("name", PLACES)
def test_every_goal_lies_in_a_process_that_can_be_asked_for_at_every_vagueness(name: str) -> None:
    goals, processes = _goals(name), library().industry(name).processes
    assert {goal for listed in processes.values() for goal in listed} == goals.keys()
    for process, listed in processes.items():
        told = {level for goal in listed if not goals[goal].refuses for level in goals[goal].says}
        assert {1, 2, 3} <= told, process


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place"), PLACES.items())
def test_a_company_of_every_industry_passes_the_authoring_checks(name: str, place: str) -> None:
    company = compose(library(), library().industry(name), country(place), "1")
    assert [f"{one.where}: {one.message}" for one in authoring_findings(company, library())] == []
