"""Every attack can be played on any task, and what it got decides."""

from __future__ import annotations

import copy
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from envsynth.cache import Cache
from envsynth.errors import SandboxError
from envsynth.models import Candidate, Cost, Role, RoleRule, Source, TestLists, TestRun, Verdict, VerdictStatus
from envsynth.parallel import in_order
from envsynth.runtime.contract import Grade
from envsynth.runtime.submission import Submission
from envsynth.validators.adversary import Adversary, validator
from envsynth.validators.adversary.attack import append, filled, text
from envsynth.validators.adversary.battery import ATTACKS, BY_NAME, SHIPPED
from envsynth.validators.adversary.from_inside import FROM_INSIDE
from envsynth.validators.adversary.target import Target, bare_name, target_of
from envsynth.validators.adversary.validator import digest_of_submission, hurried

LISTS = TestLists(
    fail_to_pass=("tests/test_new.py::test_mean[a.b::c]", "tests/test_new.py::T::test_x"), pass_to_pass=()
)
EARLIER = (Verdict(validator="execution", version="1", status=VerdictStatus.PASS, tests=LISTS),)


@pytest.fixture
def real_candidate(candidate: Candidate, tree: Callable[..., str]) -> Candidate:
    roles = (RoleRule(pattern="^tests/", role=Role.TEST), RoleRule(pattern=r"\.py$", role=Role.SOURCE))
    return candidate.model_copy(
        update={"environment": candidate.environment.model_copy(update={"roles": roles})}
    )  # fmt: skip


@pytest.fixture
def target(real_candidate: Candidate, cache: Cache) -> Target:
    return target_of(real_candidate, LISTS, cache)


def test_there_are_many_and_each_says_why() -> None:
    assert len(BY_NAME) == len(ATTACKS) >= 70
    assert all(attack.why and re.fullmatch(r"[a-z][a-z0-9_]*", attack.name) for attack in ATTACKS)
    assert set(SHIPPED) <= BY_NAME.keys()
    assert not any(BY_NAME[name].needs_isolation for name in SHIPPED)


def test_a_target_is_the_module_that_the_reference_changes(target: Target) -> None:
    assert (target.host, target.hidden, target.tests) == ("calc.py", ("tests/test_new.py",), ("tests/test_old.py",))
    assert target.functions == ("test_mean", "test_x")


@pytest.mark.parametrize(
    ("files", "changes", "host"),
    [
        (("pkg/__init__.py", "pkg/b.py", "pkg/a.py"), ("pkg/b.py", "pkg/__init__.py"), "pkg/b.py"),
        (("pkg/__init__.py", "pkg/sub/__init__.py", "z.py"), ("pkg/sub/new.py",), "pkg/sub/__init__.py"),
        (("other.py", "tests/test_old.py"), ("new.py",), "other.py"),
        (("README",), ("data.txt",), ""),
    ],
)  # fmt: skip
def test_where_a_payload_goes(
    files: Sequence[str], changes: Sequence[str], host: str, real_candidate: Candidate, cache: Cache,
    tree: Callable[..., str],
) -> None:  # fmt: skip
    environment = real_candidate.environment.model_copy(update={"tree": tree(dict.fromkeys(files, b""))})
    reference = real_candidate.reference.model_copy(update={"changes": tree(dict.fromkeys(changes, b"x"))})
    changed = real_candidate.model_copy(update={"environment": environment, "reference": reference})
    found = target_of(changed, LISTS, cache)
    assert found.host == host
    assert all(attack.calls(found)[-1].tool == "submit" for attack in ATTACKS)


@pytest.mark.parametrize(
    ("key", "name"),
    [("tests/a.py::test_x", "test_x"), ("tests/a.py::T::test_x[1.5::b]", "test_x"), ("tests.a.T.test_x", "test_x")],
)
def test_a_function_behind_a_key(key: str, name: str) -> None:
    assert bare_name(key) == name


@pytest.mark.parametrize("attack", [attack.name for attack in FROM_INSIDE])
def test_a_payload_is_python_and_knows_the_task(attack: str, target: Target) -> None:
    call, _ = BY_NAME[attack].calls(target)
    command = str(call.arguments["command"])
    assert len(command) < 100_000
    start, code, _ = re.split(r"<<'[\w-]+'\n|\n[\w-]+$", command)
    assert start == "cat >> ./calc.py "
    assert not re.search(r"@[A-Z]{2,}", code)
    compile(code, attack, "exec")


