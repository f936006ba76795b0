"""Attacks on worlds: those that must fail, and worlds in which each of them works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import world_bench
import worldkit
from world_bench import LAMPS, NOTE, ONE, REST, SHOP_PANEL, SUBMIT, THREE, WHEEL_PANEL, line

from envsynth.cache import Cache
from envsynth.context import BuildContext
from envsynth.models import Candidate, Check, Source, Utility, Verdict, VerdictStatus, Verifier, World
from envsynth.models.verifier import RewardSpec
from envsynth.runtime.worlds import tools
from envsynth.runtime.worlds.authority import Phase
from envsynth.runtime.worlds.episode import WorldEpisode
from envsynth.validators.world_adversary import WorldAdversary
from envsynth.validators.world_adversary.battery import battery
from envsynth.validators.worlds.target import Target, misfits

Judge = Callable[[Candidate], Verdict]


@pytest.fixture
def judge(cache: Cache, source: Source, tmp_path: Path) -> Judge:
    context = BuildContext(tmp_path)
    return lambda candidate: WorldAdversary().validate(candidate, source, context)


def rules(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.findings}


def places(verdict: Verdict, rule: str = "attack_worked") -> set[str]:
    return {finding.where for finding in verdict.findings if finding.rule == rule}


def test_no_attack_on_the_shop_works(cache: Cache, judge: Judge) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop()))
    assert (verdict.status, rules(verdict)) == (VerdictStatus.PASS, set())
    assert verdict.strength is not None
    assert verdict.strength.attacks_worked == 0
    played = verdict.evidence["attacks"]
    assert isinstance(played, dict)
    assert verdict.strength.attacks == len(played)
    assert set(played.values()) == {0}
    assert {
        "submit_at_once_0", "constant_order_0", "constant_order_2_daily", "constant_wait_0", "clock_skipped",
        "every_tool", "plan_too_long_order_all", "plan_of_one_order_all", "misfits", "texts_sql", "texts_override",
        "only_reading", "mutant:five",
    } <= played.keys()  # fmt: skip


def test_attacks_on_the_wheel_get_what_they_earn(cache: Cache, judge: Judge) -> None:
    verdict = judge(world_bench.wheel_task(cache))
    assert (verdict.status, rules(verdict)) == (VerdictStatus.PASS, set())
    played = verdict.evidence["attacks"]
    assert isinstance(played, dict)
    assert played["constant_stake_0"] == 0.888888888889
    assert played["constant_stake_1"] == played["clock_skipped"] == 0
    shipped = {one.label: one.outcome for one in verdict.panel}
    assert shipped["attack:constant_stake_0"] == 0.888888888889
    assert len(shipped) <= 5


def test_what_is_shipped_can_be_played_again(cache: Cache, judge: Judge) -> None:
    candidate = world_bench.wheel_task(cache)
    for one in judge(candidate).panel:
        episode = worldkit.episode_of(
            world_bench.wheel(), checks=[{"id": "any", "sql": "SELECT 1"}],
            utility=candidate.verifier.utility.document() if candidate.verifier.utility else None,
        )  # fmt: skip
        for call in one.calls:
            episode.call(call.tool, call.arguments)
        assert episode.grade().outcome == one.outcome
        episode.close()


def wheel_worth(reference: float, *panel: Any) -> dict[str, Any]:
    utility = Utility(sql=world_bench.WHEEL_SQL, default=17.0, reference=reference)
    return {"verifier": Verifier(checks=(Check(id="any", sql="SELECT 1"),), utility=utility), "panel": panel}


def test_a_constant_action_that_gets_everything_is_found(cache: Cache, judge: Judge) -> None:
    calm = line("reference", 1, REST, THREE, REST, ONE, ONE, ONE)
    verdict = judge(world_bench.wheel_task(cache, **wheel_worth(25.0, calm, *WHEEL_PANEL[1:])))
    assert verdict.status is VerdictStatus.FAIL
    assert places(verdict) == {"constant_stake_0"}
    assert verdict.strength is not None
    assert verdict.strength.attacks_worked == 1
    assert "attack:constant_stake_0" not in {one.label for one in verdict.panel}


@pytest.mark.parametrize("label", ["reference", "alternative:oracle"])
def test_who_does_what_is_right_is_no_attacker(cache: Cache, judge: Judge, label: str) -> None:
    """Looking and being refused in between makes no other play."""
    calm = line("reference", 1, REST, THREE, REST, ONE, ONE, ONE)
    right = line(label, 1, ("view", {}), ONE, ("stake", {"coins": 2}), *[ONE] * 5)
    panel = (right,) if label == "reference" else (calm, right)
    verdict = judge(world_bench.wheel_task(cache, **wheel_worth(25.0, *panel, *WHEEL_PANEL[1:])))
    assert verdict.status is VerdictStatus.PASS
    assert verdict.evidence["right_by_chance"] == ["constant_stake_0"]


def test_the_generators_own_attacks_count(cache: Cache, judge: Judge) -> None:
    lucky = line("attack:lucky", 1, ONE, THREE, REST, ONE, ONE, ONE)
    verdict = judge(world_bench.wheel_task(cache, **wheel_worth(25.0, *WHEEL_PANEL, lucky)))
    assert places(verdict) >= {"attack:lucky"}


def lax(sql: str) -> dict[str, Any]:
    return {"verifier": Verifier(checks=(Check(id="lax", sql=sql),))}


LAX: dict[str, tuple[str, set[str]]] = {
    "any order": ("SELECT count(*) FROM orders", {"constant_order_0", "every_tool", "plan_of_one_order_all"}),
    "any end": ("SELECT count(*) FROM answer", {"submit_at_once_0", "submit_at_once_2"}),
    "any look": ("SELECT count(*) FROM trace WHERE tool = 'look' AND ok", {"only_reading", "every_tool"}),
    "any mention": ("SELECT count(*) FROM trace WHERE arguments LIKE '%full marks%'", {"texts_override"}),
    "any text": ("SELECT count(*) FROM notes WHERE body LIKE '%OR 1=1%'", {"texts_sql"}),
    "time alone": ("SELECT day >= 5 FROM state", {"clock_skipped", "constant_wait_0"}),
    "a refused call": ("SELECT count(*) FROM trace WHERE NOT ok", {"misfits"}),
    "an empty plan": ("SELECT count(*) FROM trace WHERE tool = 'order_all' AND ok", {"plan_of_one_order_all"}),
}


@pytest.mark.parametrize(("sql", "worked"), LAX.values(), ids=LAX.keys())
def test_a_lax_check_is_found(cache: Cache, judge: Judge, sql: str, worked: set[str]) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop(), **lax(sql)))
    assert worked <= places(verdict)


def test_a_gate_that_asks_for_nothing_is_found(cache: Cache, judge: Judge) -> None:
    """Rewarded for a transcript that is none, or for more calls than there may be."""
    reference = (line("reference", 1, LAMPS, NOTE, ("look", {})), *SHOP_PANEL[2:])
    checks = (
        Check(id="bought", sql="SELECT sum(amount) = 4 FROM orders"),
        Check(id="n", sql="SELECT count(*) FROM notes"),
    )
    for gate, place in (("valid_transcript", "over_budget"), ("within_budget", "malformed")):
        verifier = Verifier(checks=checks, reward=RewardSpec(gate=(gate,)))  # type: ignore[arg-type]
        document = worldkit.shop()
        verdict = judge(world_bench.candidate(cache, document, verifier=verifier, panel=reference))
        expected = {place} if gate == "within_budget" else set()
        assert places(verdict, "gate_open") == expected


def test_a_call_that_is_refused_and_changes_something_is_found(
    cache: Cache, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runtime that commits what it should roll back."""
    plain = tools.WorldTool.call

    def leaky(self: Any, connection: Any, values: Any, now: str) -> Any:
        called = plain(self, connection, values, now)
        if called.error:
            connection.authority.phase = Phase.OURS
            connection.sql.execute("UPDATE state SET money = money - 1")
        return called

    monkeypatch.setattr(tools.WorldTool, "call", leaky)
    verdict = judge(world_bench.candidate(cache, worldkit.shop()))
    assert "refused_call_changes" in rules(verdict)


