"""Reserve, settle, doubt; limits; processes that die."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from envsynth.errors import BudgetSpent, ConfigError, ModelError
from envsynth.llm import Ledger, Prices, Usage, ledger_path, user
from envsynth.llm.ledger import PICO, Ask
from envsynth.llm.scripted_answers import hang, text

CENT = PICO // 100
USAGE = Usage(prompt_tokens=10, cached_tokens=4, completion_tokens=5)


def ask(bound: int | None = CENT, role: str = "author") -> Ask:
    return Ask(role, "m", "http://endpoint/v1", "digest", bound)


def test_a_call_is_reserved_then_settled(tmp_path):
    ledger = Ledger(tmp_path / "new" / "spend.sqlite")
    number = ledger.reserve(ask(2 * CENT))
    assert ledger.total().reserved_usd == 0.02
    ledger.settle(number, USAGE, CENT // 2)
    (row,) = ledger.rows()
    assert (row.role, row.model, row.endpoint) == ("author", "m", "http://endpoint/v1")
    assert (row.settled, row.reserved, row.settled_usd, row.reserved_usd) == (1, 0, 0.005, 0.0)
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens) == (10, 4, 5)


def test_what_was_released_counts_nothing_and_what_is_uncertain_its_bound(tmp_path):
    ledger = Ledger(tmp_path / "spend.sqlite", budget_usd=0.02)
    ledger.release(ledger.reserve(ask()), "HTTP 429")
    number = ledger.reserve(ask())
    ledger.doubt(number, "cut")
    assert ledger.total().committed_usd == 0.01
    ledger.reserve(ask())
    with pytest.raises(BudgetSpent):
        ledger.reserve(ask())
    ledger.settle(number, USAGE, 0)  # the answer came after all
    assert (ledger.total().uncertain, ledger.total().settled) == (0, 1)
    ledger.reserve(ask())


def test_the_limit_is_met_to_the_picodollar_and_survives_the_ledger(tmp_path):
    path = tmp_path / "spend.sqlite"
    ledger = Ledger(path, budget_usd=0.05)
    for _ in range(5):
        ledger.settle(ledger.reserve(ask()), USAGE, CENT)
    with pytest.raises(BudgetSpent, match=r"budget of \$0\.05 .*\$0\.050000 are spent.*higher --budget") as caught:
        ledger.reserve(ask(1))
    assert not caught.value.retryable
    assert str(path) in str(caught.value)
    ledger.reserve(ask(0))
    with pytest.raises(BudgetSpent):
        Ledger(path, budget_usd=0.05).reserve(ask(1))
    Ledger(path, budget_usd=0.06).reserve(ask())
    Ledger(path).reserve(ask(10**6 * CENT))


def test_roles_are_told_apart_and_added_up(tmp_path):
    ledger = Ledger(tmp_path / "spend.sqlite")
    for role, cost in (("author", 1), ("judge", 2), ("author", 3)):
        ledger.settle(ledger.reserve(ask(9 * CENT, role)), USAGE, cost * CENT)
    assert [(row.role, row.settled, row.settled_usd) for row in ledger.rows()] == [
        ("author", 2, 0.04), ("judge", 1, 0.02),
    ]  # fmt: skip
    assert ledger.total().settled_usd == pytest.approx(0.06)
    assert ledger.total().prompt_tokens == 30


def test_a_limit_holds_between_threads(tmp_path):
    ledger = Ledger(tmp_path / "spend.sqlite", budget_usd=0.1)
    outcomes: list[bool] = []

    def reserve() -> None:
        try:
            ledger.reserve(ask())
        except BudgetSpent:
            outcomes.append(False)
        else:
            outcomes.append(True)

    threads = [threading.Thread(target=reserve) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 6 + [True] * 10


def test_prices_are_exact():
    prices = Prices(input=0.15, cached_input=0.0375, output=0.6)
    assert prices.cost(1_000_000, 0, 0) == round(0.15 * PICO)
    assert prices.cost(1_000_000, 1_000_000, 1_000_000) == round(0.6375 * PICO)
    assert prices.cost(10, 99, 0) == 10 * 37_500  # no more can be cached than was sent
    assert Prices(input=2, output=0).cost(3, 3, 0) == 6_000_000
    assert prices.bound(1000, 1000) == prices.cost(1000, 0, 1000)


def test_no_call_costs_more_than_was_reserved(bench):
    client = bench.client(bench.model([text("ü" * 300)]), max_tokens=600)
    client.complete([user("ö€𝄞" * 100)])
    with closing(sqlite3.connect(bench.path)) as connection:
        ((cost, bound),) = connection.execute("SELECT cost, bound FROM call").fetchall()
    assert 0 < cost <= bound


def test_a_build_stops_at_its_limit_and_goes_on_with_a_higher_one(bench):
    usage = Usage(prompt_tokens=1000, completion_tokens=1000)  # $0.003 of at most about $0.0036
    model = bench.model(lambda received: text("hi", usage=usage))
    questions = [[user(f"question {number}")] for number in range(20)]
    client = bench.client(model, budget=0.05)
    with pytest.raises(BudgetSpent):
        [client.complete(question) for question in questions]
    spent = bench.ledger().total()
    done = spent.settled
    assert len(model.requests) == done
    assert 0.05 - 0.0036 < spent.committed_usd <= 0.05
    for question in questions[:done]:  # answers that were paid for are still to be had
        assert client.complete(question).cached
    richer = bench.client(model, budget=0.1)
    for question in questions:
        richer.complete(question)
    assert len(model.requests) == 20
    assert bench.ledger().total().settled_usd == pytest.approx(0.06)


def test_a_limit_without_prices_is_refused_before_any_call(bench):
    model = bench.model([])
    with pytest.raises(ConfigError, match=r"prices of scripted are not known.*\[llm\.author\]"):
        bench.client(model, budget=1.0, prices=None)
    assert model.requests == []


CHILD = """
import sys
from pathlib import Path
from envsynth.cache import Cache
from envsynth.llm import Client, Ledger, Prices, RoleSettings, Sampling, user

