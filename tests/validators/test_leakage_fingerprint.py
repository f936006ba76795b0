"""The same change has the same fingerprint wherever it is; another has another."""

from __future__ import annotations

import pytest

from envsynth.leaks import Change
from envsynth.models import Reference
from envsynth.sketches import SKETCH, Fingerprint
from envsynth.validators.leakage.fingerprint import fingerprint

BEFORE = (
    "class A:\n    def f(self, x):\n        return x\n\n    def g(self):\n        return 1\n\n\n"
    "def h():\n    return 2\n"
)
AFTER = BEFORE.replace("return x", "return x or self.default")


def made(before: str, after: str, path: str = "src/a.py", removed: tuple[str, ...] = ()) -> Fingerprint:
    reference = Reference(changes="0" * 64, patch="0" * 64, removed=removed)
    return fingerprint([Change(path, before, after)], reference, {})


def test_only_what_changed_is_named() -> None:
    print_ = made(BEFORE, AFTER)
    assert print_.symbols == ("a.py:A.f",)
    assert len(print_.sketch) == SKETCH
    assert all(0 <= number < 2**32 for number in print_.sketch)


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ("import os\n" + BEFORE, "import os\n" + AFTER, "src/a.py"),
        (BEFORE, AFTER, "lib/pkg/a.py"),
        (BEFORE.replace("    ", "\t"), AFTER.replace("    ", "\t"), "src/a.py"),
    ],
    ids=["elsewhere-in-the-file", "in-another-folder", "other-white-space"],
)
def test_a_cherry_pick_is_the_same_patch(before: str, after: str, path: str) -> None:
    assert made(before, after, path) == made(BEFORE, AFTER)


@pytest.mark.parametrize(
    "other",
    [
        made(AFTER, BEFORE),
        made(BEFORE, AFTER, "src/b.py"),
        made(BEFORE, AFTER, removed=("old.py",)),
        made(BEFORE, BEFORE.replace("return 2", "return 3")),
        fingerprint([], Reference(changes="0" * 64, patch="0" * 64), {"a.png": "1" * 64}),
    ],
    ids=["reverse", "other-file", "removal", "other-place", "binary"],
)
def test_another_change_is_another_patch(other: Fingerprint) -> None:
    assert other.patch != made(BEFORE, AFTER).patch
