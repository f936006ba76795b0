"""What an episode came to, against the references and check by check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from envsynth.cli._output import clean, heading, print_table
from envsynth.runtime.contract import Grade
from envsynth.runtime.rewards import normalised

YOU = "you"


def print_score(grade: Grade, verifier: Mapping[str, Any], *, ended: str) -> None:
    """Print a grade.

    Args:
        grade: every component.
        verifier: document of the task's `models.Verifier`.
        ended: how the episode ended, in a few words.
    """
    heading(f"score {grade.reward:.4g}: {ended}")
    if not grade.gate:
        broken = [name for name, holds in grade.detail.get("transcript", {}).items() if not holds]
        typer.echo(f"The outcome of {grade.outcome:.4g} does not count: not {' and '.join(broken)}".replace("_", " "))
    if verifier.get("utility"):
        _print_utilities(grade, verifier["utility"])
    faults = grade.detail.get("faults", {})
    print_table(
        ("check", "holds", "why not"),
        [(name, _word(holds), faults.get(name, "")) for name, holds in grade.checks.items()],
    )
    if grade.criteria:
        texts = {line["id"]: (line["class"], line["text"]) for line in verifier["rubric"]}
        heading("process" if grade.process is None else f"process {grade.process:.4g}, which is no part of the score")
        print_table(
            ("criterion", "class", "good", "text"),
            [(name, texts[name][0], _word(met), texts[name][1]) for name, met in grade.criteria.items()],
        )


def utility_rows(utility: Mapping[str, Any], realised: Mapping[str, float]) -> list[tuple[str, str, str, str]]:
    """Who, utility, score and expected utility, the best first.

    Args:
        utility: document of a `models.Utility`.
        realised: by policy or player.
    """
    expected = utility["expected"]
    found = [
        (name, _amount(value), f"{normalised(value, utility):.4g}", _amount(expected[name]) if name in expected else "")
        for name, value in sorted(realised.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    if utility["hindsight"] is None:
        return found
    return [("hindsight", _amount(utility["hindsight"]), "at most", ""), *found]


def _amount(value: float) -> str:
    """A utility, to two decimals, never with an exponent."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _print_utilities(grade: Grade, utility: Mapping[str, Any]) -> None:
    realised = dict(utility["realised"])
    if "utility" in grade.detail:
        realised[YOU] = grade.detail["utility"]
    print_table(("who", "utility", "score", "expected"), utility_rows(utility, realised))
    if not all(grade.checks.values()):
        typer.echo(clean("A utility counts where every check holds, and one does not."))


def _word(met: bool | None) -> str:
    return "n/a" if met is None else "yes" if met else "no"
