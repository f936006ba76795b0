"""What is wrong with an artefact: a finding, and whose it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from envsynth.models import Finding, Model

__all__ = ["Fault", "Overdrawn", "fault", "of_one"]


class Fault(NamedTuple):
    """A finding and the artefact to be mended."""

    artefact: type[Model]
    finding: Finding


class Overdrawn(Exception):
    """Something was found after the last repair that was allowed."""

    def __init__(self, faults: Iterable[Fault], repairs: int) -> None:
        self.worst = next(iter(faults))
        self.repairs = repairs
        super().__init__(f"{self.worst.artefact.__name__}, after {repairs} repairs: {self.worst.finding.message}")


def fault(artefact: type[Model], rule: str, message: str, where: str = "") -> Fault:
    """A finding on an artefact."""
    return Fault(artefact, Finding(rule=rule, message=message, where=where))


def of_one(faults: Iterable[Fault]) -> tuple[type[Model], tuple[Finding, ...]]:
    """The artefact of the first fault, and everything that was found in it."""
    found = list(faults)
    artefact = found[0].artefact
    return artefact, tuple(dict.fromkeys(one.finding for one in found if one.artefact is artefact))
