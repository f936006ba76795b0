"""A process that is asked to leave: at once where nothing is under way, else after the last answer."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from envsynth.errors import ModelError
from envsynth.llm import user
from envsynth.llm.scripted_answers import failure, text
from envsynth.underway import UNDERWAY, Leave, Underway


@pytest.fixture
def underway() -> Iterator[Underway]:
    before = signal.getsignal(signal.SIGUSR1)
    found = Underway()
    found.on_signal(signal.SIGUSR1)
    yield found
    signal.signal(signal.SIGUSR1, before)


def ask_to_leave() -> None:
    signal.raise_signal(signal.SIGUSR1)


def test_where_nothing_is_under_way_it_leaves_at_once(underway: Underway) -> None:
    with pytest.raises(Leave):
        ask_to_leave()


def test_a_call_ends_first_and_no_other_begins(underway: Underway) -> None:
    steps = []

    def call(step: str) -> None:
        with underway.call():
            ask_to_leave()
            steps.append(step)

    for step in ("answered", "never"):
        with pytest.raises(Leave):
            call(step)
    assert steps == ["answered"]


def test_a_wait_inside_a_call_is_left(underway: Underway) -> None:
    steps = []

    def wait() -> None:
        with underway.call(), underway.idle():
            ask_to_leave()
            steps.append("never")

    def send() -> None:
        with underway.whole():
            steps.append("sent")

    with pytest.raises(Leave):
        wait()
    with pytest.raises(Leave):  # the count is right again
        send()
    assert steps == ["sent"]


def test_the_main_thread_leaves_when_another_ends_its_call(underway: Underway) -> None:
    begun, asked, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        with underway.call():
            begun.set()
            asked.wait(60)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    ask_to_leave()  # a call is under way: nothing happens yet
    asked.set()
    with pytest.raises(Leave):
        threading.Event().wait(60)
    thread.join(60)
    assert done.is_set()


def test_a_client_keeps_the_answer_before_it_leaves_and_does_not_try_again(asking, monkeypatch) -> None:
    client = asking(lambda received: failure(500) if received.prompt == "again" else text("kept"))
    monkeypatch.setattr(UNDERWAY, "_signal", signal.SIGUSR1, raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(UNDERWAY, "_leaving", True)
        with pytest.raises(Leave):
            client.complete([user("later")])
    sent = client._sent

    def sent_and_told(*arguments):
        reply = sent(*arguments)
        monkeypatch.setattr(UNDERWAY, "_leaving", True)  # the signal comes while the answer does
        return reply

    monkeypatch.setattr(client, "_sent", sent_and_told)
    with pytest.raises(Leave):
        client.complete([user("now")])
    monkeypatch.setattr(UNDERWAY, "_leaving", False)
    assert client.complete([user("now")]).cached
    with pytest.raises(ModelError):
        client.complete([user("again")])
