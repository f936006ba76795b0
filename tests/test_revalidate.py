"""Judging again: what is asked, what is kept, and that it ends as a fresh build. Plug-ins are small real ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from envsynth import admission, pipeline, work
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.errors import CatalogError, ConfigError, EnvsynthError, SandboxError
from envsynth.models import (
    Candidate,
    Check,
    Dropped,
    Event,
    Finding,
    Lead,
    Outcome,
    Provenance,
    Recipe,
    Reference,
    RoleRule,
    Source,
    Strength,
    TestCommand,
    TestLists,
    Tree,
    Verdict,
    VerdictStatus,
    Verifier,
    Workspace,
)
from envsynth.protocols import Context
from envsynth.revalidate import Selection, ValidationReport, revalidate

HOST = "https://host.example/o/repo"
EVERY = Selection(every=True)


class Listing:
    """A generator whose leads are named by the source's option `leads`."""

    name = "repository"
    version = "1"
    developed: ClassVar[list[str]] = []

    def plan(self, source: Source, context: Context) -> Iterator[Lead | Dropped]:
        for index, ref in enumerate(dict(source.extra)["leads"].split(",")):
            yield Lead(generator=self.name, generator_version=self.version, source=source.uri, name="x", revision="r",
                       strategy="history", ref=ref, index=index)  # fmt: skip

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        self.developed.append(lead.ref)
        if lead.ref.startswith("drop"):
            return Dropped(lead=lead, reason="no_fail_to_pass")
        empty = context.blobs.put_tree(Tree())
        workspace = Workspace(
            tree=empty, hidden=empty, command=TestCommand(runner="pytest", targets=("tests",)),
            recipe=Recipe(language="python", interpreter="3.11", requirements=(), newest="2026-01-01"),
            roles=(RoleRule(pattern="^tests/", role="test"),),
        )  # fmt: skip
        return Candidate(
            instruction=lead.ref, environment=workspace, verifier=Verifier(checks=(Check(id="c", sql="SELECT 1"),)),
            reference=Reference(changes=empty, patch=context.blobs.put(lead.ref.encode())),
            provenance=Provenance(lead=lead),
        )  # fmt: skip


class Judge:
    """A validator that is told whom to fail, and remembers whom it was asked about."""

    def __init__(self, name: str, order: int) -> None:
        self.name, self.order, self.version = name, order, "1"
        self.fails: set[str] = set()
        self.breaks: set[str] = set()
        self.stops: set[str] = set()
        self.tests: TestLists | None = TestLists(fail_to_pass=("t",), pass_to_pass=()) if name == "execution" else None
        self.asked: list[str] = []
        self.saw: list[str] = []

    def validate(self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict]) -> Verdict:
        ref = candidate.provenance.lead.ref
        if ref in self.stops:
            raise KeyboardInterrupt
        self.asked.append(ref)
        self.saw = [f"{verdict.validator} {verdict.version}" for verdict in earlier]
        # A validator may rely on the candidate's contents.
        assert context.blobs.get(candidate.reference.patch) == ref.encode()
        assert source.options.trusted
        if ref in self.breaks:
            raise SandboxError("no answer", where=ref, cause="host is down")
        failed = ref in self.fails
        return Verdict(
            validator=self.name, version=self.version, status=VerdictStatus.FAIL if failed else VerdictStatus.PASS,
            findings=(Finding(rule=f"{self.name}_failed", message="because"),) if failed else (), tests=self.tests,
            strength=Strength(attacks=int(self.version)) if self.name == "adversary" else None,
        )  # fmt: skip


class Ladder:
    """The installed validators, as a test changes them."""

    def __init__(self) -> None:
        self.judges = [Judge("static", 10), Judge("determinism", 20), Judge("execution", 30)]

    def __getitem__(self, name: str) -> Judge:
        return next(judge for judge in self.judges if judge.name == name)

    def install(self, name: str, order: int) -> Judge:
        self.judges = sorted([*self.judges, Judge(name, order)], key=lambda judge: judge.order)
        return self[name]

    def asked(self) -> dict[str, list[str]]:
        """Who was asked about whom since the last call."""
        found = {judge.name: sorted(judge.asked) for judge in self.judges if judge.asked}
        for judge in self.judges:
            judge.asked.clear()
        return found


