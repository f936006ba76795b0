"""What a player offers to the measurement. The ways of timing are the same for all; only these methods differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from script import Call

SUBMIT = Call("submit", {})


class Player:
    """One implementation of the ledger."""

    forks = True
    """Whether there is a way to fork a running episode."""
    grades = True
    """Whether a running episode can be graded without ending it."""
    note = ""
    """What a reader of the table must know."""

    def versions(self) -> dict[str, str]:
        """Versions of what is measured."""
        raise NotImplementedError

    def action(self, call: Call) -> Any:
        """The call as an agent's message gives it to this framework; made before the clock starts."""
        raise NotImplementedError

    def reset(self) -> None:
        """Begin an episode."""
        raise NotImplementedError

    def act(self, action: Any) -> Any:
        """Make one call, from an action to what the framework answers."""
        raise NotImplementedError

    def answer(self, answered: Any) -> Any:
        """Result, or text of the refusal, out of what `act` gave."""
        raise NotImplementedError

    def fork(self) -> Player:
        """A player on an independent copy of the episode."""
        raise NotImplementedError

    def close(self) -> None:
        """Free what the framework has a way to free."""

    def grade(self) -> float:
        """Grade of the present state."""
        raise NotImplementedError

    def finish(self) -> float:
        """End the episode as an agent would; its reward."""
        raise NotImplementedError

    # What is timed. A framework whose methods are coroutines has these of its own, so that no loop is started a call.

    def acts(self, actions: Sequence[Any], count: int) -> None:
        """Take the actions in turn."""
        for _ in range(count):
            for action in actions:
                self.act(action)

    def grades_made(self, count: int) -> None:
        """Grade, over and over."""
        for _ in range(count):
            self.grade()

    def forks_made(self, count: int) -> None:
        """Fork, and close the fork."""
        for _ in range(count):
            self.fork().close()

    def episodes(self, actions: Sequence[Any], count: int) -> None:
        """Whole episodes: reset, every action, the end with its reward."""
        for _ in range(count):
            self.reset()
            for action in actions:
                self.act(action)
            self.finish()