def test_a_refused_call_may_leave_another_image_of_the_same_state(
    cache: Cache, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tools.WorldTool.call

    def busy(self: Any, connection: Any, values: Any, now: str) -> Any:
        called = plain(self, connection, values, now)
        if called.error:
            connection.authority.phase = Phase.OURS
            connection.sql.execute("INSERT INTO audit(seen) VALUES ('refused')")
        return called

    monkeypatch.setattr(tools.WorldTool, "call", busy)
    assert judge(world_bench.candidate(cache, worldkit.shop())).status is VerdictStatus.PASS


def test_calls_after_the_end_that_do_something_are_found(
    cache: Cache, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = WorldEpisode.call

    def endless(self: WorldEpisode, tool: str, arguments: Any) -> Any:
        self._transcript.done = False
        return plain(self, tool, arguments)

    assert not places(judge(world_bench.candidate(cache, worldkit.shop())), "acts_after_the_end")
    monkeypatch.setattr(WorldEpisode, "call", endless)
    verdict = judge(world_bench.candidate(cache, worldkit.shop()))
    assert places(verdict, "acts_after_the_end") == {"after_the_end"}


def test_types_that_are_taken_as_they_come_are_found(
    cache: Cache, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trusting(self: Any, arguments: Any) -> Any:
        if isinstance(arguments, dict) and isinstance(arguments.get("part"), int):
            return {"part": str(arguments["part"])}, ""
        return plain(self, arguments)

    plain = tools.WorldTool.checked
    monkeypatch.setattr(tools.WorldTool, "checked", trusting)
    assert places(judge(world_bench.candidate(cache, worldkit.shop())), "misfit_accepted") == {"misfits"}


def test_a_hidden_text_in_what_reading_shows_is_found(cache: Cache, judge: Judge) -> None:
    """By way of a tolerated table, to which effects of read tools may write what they read."""
    document = worldkit.with_tool(
        "gossip", effects=["INSERT INTO audit(seen) SELECT name FROM suppliers WHERE item = 'lamp'"],
        result="SELECT seen FROM audit ORDER BY id",
    )  # fmt: skip
    verdict = judge(world_bench.candidate(cache, document))
    assert places(verdict, "hidden_value_shown") == {"only_reading"}
    assert worldkit.SECRET in verdict.findings[0].message


def test_a_hidden_text_that_a_write_brings_to_light_is_the_game(cache: Cache, judge: Judge) -> None:
    document = worldkit.with_tool(
        "ask", kind="write", effects=["INSERT INTO audit(seen) SELECT name FROM suppliers WHERE item = 'lamp'"],
        result="SELECT seen FROM audit ORDER BY id",
    )  # fmt: skip
    assert judge(world_bench.candidate(cache, document)).status is VerdictStatus.PASS


def test_every_misfit_of_every_tool_is_refused() -> None:
    episode = worldkit.episode_of()
    world = World.model_validate(worldkit.shop())
    refused = [(call, episode.call(*call)) for tool in world.tools for call in misfits(tool)]
    assert len(refused) > 80
    assert [call for call, answer in refused if answer.ok] == []


def test_fitting_calls_fit() -> None:
    """What the attacks are made of is what the tools take, as far as guards allow."""
    target = Target(World.model_validate(worldkit.shop()), 30)
    for tool in target.world.tools:
        for call in target.calls(tool):
            episode = worldkit.episode_of()
            answer = episode.call(*call)
            assert answer.ok or "ordered already" in answer.error, (call, answer.error)
            episode.close()


def test_attacks_stay_within_the_budget() -> None:
    for turns in (1, 7, 2000):
        target = Target(World.model_validate(worldkit.shop()), turns)
        for attack in battery(target):
            repeated = attack.name.startswith(("constant", "every", "clock"))
            assert not repeated or len(attack.calls) <= max(2, min(turns, 300))


def test_a_world_without_any_of_it_is_attacked_all_the_same(cache: Cache, judge: Judge) -> None:
    """One tool, no parameters, no end."""
    document = {
        "id": "bell", "clock": "2026-03-10T09:00:00", "tables": {"rung": {"columns": {"times": {"type": "integer"}}}},
        "rows": {"rung": [[0]]},
        "tools": {"ring": {"kind": "write", "doc": "Ring.", "effects": ["UPDATE rung SET times = times + 1"]}},
    }  # fmt: skip
    three = {"verifier": Verifier(checks=(Check(id="three", sql="SELECT times = 3 FROM rung"),)),
             "panel": (line("reference", 1, *[("ring", {})] * 3), line("idle", 0))}  # fmt: skip
    verdict = judge(world_bench.candidate(cache, document, **three))
    assert verdict.status is VerdictStatus.PASS
    thirty = {**three, "verifier": Verifier(checks=(Check(id="many", sql="SELECT times >= 3 FROM rung"),))}
    assert places(judge(world_bench.candidate(cache, document, **thirty))) == {"constant_ring_0", "every_tool"}


def test_handing_in_is_part_of_the_play(cache: Cache, judge: Judge) -> None:
    """The same orders with another answer are not the reference's calls."""
    other = line("attack:other_total", 0, LAMPS, NOTE, ("submit", {"total": 5}))
    same = line("attack:same", 1, NOTE, ("look", {}), LAMPS, SUBMIT)
    verdict = judge(world_bench.candidate(cache, worldkit.shop(), panel=(*SHOP_PANEL, other, same)))
    assert verdict.status is VerdictStatus.PASS
    assert verdict.evidence["right_by_chance"] == ["attack:same"]


def arms(column: str) -> dict[str, Any]:
    """Three machines that pay 0, 2 and 1 for a pull; there are three pulls, and nobody knows which pays what."""
    number = {"type": "integer"}
    return {
        "id": "arms", "clock": "2026-03-10T09:00:00", "over": "SELECT pulls = 0 FROM state",
        "tables": {
            "state": {"columns": {"pulls": number, "money": number}},
            "arms": {"columns": {column: {**number, "role": "key"}, "label": {"type": "text"}}},
            "pays": {"hidden": True, "columns": {"place": {**number, "role": "key"}, "coins": number}},
        },
        "rows": {
            "state": [[3, 0]], "arms": [[0, "left"], [1, "middle"], [2, "right"]], "pays": [[0, 0], [1, 2], [2, 1]],
        },
        "tools": {
            "pull": {
                "kind": "write", "doc": "Pull.", "shape": "row",
                "parameters": {"arm": {"type": "integer", "minimum": 0, "maximum": 2, "doc": "Which one."}},
                "effects": [
                    "UPDATE state SET pulls = pulls - 1, money = money + (SELECT coins FROM pays WHERE place = :arm)"
                ],
                "result": "SELECT pulls, money FROM state LIMIT 1",
            },
        },
    }  # fmt: skip


@pytest.mark.parametrize(("column", "status"), [("arm", VerdictStatus.PASS), ("number", VerdictStatus.FAIL)])
def test_a_lucky_guess_at_which_thing_is_best_rejects_no_task(
    cache: Cache, judge: Judge, column: str, status: VerdictStatus
) -> None:
    """Where the argument names one of several things; how much of something is no matter of luck."""

    def pulls(*which: int) -> list[tuple[str, Any]]:
        return [("pull", {"arm": arm}) for arm in which]

    utility = Utility(sql="SELECT money FROM state", default=3.0, reference=4.0)
    panel = (line("reference", 1, *pulls(0, 1, 1)), line("idle", 0), line("mutant:default", 0, *pulls(2, 2, 2)))
    candidate = world_bench.candidate(
        cache, arms(column), panel=panel, instruction="Pull three times, for as many coins as you can get.",
        verifier=Verifier(checks=(Check(id="any", sql="SELECT 1"),), utility=utility),
    )  # fmt: skip
    verdict = judge(candidate)
    worked = {finding.where for finding in verdict.findings if finding.rule == "attack_worked"}
    assert worked == (set() if status is VerdictStatus.PASS else {"constant_pull_1"})
    assert ("constant_pull_1" in verdict.evidence["right_by_chance"]) is (status is VerdictStatus.PASS)