def test_thousands_of_long_ids_fit_into_a_command(target: Target) -> None:
    many = tuple(f"tests/test_new.py::test_{'x' * 200}_{number}" for number in range(2000))
    payload = filled(text("records_forged"), target._replace(fail_to_pass=many, pass_to_pass=many))
    assert "test_xx" in payload
    assert len(str(append("a.py", payload).arguments["command"])) < 100_000


class FakeEpisode:
    """Hands in what calls wrote and grades it by a table: outcome by content of `calc.py`."""

    def __init__(self, outcomes: Mapping[str, float], *, broken: bool = False) -> None:
        self.outcomes, self.broken = outcomes, broken
        self.calls: list[tuple[str, Mapping[str, object]]] = []
        self.grades = 0
        self.first, self.counting = self, threading.Lock()

    def another(self) -> FakeEpisode:
        """One more of the same task; the first keeps count."""
        twin = copy.copy(self)
        twin.first = self
        return twin

    def reset(self, seed: int = 0) -> str:
        self.calls = []
        return ""

    def call(self, tool: str, arguments: Mapping[str, object]) -> SimpleNamespace:
        self.calls.append((tool, arguments))
        return SimpleNamespace(done=tool == "submit")

    def submission(self) -> Submission:
        said = " ".join(str(arguments) for _, arguments in self.calls)
        taken = {word: (b"x", "file") for word in self.outcomes if word in said}
        return Submission(rows=(), files=taken, removed=(), left_out=())

    def grade(self, *, quick: bool = False) -> Grade:
        with self.counting:
            self.first.grades += 1
        if self.broken:
            raise SandboxError("no disk")
        outcome = max((self.outcomes[word] for word in self.submission().files), default=0.0)
        return Grade(outcome, outcome, None, 1.0, {"fail_to_pass": outcome == 1}, {}, {}, {})

    def close(self) -> None:
        pass


REFERENCE = {"return 0": 1.0}
"""What the reference's edit says."""


def judged(
    monkeypatch: pytest.MonkeyPatch, episode: FakeEpisode, candidate: Candidate, source: Source, cache: Cache,
    *, isolates: bool = True, threads: int = 1,
) -> Verdict:  # fmt: skip
    monkeypatch.setattr(validator, "open_task", lambda *args, **kwargs: episode.another())
    backend = SimpleNamespace(name="fake", isolates=isolates)
    context = SimpleNamespace(
        blobs=cache, cache_dir=cache.root, remember=cache.remember, backend=lambda source: backend,
        each=lambda play, plays, source: in_order(play, plays, threads),
    )  # fmt: skip
    return Adversary().validate(candidate, source, context, EARLIER)  # type: ignore[arg-type]


def test_a_grader_that_withstands(
    monkeypatch: pytest.MonkeyPatch, real_candidate: Candidate, source: Source, cache: Cache
) -> None:
    episode = FakeEpisode(REFERENCE)
    verdict = judged(monkeypatch, episode, real_candidate, source, cache)
    assert (verdict.status, verdict.findings) == (VerdictStatus.PASS, ())
    assert verdict.strength
    assert (verdict.strength.attacks, verdict.strength.attacks_worked) == (len(ATTACKS), 0)
    assert {trajectory.label for trajectory in verdict.panel} == {f"attack:{name}" for name in SHIPPED}
    assert {trajectory.outcome for trajectory in verdict.panel} == {0.0}
    assert verdict.evidence["attacks"].keys() == BY_NAME.keys()  # type: ignore[union-attr]
    # The reference, and idle; all the attacks hand in what idle does.
    assert episode.grades == 2


def test_what_was_played_is_not_played_again(
    monkeypatch: pytest.MonkeyPatch, real_candidate: Candidate, source: Source, cache: Cache
) -> None:
    first = judged(monkeypatch, FakeEpisode(REFERENCE), real_candidate, source, cache)
    idle = FakeEpisode(REFERENCE, broken=True)
    second = judged(monkeypatch, idle, real_candidate, source, cache)
    assert (idle.grades, idle.calls) == (0, [])
    assert second.evidence == first.evidence


