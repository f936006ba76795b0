"""What two processes may not differ in, and what the reference must hand in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from envsynth.cache import Cache
from envsynth.models import Candidate
from envsynth.panel import reference_tree
from envsynth.validators.determinism import Played, differences, expected_submission

ONE = Played(["a", "b"], "state", {"calc.py": "file:1"})


@pytest.mark.parametrize(
    ("other", "rules"),
    [
        (ONE, []),
        (ONE._replace(observations=["a", "c"]), ["observations_differ"]),
        (ONE._replace(state="other"), ["states_differ"]),
        (ONE._replace(submitted={}), ["submissions_differ"]),
    ],
)
def test_processes_are_compared(other: Played, rules: list[str]) -> None:
    assert [finding.rule for finding in differences(ONE, other)] == rules


def test_what_the_reference_must_hand_in(candidate: Candidate, cache: Cache, tree: Callable[..., str]) -> None:
    changes = {"calc.py": b"new", "tests/test_old.py": b"new", "more/data.txt": b"x"}
    reference = candidate.reference.model_copy(update={"changes": tree(changes), "removed": ("LICENSE",)})
    changed = candidate.model_copy(update={"reference": reference})
    start = cache.get_tree(candidate.environment.tree)
    wanted = expected_submission(changed, start, reference_tree(changed, cache))
    assert wanted == {
        "calc.py": f"file:{cache.put(b'new')}", "more/data.txt": f"file:{cache.put(b'x')}", "LICENSE": "removed",
    }  # fmt: skip


def test_the_first_difference_is_shown() -> None:
    (finding,) = differences(Played(["i", "t", "same x=1"], "", {}), Played(["i", "t", "same x=2"], "", {}))
    assert (finding.where, "x=1" in finding.message, "x=2" in finding.message) == ("call 1", True, True)
