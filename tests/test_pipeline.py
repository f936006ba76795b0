"""The order of a build: what is recorded, what is repeated, what stops it. Plug-ins are small real ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from envsynth import admission, pipeline, work
from envsynth.catalog import Catalog
from envsynth.config import BuildConfig
from envsynth.errors import ConfigError, DiskFull, EnvsynthError, SandboxError, SourceError
from envsynth.models import (
    Candidate,
    Check,
    Dropped,
    Event,
    Finding,
    Lead,
    Provenance,
    Recipe,
    Reference,
    RoleRule,
    Source,
    TestCommand,
    Tree,
    Verdict,
    VerdictStatus,
    Verifier,
    Workspace,
)
from envsynth.protocols import Context


class Listing:
    """A generator whose leads are named by the source's option `leads`."""

    name = "repository"
    version = "1"
    developed: ClassVar[list[str]] = []
    trouble: ClassVar[dict[str, Exception]] = {}

    def plan(self, source: Source, context: Context) -> Iterator[Lead | Dropped]:
        if "unreadable" in source.uri:
            raise SourceError("it does not exist", where=source.uri)
        if "down" in source.uri:
            raise SandboxError("the host cannot be reached", where=source.uri, cause="no route to it")
        for index, ref in enumerate(dict(source.extra)["leads"].split(",")):
            lead = Lead(generator=self.name, generator_version=self.version, source=source.uri, name="x", revision="r",
                        strategy="history", ref=ref, index=index)  # fmt: skip
            yield Dropped(lead=lead, reason="merge") if ref.startswith("merge") else lead

    def develop(self, lead: Lead, source: Source, context: Context) -> Candidate | Dropped:
        self.developed.append(lead.ref)
        if lead.ref in self.trouble:
            raise self.trouble[lead.ref]
        if lead.ref.startswith("drop"):
            return Dropped(lead=lead, reason="no_fail_to_pass", detail="start: 3 passed")
        if lead.ref.startswith("lack"):
            return Dropped(lead=lead, reason="no_interpreter", detail="install 3.99", retryable=True)
        context.note("one line for the user")
        empty = context.blobs.put_tree(Tree())
        workspace = Workspace(
            tree=empty, hidden=empty, command=TestCommand(runner="pytest", targets=("tests",)),
            recipe=Recipe(language="python", interpreter="3.11", requirements=(), newest="2026-01-01"),
            roles=(RoleRule(pattern="^tests/", role="test"),),
        )  # fmt: skip
        return Candidate(
            instruction=lead.ref, environment=workspace, verifier=Verifier(checks=(Check(id="c", sql="SELECT 1"),)),
            reference=Reference(changes=empty, patch=context.blobs.put(b"")), provenance=Provenance(lead=lead),
        )  # fmt: skip


class Judge:
    """A validator that reads its verdict from the lead's name."""

    def __init__(self, name: str, order: int) -> None:
        self.name, self.order, self.version = name, order, "1"
        self.judged: list[str] = []

    def validate(self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict]) -> Verdict:
        ref = candidate.provenance.lead.ref
        self.judged.append(ref)
        if ref == f"crash-{self.name}":
            raise ZeroDivisionError(ref)
        status = VerdictStatus.FAIL if ref == f"fail-{self.name}" else VerdictStatus.PASS
        findings = (Finding(rule="bad", message="bad"),) if status is VerdictStatus.FAIL else ()
        return Verdict(validator=self.name, version=self.version, status=status, findings=findings)


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> list[Judge]:
    judges = [Judge("static", 10), Judge("determinism", 20), Judge("execution", 30)]
    monkeypatch.setattr(work, "validators", lambda kind: tuple(judges))
    monkeypatch.setattr(admission, "REQUIRED", {"workspace": tuple(judge.name for judge in judges)})
    monkeypatch.setattr(admission, "HEARD", {"workspace": ()})
    monkeypatch.setattr(work, "generator", lambda _: Listing())
    monkeypatch.setattr(pipeline, "generator", lambda _: Listing())
    monkeypatch.setattr(pipeline._Build, "_export", lambda *_: None)
    monkeypatch.setattr(Listing, "developed", [])
    monkeypatch.setattr(Listing, "trouble", {})
    return judges