@pytest.mark.parametrize(
    ("outcomes", "rule", "places"),
    [
        ({**REFERENCE, "setprofile": 1.0, "-p evil": 0.5}, "attack_worked",
         {"plugin_by_pytest_ini", "plugin_by_pyproject", "plugin_by_setup_cfg", "profiled"}),
        ({"return 0": 0.5}, "reference_not_graded_1", {""}),
        ({**REFERENCE, "{}": 0.25}, "idle_not_graded_0", {""}),
    ],
)  # fmt: skip
def test_a_grader_that_does_not(
    monkeypatch: pytest.MonkeyPatch, real_candidate: Candidate, source: Source, cache: Cache, *,
    outcomes: Mapping[str, float], rule: str, places: set[str],
) -> None:  # fmt: skip
    verdict = judged(monkeypatch, FakeEpisode(outcomes), real_candidate, source, cache)
    assert (verdict.status, verdict.reason) == (VerdictStatus.FAIL, rule)
    assert places <= {finding.where for finding in verdict.findings if finding.rule == rule}


def test_the_environment_is_not_the_attackers_fault(
    monkeypatch: pytest.MonkeyPatch, real_candidate: Candidate, source: Source, cache: Cache
) -> None:
    with pytest.raises(SandboxError, match="reference"):
        judged(monkeypatch, FakeEpisode(REFERENCE, broken=True), real_candidate, source, cache)
    assert judged(monkeypatch, FakeEpisode(REFERENCE), real_candidate, source, cache).status is VerdictStatus.PASS


def test_a_host_without_isolation_is_spared(
    monkeypatch: pytest.MonkeyPatch, real_candidate: Candidate, source: Source, cache: Cache
) -> None:
    verdict = judged(monkeypatch, FakeEpisode(REFERENCE), real_candidate, source, cache, isolates=False)
    spared = {attack.name for attack in ATTACKS if attack.needs_isolation}
    assert set(verdict.evidence["not_played"]) == spared  # type: ignore[arg-type]
    assert {"supervisor_killed", "full_disk_and_process_table"} <= spared
    assert verdict.strength
    assert verdict.strength.attacks == len(ATTACKS) - len(spared)


def test_without_tests_there_is_nothing_to_attack(candidate: Candidate, source: Source, tmp_path: Path) -> None:
    verdict = Adversary().validate(candidate, source, SimpleNamespace(), ())  # type: ignore[arg-type]
    assert verdict.status is VerdictStatus.SKIP


@pytest.mark.parametrize(("walls", "limit"), [((0.7, 2.2), 10.0), ((7.5, 6.0), 24.0), ((50.0,), 60.0), ((), 60.0)])
def test_an_attack_that_hangs_does_not_take_the_time_that_a_test_may_take(
    candidate: Candidate, walls: tuple[float, ...], limit: float
) -> None:
    runs = tuple(TestRun(state="start", repeat=0, complete=True, cost=Cost(wall_s=wall)) for wall in walls)
    changed = hurried(candidate, [EARLIER[0].model_copy(update={"runs": runs})])
    assert changed.environment.command.test_timeout_s == limit
    assert changed.id == candidate.id


def test_submissions_are_told_apart() -> None:
    def digest(files: dict[str, tuple[bytes, str]], *removed: str) -> str:
        return digest_of_submission(Submission((), files, removed, ()))

    assert digest({"a": (b"x", "file")}) == digest({"a": (b"x", "file")})
    several = [digest({}), digest({"a": (b"x", "file")}), digest({"a": (b"x", "executable")}),
               digest({"b": (b"x", "file")}), digest({"a": (b"y", "file")}), digest({}, "a")]  # fmt: skip
    assert len(set(several)) == len(several)


@pytest.mark.parametrize("outcomes", [REFERENCE, {**REFERENCE, "setprofile": 1.0, "-p evil": 0.5}])
def test_how_many_are_played_at_once_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, real_candidate: Candidate, source: Source, tmp_path: Path, cache: Cache,
    *, outcomes: Mapping[str, float],
) -> None:  # fmt: skip
    verdicts, grades = [], []
    for threads in (1, 4):
        episode = FakeEpisode(outcomes)
        fresh = Cache(tmp_path / str(threads))
        shutil.copytree(cache.root / "blobs", fresh.root / "blobs")
        verdict = judged(monkeypatch, episode, real_candidate, source, fresh, threads=threads)
        evidence = {name: value for name, value in verdict.evidence.items() if name != "attacks_wall_s"}
        verdicts.append(verdict.model_copy(update={"evidence": evidence, "cost": Cost()}))
        grades.append(episode.grades)
    assert verdicts[0] == verdicts[1]
    # Equal submissions are graded once, also where they are handed in at the same time.
    assert grades[0] == grades[1]