@pytest.fixture
def ladder(monkeypatch: pytest.MonkeyPatch) -> Ladder:
    ladder = Ladder()
    monkeypatch.setattr(work, "validators", lambda kind: tuple(ladder.judges))
    monkeypatch.setattr(work, "generator", lambda _: Listing())
    monkeypatch.setattr(pipeline, "generator", lambda _: Listing())
    monkeypatch.setattr(pipeline._Build, "_export", lambda *_: None)
    monkeypatch.setattr(Listing, "developed", [])
    monkeypatch.setattr(admission, "REQUIRED", {"workspace": ("static", "determinism", "execution")})
    monkeypatch.setattr(admission, "HEARD", {"workspace": ()})
    return ladder


def config(folder: Path, leads: str = "") -> BuildConfig:
    return BuildConfig(
        sources=(f"{HOST} leads={leads} trusted=yes",), root=folder, cache=folder / "cache",
        catalog=folder / "c.duckdb", out=folder / "out", jobs=1, sandbox="local",
    )  # fmt: skip


def build(folder: Path, leads: str):
    folder.mkdir(exist_ok=True)
    return pipeline.build(config(folder, leads), lambda _: None)


def again(folder: Path, selection: Selection = EVERY) -> ValidationReport:
    return revalidate(config(folder), selection, lambda _: None)


def outcomes(folder: Path) -> dict[str, Outcome]:
    with Catalog.open(folder / "c.duckdb", read_only=True) as catalog:
        return {one.lead.ref: one for one in catalog.outcomes()}


def words(folder: Path) -> dict[str, str]:
    return {ref: f"{one.status.value} {one.reason}".strip() for ref, one in outcomes(folder).items()}


def verdicts(outcome: Outcome) -> list[str]:
    return [f"{verdict.validator} {verdict.version} {verdict.status.value}" for verdict in outcome.verdicts]


def dump(folder: Path):
    with Catalog.open(folder / "c.duckdb", read_only=True) as catalog:
        return catalog.dump()


def test_it_ends_as_a_fresh_build_and_a_build_then_repeats_nothing(tmp_path: Path, ladder: Ladder) -> None:
    leads = "good,drop,weak,flaky,late,beaten"
    ladder["static"].fails = {"weak"}
    ladder["execution"].fails = {"flaky"}
    ladder["determinism"].breaks = {"late"}
    build(tmp_path / "old", leads)
    ladder.asked()
    ladder["static"].fails, ladder["static"].version = set(), "2"
    ladder["execution"].version = "2"
    ladder.install("adversary", 40).fails = {"beaten"}
    report = again(tmp_path / "old")
    assert ladder.asked() == {
        "static": ["beaten", "flaky", "good", "late", "weak"],
        "determinism": ["late", "weak"],
        "execution": ["beaten", "flaky", "good", "weak"],
        "adversary": ["beaten", "good", "weak"],
    }
    assert (report.selected, report.standing) == (5, 0)
    assert report.statuses == {"admitted": 2, "rejected": 2, "owed": 1}
    assert [name.split("-")[1] for name in report.demoted] == ["beaten"]
    assert [name.split("-")[1] for name in report.admitted] == ["weak"]
    build(tmp_path / "fresh", leads)
    assert dump(tmp_path / "old") == dump(tmp_path / "fresh")
    ladder.asked()
    Listing.developed.clear()
    assert build(tmp_path / "old", leads).reused == 5
    assert Listing.developed == ["late"]