url, root = sys.argv[1], Path(sys.argv[2])
settings = RoleSettings(model="scripted", base_url=url, api_key_env="", sampling=Sampling(max_tokens=1000),
                        prices=Prices(input=1.0, cached_input=0.5, output=2.0))
with Client("author", settings, Cache(root / "cache"), Ledger(root / "spend.sqlite")) as client:
    for number in range(3):
        print(client.complete([user(f"question {number}")]).cost_usd, flush=True)
"""


def test_a_process_that_is_killed_during_a_call_loses_nothing_that_was_settled(bench, tmp_path):
    arrived = threading.Event()

    def answer(received):
        if received.number == 2:
            arrived.set()
            return hang()
        return text("hi")

    model = bench.model(answer)
    command = [sys.executable, "-c", CHILD, model.base_url, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert arrived.wait(60)
        watch = bench.ledger()
        during = watch.total()
        child.send_signal(signal.SIGKILL)
        assert child.stdout is not None
        costs = [float(line) for line in child.stdout]
    assert child.returncode == -signal.SIGKILL
    assert len(costs) == 2
    assert (during.settled, during.reserved, during.uncertain) == (2, 1, 0)

    after = watch.total()
    assert (after.settled, after.reserved, after.uncertain) == (2, 0, 1)
    assert after.settled_usd == pytest.approx(sum(costs))
    assert after.uncertain_usd == during.reserved_usd > 0
    client = bench.client(model)  # and the build goes on where it was: one call, not three
    assert [client.complete([user(f"question {number}")]).cached for number in range(3)] == [True, True, False]
    assert len(model.requests) == 4


def test_a_living_process_keeps_its_reservation_and_an_interrupted_call_does_not(bench, monkeypatch):
    ledger = bench.ledger()
    ledger.reserve(ask())
    assert bench.ledger().total().reserved == 1
    client = bench.client(bench.model([text("hi")]))

    def interrupted(payload):
        raise KeyboardInterrupt

    monkeypatch.setattr(client._calls._transport, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.complete([user("hello")])
    total = ledger.total()
    assert (total.reserved, total.uncertain) == (1, 1)


def test_a_file_that_is_no_ledger_is_named(tmp_path):
    path = tmp_path / "spend.sqlite"
    path.write_text("this is no database, whatever its name may say about it" * 20)
    with pytest.raises(ModelError, match=r"spend\.sqlite: the spend ledger cannot be written"):
        Ledger(path)


def test_it_stands_beside_the_catalog():
    assert ledger_path(Path("catalogs/mine.duckdb")) == Path("catalogs/mine.spend.sqlite")
