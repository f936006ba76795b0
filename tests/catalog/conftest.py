"""Outcomes made by hand, of every status, over a real cache."""

from __future__ import annotations

import pytest

from envsynth.cache import Cache
from envsynth.models import (
    Candidate,
    Check,
    Control,
    Cost,
    Criterion,
    CriterionClass,
    Dropped,
    FileMode,
    Finding,
    Lead,
    Outcome,
    OutcomeStatus,
    Provenance,
    Recipe,
    Reference,
    Role,
    RoleRule,
    Strength,
    Task,
    TestCommand,
    TestLists,
    TestRecord,
    TestRun,
    TestStatus,
    Tier,
    ToolCall,
    Trajectory,
    Tree,
    TreeEntry,
    Verdict,
    VerdictStatus,
    VerdictSummary,
    Verifier,
    Workspace,
)

LADDER = "1" * 64
ODD_KEY = "tests/test_a.py::test_b[a b::ü '\"\\ 名]"


CONTROL = Control(
    path="tests/test_a.py", function="test_b", first=3, last=9,
    text="def test_b():\n    assert 0, 'é'\n", kind="negated", keys=(ODD_KEY,),
)  # fmt: skip
SURVIVORS = (
    Finding(rule="mutant_survived", message="`<` became `<=`", where="src/a:b/m 1.py:31"),
    Finding(rule="part_survived", message="a hunk was dropped", where="src/m1.py"),
)