def test_nothing_missing_stale_or_owed_is_nothing_done(tmp_path: Path, ladder: Ladder) -> None:
    ladder["execution"].fails = {"bad"}
    build(tmp_path, "good,bad,drop")
    ladder.asked()
    before = (tmp_path / "c.duckdb").read_bytes()
    report = again(tmp_path)
    assert ladder.asked() == {}
    assert (report.selected, report.standing, report.build, report.exit_code) == (2, 2, None, 0)
    assert report.statuses == {"admitted": 1, "rejected": 1}
    assert (tmp_path / "c.duckdb").read_bytes() == before


def test_by_default_only_tasks_are_judged_again(tmp_path: Path, ladder: Ladder) -> None:
    ladder["execution"].fails = {"bad"}
    build(tmp_path, "good,bad")
    ladder.asked()
    ladder["execution"].version = "2"
    assert again(tmp_path, Selection()).selected == 1
    assert ladder.asked() == {"execution": ["good"]}
    name = outcomes(tmp_path)["bad"].candidate.id
    report = again(tmp_path, Selection(names=(name,)))
    assert ladder.asked() == {"execution": ["bad"]}
    # Named, and rejected as before: a finding, though nothing was demoted.
    assert (report.exit_code, report.demoted) == (1, ())
    assert "execution_failed (because)" in report.errors[0]


def test_a_fail_demotes_and_nothing_above_it_is_kept(tmp_path: Path, ladder: Ladder) -> None:
    ladder.install("adversary", 40)
    build(tmp_path, "good,turns")
    ladder.asked()
    ladder["determinism"].version, ladder["determinism"].fails = "2", {"turns"}
    report = again(tmp_path, Selection())
    assert ladder.asked() == {"determinism": ["good", "turns"]}
    assert verdicts(outcomes(tmp_path)["turns"]) == ["static 1 PASS", "determinism 2 FAIL"]
    assert words(tmp_path) == {"good": "admitted", "turns": "rejected determinism_failed"}
    assert (report.exit_code, len(report.demoted)) == (1, 1)
    # A later version that passes it climbs on to the top.
    ladder["determinism"].version, ladder["determinism"].fails = "3", set()
    report = again(tmp_path)
    assert ladder.asked() == {"determinism": ["good", "turns"], "execution": ["turns"], "adversary": ["turns"]}
    assert (report.exit_code, len(report.admitted)) == (0, 1)
    assert words(tmp_path)["turns"] == "admitted"


def test_what_reads_a_changed_measurement_is_asked_again(tmp_path: Path, ladder: Ladder) -> None:
    ladder.install("adversary", 40)
    build(tmp_path, "good")
    ladder.asked()
    ladder["execution"].version = "2"
    again(tmp_path)
    assert ladder.asked() == {"execution": ["good"]}
    ladder["execution"].version, ladder["execution"].tests = "3", TestLists(fail_to_pass=("u",), pass_to_pass=())
    again(tmp_path)
    assert ladder.asked() == {"execution": ["good"], "adversary": ["good"]}
    assert ladder["adversary"].saw == ["static 1", "determinism 1", "execution 3"]
    assert outcomes(tmp_path)["good"].task.tests == ladder["execution"].tests


def test_only_leaves_the_others_but_for_what_is_missing_below(tmp_path: Path, ladder: Ladder) -> None:
    build(tmp_path, "good")
    ladder.asked()
    ladder["static"].version = "2"
    ladder.install("controls", 32)
    ladder.install("adversary", 40)
    ladder.install("strictness", 48)
    again(tmp_path, Selection(only=("adversary",)))
    assert ladder.asked() == {"controls": ["good"], "adversary": ["good"]}
    kept = ["determinism 1 PASS", "execution 1 PASS", "controls 1 PASS", "adversary 1 PASS"]
    partly = outcomes(tmp_path)["good"]
    assert verdicts(partly) == ["static 1 PASS", *kept]
    assert partly.task.strength == Strength(attacks=1)
    assert partly.ladder != work.ladder("workspace")
    again(tmp_path, Selection(only=("adversary",)))
    assert ladder.asked() == {}
    again(tmp_path)
    assert ladder.asked() == {"static": ["good"], "strictness": ["good"]}
    whole = outcomes(tmp_path)["good"]
    assert verdicts(whole) == ["static 2 PASS", *kept, "strictness 1 PASS"]
    assert whole.ladder == work.ladder("workspace")


