"""How far an instrument agrees with labels."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from envsynth.models import Model

__all__ = ["Confusion", "confusion"]


class Confusion(Model):
    """An instrument's calls against labels. Positive means right: `fp` is a wrong run that it calls right."""

    tp: int = Field(default=0, ge=0)
    fp: int = Field(default=0, ge=0)
    tn: int = Field(default=0, ge=0)
    fn: int = Field(default=0, ge=0)
    silent_right: int = Field(default=0, ge=0)
    """Right runs of which it says nothing."""
    silent_wrong: int = Field(default=0, ge=0)

    @property
    def agreement(self) -> float | None:
        """Mean of the shares of right and of wrong runs that are called so; None where it says nothing of one kind.

        An instrument that calls everything right, or everything wrong, has 0.5 whatever the mixture of the panel.
        Silence is left out: what cannot be applied does not disagree.
        """
        right, wrong = self.tp + self.fn, self.tn + self.fp
        return (self.tp / right + self.tn / wrong) / 2 if right and wrong else None

    @property
    def strict_agreement(self) -> float | None:
        """The same, with silence counted as disagreement: for a judge that could have spoken."""
        right, wrong = self.tp + self.fn + self.silent_right, self.tn + self.fp + self.silent_wrong
        return (self.tp / right + self.tn / wrong) / 2 if right and wrong else None


def confusion(pairs: Iterable[tuple[bool | None, bool | None]]) -> Confusion:
    """The matrix of (label, call) pairs; runs without a label are left out."""
    cells = {
        (True, True): "tp", (False, True): "fp", (False, False): "tn", (True, False): "fn",
        (True, None): "silent_right", (False, None): "silent_wrong",
    }  # fmt: skip
    counts = dict.fromkeys(cells.values(), 0)
    for label, call in pairs:
        if label is not None:
            counts[cells[label, call]] += 1
    return Confusion(**counts)
