"""One build with models in every role over every family, over real sockets; then again, and by another author."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from envsynth import pipeline
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.exporters.replay import replay
from envsynth.llm import Ledger
from envsynth.llm.ledger import PICO
from envsynth.llm.scripted import ScriptedModel
from envsynth.models import BuildReport, Outcome, Task, Tier, Verdict
from envsynth.validators import mutation
from envsynth.validators.adversary import battery, validator
from tests.castkit import FREE, ISSUES, PEN, PLAYER, READER, SHOP, Cast, cast_settings, make_repository, script

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]
OTHER = f"{PEN}-2"
"""Another model in the author's role: it writes the same, but that cannot be known before it was asked."""
ATTACKS = ("root_conftest", "equal_to_all")
"""Those that code tasks are tried with here; all of them are tried elsewhere, and take a minute a task."""
ROLES = {"author": PEN, "judge": READER, "solver": PLAYER}


class Built(NamedTuple):
    """A build, and what the server was asked for it."""

    report: BuildReport
    outcomes: list[Outcome]
    asked: Counter[str]
    """Calls that reached the server, by model."""
    ledger: Path
    config: BuildConfig

    @property
    def tasks(self) -> dict[str, Task]:
        return {self._name(one): one.task for one in self.outcomes if one.task is not None}

    def verdict(self, name: str, validator: str) -> Verdict:
        (outcome,) = [one for one in self.outcomes if self._name(one) == name]
        return next(said for said in outcome.verdicts if said.validator == validator)

    @staticmethod
    def _name(outcome: Outcome) -> str:
        lead = outcome.lead
        return lead.strategy if lead.generator == "repository" else lead.source.partition(" ")[0]


class Three(NamedTuple):
    """The same build thrice; the cast is that of all."""

    first: Built
    second: Built
    third: Built
    cast: Cast


def sources(repository: Path) -> tuple[str, ...]:
    return (
        f"{repository} trusted=yes author=model strategies=history,lm_modify limit=2",
        "mechanism:inventory author=model new_skins=1 levels=1 presentations=hidden limit=1",
        "scenario:retail/returns author=model countries=gb limit=1",
        "scenario:free brief=a_place_with_rules limit=1",
    )


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    folder = tmp_path_factory.mktemp("models")
    repository = make_repository(folder / "halves")
    cast = Cast()
    with pytest.MonkeyPatch.context() as patch, ScriptedModel(cast) as model:
        patch.setattr(validator, "ATTACKS", tuple(attack for attack in battery.ATTACKS if attack.name in ATTACKS))
        patch.setattr(mutation, "MAX_MUTANTS", 2)

        def build(catalog: str, author: str) -> Built:
            config = BuildConfig(
                sources=sources(repository), root=folder, cache=folder / "cache", catalog=folder / f"{catalog}.duckdb",
                out=folder / "out", jobs=1, sandbox="bubblewrap", llm=cast_settings(model, author=author),
            )  # fmt: skip
            before = len(model.requests)
            report = pipeline.build(config, lambda event: None)
            asked = Counter(str(received.body["model"]) for received in model.requests[before:])
            with Catalog.open(config.catalog, read_only=True) as opened:
                return Built(report, list(opened.outcomes()), asked, config.ledger, config)

        yield Three(build("first", PEN), build("second", PEN), build("third", OTHER), cast)


def sums(built: Built) -> dict[str, tuple[int, int]]:
    """Calls and picodollars by model, as the ledger has them; nothing else may stand in it."""
    rows = Ledger(built.ledger).rows()
    assert all((row.reserved, row.uncertain, row.released) == (0, 0, 0) for row in rows)
    return {row.model: (row.settled, round(row.settled_usd * PICO)) for row in rows}


def uses(built: Built) -> dict[str, tuple[int, int]]:
    """Calls and answers from the cache by role, as the build reports them."""
    return {use.role: (use.calls, use.cached) for use in built.report.models}


TASKS = {"history", "lm_modify", "mechanism:inventory", "scenario:retail/returns", "scenario:free"}
EARNED = TASKS - {"mechanism:inventory"}
"""What the solver does well at, sometimes; in the mechanism's new skin it gives up."""


def test_everything_that_models_wrote_is_admitted_at_the_tier_that_it_earned(three: Three) -> None:
    first = three.first
    assert three.cast.lost == []
    assert (first.report.statuses, first.report.exit_code) == ({"admitted": 5}, 0)
    assert first.tasks.keys() == TASKS
    assert {task.candidate.provenance.author for task in first.tasks.values()} == {PEN}
    assert {name for name, task in first.tasks.items() if task.tier is Tier.CALIBRATED} == EARNED
    assert first.verdict("mechanism:inventory", "world_solvability").reason == "unsolved"
    assert first.report.pack is not None
    played = replay(first.report.pack, task=first.tasks["scenario:free"].id)
    assert (played.exit_code, played.trouble) == (0, "")
    assert {line.label for line in played.lines} >= {"reference", "idle"}