def test_a_task_is_not_lost_for_validators_that_only_left_out(
    tmp_path: Path, ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, "good,bad")
    ladder.install("adversary", 40).fails = {"bad"}
    ladder.install("strictness", 48)
    required = ("static", "determinism", "execution", "adversary", "strictness")
    monkeypatch.setattr(admission, "REQUIRED", {"workspace": required})
    report = again(tmp_path, Selection(only=("adversary",)))
    assert words(tmp_path) == {"good": "admitted", "bad": "rejected adversary_failed"}
    assert report.exit_code == 1


def test_only_and_a_candidate_that_gets_past_what_stopped_it(tmp_path: Path, ladder: Ladder) -> None:
    ladder["determinism"].fails = {"bad"}
    build(tmp_path, "bad")
    ladder.asked()
    again(tmp_path, Selection(every=True, only=("execution",)))
    assert ladder.asked() == {}  # not reached
    ladder["determinism"].version, ladder["determinism"].fails = "2", set()
    again(tmp_path, Selection(every=True, only=("determinism",)))
    assert ladder.asked() == {"determinism": ["bad"], "execution": ["bad"]}
    assert words(tmp_path) == {"bad": "admitted"}


def test_force_asks_again_under_the_same_ladder(tmp_path: Path, ladder: Ladder) -> None:
    build(tmp_path, "good,turns")
    ladder.asked()
    ladder["execution"].fails = {"turns"}
    again(tmp_path, Selection(only=("execution",), force=True))
    assert ladder.asked() == {"execution": ["good", "turns"]}
    assert words(tmp_path)["turns"] == "rejected execution_failed"
    again(tmp_path, Selection(names=(outcomes(tmp_path)["good"].candidate.id,), force=True))
    assert ladder.asked() == {"static": ["good"], "determinism": ["good"], "execution": ["good"]}


def test_what_the_environment_keeps_from_an_end_changes_nothing(tmp_path: Path, ladder: Ladder) -> None:
    build(tmp_path, "good,late")
    before = words(tmp_path), verdicts(outcomes(tmp_path)["late"])
    ladder.asked()
    ladder.install("adversary", 40).breaks = {"late"}
    report = again(tmp_path, Selection())
    assert (report.exit_code, report.statuses) == (3, {"admitted": 1, "owed": 1})
    assert "in the catalog it is admitted as before" in report.errors[0]
    assert "host is down" in report.errors[0]
    assert (words(tmp_path), verdicts(outcomes(tmp_path)["late"])) == before
    ladder.asked()
    ladder["adversary"].breaks = set()
    assert again(tmp_path, Selection()).exit_code == 0
    assert ladder.asked() == {"adversary": ["late"]}


def test_owed_candidates_climb_on_from_where_they_stopped(tmp_path: Path, ladder: Ladder) -> None:
    ladder["execution"].breaks = {"late"}
    build(tmp_path, "late")
    ladder.asked()
    again(tmp_path)  # still down
    assert ladder.asked() == {"execution": ["late"]}
    ladder["execution"].breaks = set()
    assert len(again(tmp_path).admitted) == 1
    assert ladder.asked() == {"execution": ["late"]}


def test_equal_infrastructure_errors_in_a_row_stop_it(tmp_path: Path, ladder: Ladder) -> None:
    names = [f"late{number}" for number in range(9)]
    build(tmp_path, ",".join(names))
    ladder.asked()
    ladder.install("adversary", 40).breaks = set(names)
    with pytest.raises(EnvsynthError, match=r"stopped after 5 equal .*host is down"):
        again(tmp_path)
    assert len(ladder.asked()["adversary"]) == 5
    assert set(words(tmp_path).values()) == {"admitted"}