def config(tmp_path: Path, *sources: str, **settings: object) -> BuildConfig:
    return BuildConfig(
        sources=tuple(f"{source} trusted=yes" for source in sources), root=tmp_path, cache=tmp_path / "cache",
        catalog=tmp_path / "c.duckdb", out=tmp_path / "out", jobs=1, sandbox="local", **settings,
    )  # fmt: skip


def outcomes(tmp_path: Path) -> dict[str, tuple[str, str]]:
    with Catalog.open(tmp_path / "c.duckdb", read_only=True) as catalog:
        return {one.lead.ref: (one.status.value, one.reason) for one in catalog.outcomes()}


def test_every_lead_ends_in_the_catalog_with_its_reason(tmp_path: Path, judges: list[Judge]) -> None:
    events: list[Event] = []
    leads = "good,merge1,drop1,fail-static,fail-execution,crash-determinism"
    report = pipeline.build(config(tmp_path, f"https://host.example/o/repo leads={leads}"), events.append)
    assert outcomes(tmp_path) == {
        "good": ("admitted", ""), "merge1": ("dropped", "merge"), "drop1": ("dropped", "no_fail_to_pass"),
        "fail-static": ("rejected", "bad"), "fail-execution": ("rejected", "bad"),
        "crash-determinism": ("owed", "environment_error"),
    }  # fmt: skip
    assert report.statuses == {"admitted": 1, "dropped": 2, "rejected": 2, "owed": 1}
    assert report.exit_code == 3
    assert "fail-static" not in judges[1].judged
    assert "crash-determinism" not in judges[2].judged
    assert [event.text for event in events if event.kind == "note"].count("one line for the user") == 1
    assert [event.done for event in events if event.kind == "lead"] == [1, 2, 3, 4, 5]


def test_a_second_build_does_only_what_is_owed(tmp_path: Path, judges: list[Judge]) -> None:
    leads = "good,drop1,fail-static,late"
    Listing.trouble["late"] = SandboxError("no registry", retryable=True)
    first = pipeline.build(config(tmp_path, f"https://host.example/o/repo leads={leads}"), lambda _: None)
    assert (first.exit_code, first.reused) == (3, 0)
    Listing.developed.clear()
    Listing.trouble.clear()
    second = pipeline.build(config(tmp_path, f"https://host.example/o/repo leads={leads}"), lambda _: None)
    assert Listing.developed == ["late"]
    assert (second.exit_code, second.reused, second.statuses["admitted"]) == (0, 3, 2)


def test_a_new_validator_version_means_new_judgement(tmp_path: Path, judges: list[Judge]) -> None:
    pipeline.build(config(tmp_path, "https://host.example/o/repo leads=good"), lambda _: None)
    judges[2].version = "2"
    pipeline.build(config(tmp_path, "https://host.example/o/repo leads=good"), lambda _: None)
    assert judges[2].judged == ["good", "good"]


def test_equal_infrastructure_errors_in_a_row_stop_the_build_and_name_the_cause(
    tmp_path: Path, judges: list[Judge]
) -> None:
    names = [f"late{number}" for number in range(9)]
    Listing.trouble.update({name: SandboxError("no answer", where=name, cause="host is down") for name in names})
    with pytest.raises(EnvsynthError, match=r"stopped after 5 equal .*host is down"):
        pipeline.build(config(tmp_path, f"https://host.example/o/repo leads=good,{','.join(names)}"), lambda _: None)
    found = outcomes(tmp_path)
    assert found["good"] == ("admitted", "")
    assert sorted(ref for ref, (status, _) in found.items() if status == "owed") == names[:5]


def test_equal_infrastructure_errors_are_counted_across_sources(tmp_path: Path, judges: list[Judge]) -> None:
    for number in range(9):
        Listing.trouble[f"late{number}"] = SandboxError("no answer", where=str(number), cause="host is down")
    sources = [f"https://host.example/o/repo{number} leads=late{number}" for number in range(9)]
    with pytest.raises(EnvsynthError, match=r"stopped after 5 equal .*host is down"):
        pipeline.build(config(tmp_path, *sources), lambda _: None)
    assert sorted(outcomes(tmp_path)) == [f"late{number}" for number in range(5)]