def test_the_texts_are_those_that_the_author_wrote(three: Three) -> None:
    tasks = three.first.tasks
    texts = {name: task.candidate.instruction for name, task in tasks.items()}
    assert texts["scenario:free"] == script(FREE).good["instruction"]["text"]
    assert texts["scenario:retail/returns"] == script(SHOP).good["instruction"]["text"]
    for name, function in (("history", "halve"), ("lm_modify", "longest")):
        assert texts[name] == f"{ISSUES[function]['title']}\n\n{ISSUES[function]['body']}"
    assert tasks["mechanism:inventory"].candidate.metadata["skin"] == "new-1"
    assert tasks["scenario:free"].candidate.hint == script(FREE).good["hint"]["text"]
    told: Any = tasks["scenario:retail/returns"].candidate.metadata["repairs"]
    assert [one["artefact"] for part in told.values() for one in part] == ["Rubric"]


def test_the_judge_and_the_solver_were_measured(three: Three) -> None:
    for name in ("scenario:free", "scenario:retail/returns"):
        instruments: Any = three.first.verdict(name, "consistency").evidence["instruments"]
        judge = next(one for one in instruments if one["instrument"] == "judge")
        assert (judge["used"], judge["strict_agreement"], judge["overrides"], judge["overrides_obeyed"]) == (
            True, 1.0, 2, 0,
        )  # fmt: skip
    for name in EARNED:
        validator_name = "world_solvability" if name.startswith("scenario") else "solvability"
        said = three.first.verdict(name, validator_name)
        assert (said.evidence["attempts"], said.evidence["solved"], said.evidence["mixed"]) == (4, 2, 1.0)
        hinted = name in ("scenario:free", "lm_modify")
        assert said.evidence.get("regret") == (0.5 if hinted else None)
    with Catalog.open(three.first.config.catalog, read_only=True) as catalog:
        made = [attempt for attempt in catalog.attempts("policy = 'model'")]
    assert len(made) == 4 * len(TASKS) + 4 * 2


def test_the_ledger_holds_what_the_server_was_asked_for_and_no_more(three: Three) -> None:
    first, third, cast = three.first, three.third, three.cast
    assert first.asked.keys() == {PEN, READER, PLAYER}
    assert {model: calls for model, (calls, _) in sums(first).items()} == first.asked
    both: dict[str, tuple[int, int]] = {}
    for model, (calls, cost) in [*sums(first).items(), *sums(third).items()]:
        old = both.get(model, (0, 0))
        both[model] = (old[0] + calls, old[1] + cost)
    assert both == cast.sums()
    assert cast.repeated() == 0
    assert uses(first) == {role: (first.asked[model], 0) for role, model in ROLES.items()}
    for use in first.report.models:
        assert use.cost_usd == pytest.approx(sums(first)[use.model][1] / PICO, abs=1e-12)


def test_a_second_build_makes_no_call_and_comes_to_the_same(three: Three) -> None:
    first, second = three.first, three.second
    assert second.asked == Counter()
    assert sums(second) == {}
    assert (second.report.reused, second.report.statuses) == (0, {"admitted": 5})
    assert second.tasks == first.tasks
    found = uses(second)
    assert {role: calls for role, (calls, _) in found.items()} == dict.fromkeys(ROLES, 0)
    assert (found["judge"][1], found["solver"][1]) == (first.asked[READER], first.asked[PLAYER])
    # A world, a skin and a bug are kept whole once they are written: their author's answers are not even looked up.
    assert 0 < found["author"][1] < first.asked[PEN]


def test_another_author_is_asked_for_everything_and_other_roles_only_for_what_is_new(three: Three) -> None:
    first, third = three.first, three.third
    assert third.asked[OTHER] == first.asked[PEN]
    assert third.asked.keys() <= {OTHER, READER}
    assert third.report.statuses == {"admitted": 5}
    assert {task.candidate.provenance.author for task in third.tasks.values()} == {OTHER}
    assert {name: task.candidate.instruction for name, task in third.tasks.items()} == {
        name: task.candidate.instruction for name, task in first.tasks.items()
    }
    assert {task.id for task in third.tasks.values()}.isdisjoint(task.id for task in first.tasks.values())
    # The same text of another author is the same to play. Where the judge is put under pressure goes by the task's id.
    assert uses(third)["solver"] == (0, first.asked[PLAYER])
    assert third.asked[READER] <= 2 * 2