def test_neither_source_nor_cache_is_needed(tmp_path: Path, ladder: Ladder) -> None:
    build(tmp_path, "good")
    shutil.rmtree(tmp_path / "cache")
    ladder.install("adversary", 40)
    assert again(tmp_path).exit_code == 0
    assert outcomes(tmp_path)["good"].task.strength == Strength(attacks=1)
    assert dump(tmp_path)["missing"] == []


def test_interrupted_it_keeps_what_had_finished_and_repeats_nothing(tmp_path: Path, ladder: Ladder) -> None:
    build(tmp_path, "a,b,c,d")
    order = [one.lead.ref for one in sorted(outcomes(tmp_path).values(), key=lambda one: one.lead.key)]
    ladder.asked()
    ladder.install("adversary", 40).stops = {order[2]}
    with pytest.raises(KeyboardInterrupt):
        again(tmp_path)
    assert ladder.asked() == {"adversary": sorted(order[:2])}
    ladder["adversary"].stops = set()
    report = again(tmp_path)
    assert ladder.asked() == {"adversary": sorted(order[2:])}
    assert (report.selected, report.standing) == (4, 2)
    with Catalog.open(tmp_path / "c.duckdb", read_only=True) as catalog:
        statuses = catalog.query("SELECT status FROM build ORDER BY id").rows
    assert statuses == [("done",), ("interrupted",), ("done",)]


def test_a_rule_of_admission_that_changed_runs_nothing(
    tmp_path: Path, ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, "good")
    ladder.asked()
    monkeypatch.setattr(admission, "VERSION", "later")
    assert again(tmp_path).standing == 0
    assert ladder.asked() == {}
    assert outcomes(tmp_path)["good"].ladder == work.ladder("workspace")
    assert again(tmp_path).standing == 1


def test_it_tells_each_step(tmp_path: Path, ladder: Ladder) -> None:
    build(tmp_path, "good,bad")
    ladder.install("adversary", 40).fails = {"bad"}
    events: list[Event] = []
    revalidate(config(tmp_path), Selection(), events.append)
    assert next(event for event in events if event.kind == "plan").text == "2 of 2 candidates to be judged"
    leads = [event for event in events if event.kind == "lead"]
    assert sorted(event.text.split()[0] for event in leads) == ["admitted", "rejected"]
    assert [(event.done, event.total) for event in leads] == [(1, 2), (2, 2)]


def test_names_that_are_not_known(tmp_path: Path, ladder: Ladder) -> None:
    with pytest.raises(ConfigError, match=r"there is no catalog .*envsynth build"):
        again(tmp_path)
    assert not (tmp_path / "c.duckdb").exists()
    build(tmp_path, "good,drop")
    with pytest.raises(ConfigError, match=r"no validator named 'excution' \(did you mean execution\?\)"):
        again(tmp_path, Selection(only=("excution",)))
    name = outcomes(tmp_path)["good"].candidate.id
    with pytest.raises(ConfigError, match=rf"no task or lead '{name[:-1]}_' \(did you mean {name}\?\)"):
        again(tmp_path, Selection(names=(f"{name[:-1]}_",)))
    with pytest.raises(ConfigError, match=r"the lead was dropped \(no_fail_to_pass\): there is nothing to validate"):
        again(tmp_path, Selection(names=(outcomes(tmp_path)["drop"].lead.key,)))


def test_a_content_that_neither_cache_nor_catalog_has(tmp_path: Path, ladder: Ladder) -> None:
    build(tmp_path, "good")
    shutil.rmtree(tmp_path / "cache")
    patch = outcomes(tmp_path)["good"].candidate.reference.patch
    with Catalog.open(tmp_path / "c.duckdb") as catalog:
        catalog._connection.execute("DELETE FROM blob WHERE digest = ?", [patch])
    ladder.install("adversary", 40)
    with pytest.raises(CatalogError, match=r"missing or damaged in the catalog.*Next: envsynth catalog rm x-good"):
        again(tmp_path)