def test_sources_whose_hosts_are_down_stop_a_build_that_keeps_going(tmp_path: Path, judges: list[Judge]) -> None:
    asked: list[str] = []
    sources = [f"https://host.example/o/down{number}" for number in range(4)]
    sources += ["https://host.example/o/repo leads=good", *(f"https://host.example/o/down{n}" for n in range(4, 12))]
    with pytest.raises(EnvsynthError, match=r"stopped after 5 equal .*no route to it"):
        pipeline.build(
            config(tmp_path, *sources, keep_going=True),
            lambda event: asked.append(event.source) if event.kind == "source" else None,
        )
    assert len(asked) == 4 + 1 + 5
    assert outcomes(tmp_path) == {}


def test_leads_that_lack_an_interpreter_are_owed_and_stop_nothing(tmp_path: Path, judges: list[Judge]) -> None:
    events: list[Event] = []
    leads = ",".join(f"lack{number}" for number in range(7))
    report = pipeline.build(config(tmp_path, f"https://host.example/o/repo leads={leads},good"), events.append)
    assert (report.exit_code, report.statuses) == (3, {"owed": 7, "admitted": 1})
    assert any("[install 3.99]" in event.text for event in events)
    assert [event for event in events if event.kind == "error"] == []


def test_a_full_disk_stops_at_once_and_keeps_what_had_finished(tmp_path: Path, judges: list[Judge]) -> None:
    Listing.trouble["full"] = OSError(28, "No space left on device")
    with pytest.raises(DiskFull):
        pipeline.build(config(tmp_path, "https://host.example/o/repo leads=good,full,never"), lambda _: None)
    assert Listing.developed == ["good", "full"]
    assert outcomes(tmp_path) == {"good": ("admitted", "")}


def test_nothing_admitted_is_a_finding_and_its_cause_is_told(tmp_path: Path, judges: list[Judge]) -> None:
    events: list[Event] = []
    report = pipeline.build(config(tmp_path, "https://host.example/o/repo leads=drop1,fail-static"), events.append)
    assert (report.exit_code, report.statuses) == (1, {"dropped": 1, "rejected": 1})
    told = [event.text for event in events if event.kind == "lead"]
    assert told[0].endswith("[start: 3 passed]")
    assert told[1].endswith("[bad]")


def test_wrong_paths_are_found_before_any_work(tmp_path: Path, judges: list[Judge]) -> None:
    (tmp_path / "file").write_text("")
    settings = config(tmp_path, "https://host.example/o/repo leads=good")
    for wrong in ({"out": tmp_path / "file" / "out"}, {"catalog": tmp_path / "file" / "c.duckdb"}):
        with pytest.raises(ConfigError, match="Next: name another"):
            pipeline.build(settings.model_copy(update=wrong), lambda _: None)
    assert Listing.developed == []


def test_equal_trouble_is_told_once(tmp_path: Path, judges: list[Judge]) -> None:
    for number in (1, 2, 3):
        Listing.trouble[f"late{number}"] = SandboxError("no answer", where=f"lead {number}", cause=f"after {number} s")
    events: list[Event] = []
    report = pipeline.build(config(tmp_path, "https://host.example/o/repo leads=late1,late2,late3,good"), events.append)
    assert [event.text for event in events if event.kind == "error"] == ["owed late1: lead 1: no answer (after 1 s)"]
    assert report.exit_code == 3


def test_an_unreadable_source_stops_or_is_reported(tmp_path: Path, judges: list[Judge]) -> None:
    sources = ("https://host.example/o/unreadable leads=x", "https://host.example/o/repo leads=good")
    with pytest.raises(SourceError, match="does not exist"):
        pipeline.build(config(tmp_path, *sources), lambda _: None)
    report = pipeline.build(config(tmp_path, *sources, keep_going=True), lambda _: None)
    assert (report.exit_code, report.statuses) == (2, {"admitted": 1})
    assert "does not exist" in report.errors[0]


def test_every_bad_line_is_shown(tmp_path: Path, judges: list[Judge]) -> None:
    (tmp_path / "list.txt").write_text("nonsense://a\nhttps://host.example/o/repo leads=good limit=none\n")
    events: list[Event] = []
    with pytest.raises(SourceError) as caught:
        pipeline.build(config(tmp_path).model_copy(update={"sources": ("list.txt",)}), events.append)
    shown = [event.text for event in events if event.kind == "error"] + [str(caught.value)]
    assert [text.split(": ")[0] for text in shown] == ["list.txt:1", "list.txt:2"]
