"""The judge of process and coherence: gate, then evidence, rubric, scores with pointers, and sums that are ours."""

from __future__ import annotations

from pathlib import Path

from envsynth.judge.case import Case
from envsynth.judge.gate import gate_faults
from envsynth.judge.rubric import Rubric
from envsynth.judge.scorepad import Scorepad, Scores, entered
from envsynth.judge.showing import shown_case, shown_policies, shown_tools
from envsynth.llm import Client, Message, load_prompt, quoted, system, user

__all__ = ["Judge", "shown_rubric"]

_PROMPTS = Path(__file__).parent / "prompts"
SYSTEM = load_prompt(_PROMPTS / "judge.md")
_SCORE = load_prompt(_PROMPTS / "score.md")


class Judge:
    """A model that scores.

    Args:
        client: the judge's model.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    def score(self, case: Case, rubric: Rubric, *, draw: int = 0) -> Scorepad:
        """What the judge says of an episode. A transcript that does not pass the gate is wrong, and nobody is asked.

        Args:
            case: the episode.
            rubric: bound to its instruction.
            draw: other opinions on the same case have other numbers.

        Raises:
            ConfigError: the rubric is about another instruction.
            ModelOutputError: the answer is no use.
            ModelEndpointError, BudgetSpent: there was no answer.
        """
        rubric.demand(case.instruction, case.task)
        faults = gate_faults(case)
        if faults:
            return entered(case, rubric, (), faults)
        version = f"{SYSTEM.version}-{_SCORE.version}"
        answer = self.client.structured(_asked(case, rubric), Scores, prompt_version=version, draw=draw)
        return entered(case, rubric, answer.scores)


def _asked(case: Case, rubric: Rubric) -> tuple[Message, ...]:
    told = _SCORE.fill(
        instruction=quoted(case.instruction, "instruction"), policies=shown_policies(case.policies),
        tools=shown_tools(case.tools), case=shown_case(case), rubric=shown_rubric(rubric),
        ids=", ".join(line.id for line in rubric.lines),
    )  # fmt: skip
    return system(SYSTEM.text), user(told)


def shown_rubric(rubric: Rubric) -> str:
    """The lines of a rubric; their words may be a model's, so they are quoted."""
    return "\n\n".join(quoted(line.question, f"line {line.id}, {line.class_.value}") for line in rubric.lines)