class Maker:
    """Makes outcomes; the same arguments give equal outcomes."""

    ladder = LADDER

    def __init__(self, blobs: Cache) -> None:
        self.blobs = blobs

    def lead(self, index: int, source: str = "https://host/owner/boltons") -> Lead:
        return Lead(
            generator="repository",
            generator_version="1",
            source=source,
            name="boltons",
            revision="c" * 40,
            strategy="history",
            ref=f"{index:040x}",
            title=f"Fix 'case' {index}",
            index=index,
        )

    def tree(self, files: dict[str, bytes]) -> str:
        entries = (
            TreeEntry(path=path, mode=FileMode.FILE, blob=self.blobs.put(content), size=len(content))
            for path, content in files.items()
        )
        return self.blobs.put_tree(Tree(entries=tuple(entries)))

    def candidate(self, lead: Lead, files: int = 3) -> Candidate:
        start = {f"src/m{n}.py": f"VALUE = {n}\n".encode() for n in range(files)}
        start["src/changing.py"] = f"INDEX = {lead.index}\n".encode()
        recipe = Recipe(
            language="python",
            interpreter="3.11",
            requirements=("pytest==8.0.0",),
            newest="2023-06-01",
            site=self.tree({"boltons.dist-info/METADATA": b"Name: boltons\n"}),
        )
        return Candidate(
            instruction=f"Case {lead.index} is wrong; it should be right.",
            environment=Workspace(
                tree=self.tree(start),
                hidden=self.tree({"tests/test_a.py": b"def test_b(): ...\n"}),
                recipe=recipe,
                command=TestCommand(runner="pytest", targets=("tests",)),
                roles=(RoleRule(pattern=r"^tests/", role=Role.TEST),),
            ),
            verifier=Verifier(
                checks=(Check(id="tests_pass", sql="SELECT 1"),),
                rubric=(
                    Criterion(
                        id="ran_tests", class_=CriterionClass.IMPORTANT, sql="SELECT 1", evidence="SELECT 1", text="t"
                    ),
                ),
            ),
            reference=Reference(
                changes=self.tree({"src/changing.py": b"INDEX = -1\n"}),
                patch=self.blobs.put(f"--- a/src/changing.py\n+++ b/src/changing.py\n@@ {lead.index}\n".encode()),
            ),
            provenance=Provenance(lead=lead, base_commit="b" * 40, reference_commit=lead.ref, authored_at="2023-05-01"),
        )

    def run(self, state: str, repeat: int, flicker: bool, tests: int = 4) -> TestRun:
        records = [
            TestRecord(key=f"tests/test_a.py::test_{n}", id=f"tests/test_a.py::test_{n}", status=TestStatus.PASSED)
            for n in range(tests)
        ]
        before = state == "start"
        records.append(
            TestRecord(
                key=ODD_KEY,
                id=ODD_KEY + " 0x7f",
                status=TestStatus.FAILED if before else TestStatus.PASSED,
                message='E   assert 1 == 2\0\n"quoted" \\u0000 ü' if before else "",
                line=3 if before else 0,
            )
        )
        if flicker:
            status = (TestStatus.PASSED, TestStatus.ERROR)[repeat % 2]
            records.append(TestRecord(key="tests/test_a.py::test_time", id="tests/test_a.py::test_time", status=status))
        return TestRun(
            state=state,
            repeat=repeat,
            complete=True,
            exit_code=1 if before else 0,
            records=tuple(records),
            output_tail=f"\x1b[31m{state}\x1b[0m\n",
            cost=Cost(wall_s=1.0, cpu_s=0.5, disk_bytes=10),
        )

    def verdicts(self, status: OutcomeStatus, flicker: bool, tests: int) -> tuple[Verdict, ...]:
        static = Verdict(
            validator="static", version="1", status=VerdictStatus.PASS, evidence={"queries": 3, "took_s": 0.1}
        )
        runs = tuple(
            self.run(state, repeat, flicker, tests)
            for state, repeat in (("start", 0), ("start", 1), ("reference", 0), ("reference", 1), ("reference", 2))
        )
        lists = TestLists(
            fail_to_pass=(ODD_KEY,),
            pass_to_pass=tuple(f"tests/test_a.py::test_{n}" for n in range(tests)),
            flickering=("tests/test_a.py::test_time",) if flicker else (),
        )
        last = {
            OutcomeStatus.ADMITTED: VerdictStatus.PASS,
            OutcomeStatus.REJECTED: VerdictStatus.FAIL,
            OutcomeStatus.OWED: VerdictStatus.ERROR,
        }[status]
        findings = () if last is VerdictStatus.PASS else (Finding(rule=f"{last.value.lower()}_rule", message="why"),)
        execution = Verdict(
            validator="execution",
            version="2",
            status=last,
            findings=findings,
            evidence={"repeats": [2, 3]},
            tests=lists,
            runs=runs,
            cost=Cost(wall_s=5.0, cpu_s=2.5, disk_bytes=50),
        )
        return (static, execution)

    def measured(self, strength: Strength) -> tuple[Verdict, ...]:
        """Verdicts that say how strong the grader is."""
        adversary = Verdict(
            validator="adversary", version="1", status=VerdictStatus.PASS,
            strength=Strength(attacks=strength.attacks, attacks_worked=strength.attacks_worked),
            panel=(Trajectory(label="attack:conftest", calls=(ToolCall(tool="submit"),), outcome=0.0),),
        )  # fmt: skip
        rest = strength.model_copy(update={"attacks": None, "attacks_worked": None})
        mutation = Verdict(
            validator="mutation", version="1", status=VerdictStatus.PASS, strength=rest, findings=SURVIVORS,
            controls=(CONTROL,),
        )  # fmt: skip
        return adversary, mutation

    def outcome(
        self,
        index: int,
        status: OutcomeStatus = OutcomeStatus.ADMITTED,
        *,
        source: str = "https://host/owner/boltons",
        ladder: str = LADDER,
        flicker: bool = False,
        files: int = 3,
        tests: int = 4,
        strength: Strength | None = None,
    ) -> Outcome:
        lead = self.lead(index, source)
        cost = Cost(wall_s=6.0, cpu_s=3.0, disk_bytes=100)
        if status is OutcomeStatus.DROPPED:
            dropped = Dropped(lead=lead, reason="no_tests_touched", detail="only README.md")
            return Outcome(lead=lead, ladder=ladder, dropped=dropped, cost=Cost(wall_s=0.1, cpu_s=0.1))
        candidate = self.candidate(lead, files)
        verdicts = self.verdicts(status, flicker, tests)
        lists = verdicts[-1].tests
        verdicts += () if strength is None else self.measured(strength)
        task = None
        if status is OutcomeStatus.ADMITTED:
            task = Task(
                candidate=candidate,
                tests=lists,
                strength=strength or Strength(),
                controls=() if strength is None else (CONTROL,),
                tier=Tier.VERIFIED,
                panel=(
                    Trajectory(label="idle", outcome=0.0),
                    Trajectory(label="reference", calls=(ToolCall(tool="submit", arguments={"x": [1]}),), outcome=1.0),
                ),
                verdicts=tuple(
                    VerdictSummary(validator=v.validator, version=v.version, status=v.status.value) for v in verdicts
                ),
            )
        trouble = "the registry did not answer" if status is OutcomeStatus.OWED else ""
        return Outcome(
            lead=lead, ladder=ladder, candidate=candidate, verdicts=verdicts, task=task, trouble=trouble, cost=cost
        )


@pytest.fixture(scope="session")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """One for all tests: its cache only grows."""
    return Maker(Cache(tmp_path_factory.mktemp("making")))
