"""Attempt: one rollout of a policy in a task, whole: what was said, called, answered, spent and graded."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from envsynth.models.base import SCHEMA_VERSION, Digest, Model, canonical_json, digest_of
from envsynth.models.candidate import Candidate
from envsynth.models.verifier import Control, TestLists


class Policy(StrEnum):
    """Who plays."""

    REFERENCE = "reference"
    """The panel's trajectory `reference`."""
    IDLE = "idle"
    """The panel's trajectory `idle`."""
    RANDOM = "random"
    """Calls that fit the tools' schemas, drawn blindly: what luck alone comes to."""
    SCRIPTED = "scripted"
    """A trajectory, or the reference with each step right by chance: a policy whose skill is known."""
    MODEL = "model"
    """A language model that calls tools."""
    HARNESS = "harness"
    """An agent program with a loop of its own, whose calls to the model go through `envsynth proxy`."""


class AttemptStatus(StrEnum):
    """Whether an attempt says anything about its policy."""

    FINISHED = "finished"
    ENVIRONMENT_ERROR = "environment_error"
    """The sandbox or the model's endpoint failed: there is no grade, and nothing counts it as a failure."""


class Ending(StrEnum):
    """What ended an episode."""

    SUBMITTED = "submitted"
    """A tool that hands in."""
    STOPPED = "stopped"
    """The policy had nothing more to do: a turn without calls, or the end of a trajectory."""
    OVER = "over"
    """The world said so, such as after its last day."""
    TURN_BUDGET = "turn_budget"
    """A call beyond the task's budget of calls; its gate is 0."""
    TOKEN_BUDGET = "token_budget"
    """The rollout's limit of tokens; the state is graded as it was."""
    TIME_BUDGET = "time_budget"
    """The rollout's limit of seconds; the state is graded as it was."""
    MALFORMED = "malformed"
    """A turn that is no valid tool call, or no usable answer; its gate is 0."""


class FailureKind(StrEnum):
    """Why an attempt did not succeed. The rules are those of `envsynth.rollout.failures.failure_of`."""

    FORMAT = "format"
    BUDGET = "budget"
    TOOL_MISUSE = "tool_misuse"
    MISREAD_STATE = "misread_state"
    NO_RECOVERY = "no_recovery"


class ChatCall(Model):
    """A call of a tool as the model wrote it."""

    id: str
    """What the tool's answer refers to."""
    name: str
    arguments: str
    """A JSON object where the call is well-formed; else whatever was written."""


class ChatMessage(Model):
    """One turn of a conversation, in the shape of the chat-completions protocol."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ChatCall, ...] = ()
    """Of an assistant's turn."""
    tool_call_id: str = ""
    """Of a tool's turn: the call that it answers."""
    reasoning: str = ""
    """What a reasoning model thought aloud before this turn, where its endpoint tells."""
    given: bool = False
    """Of an assistant's turn: whether it was put into the model's mouth, such as an example; nothing learns from it."""


class ChatTool(Model):
    """A tool as it was offered."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    """JSON Schema of the arguments."""


class TraceStep(Model):
    """One call as grading saw it."""

    tool: str
    """Name; empty for an action that is no call."""
    arguments: JsonValue
    """As they were taken; of a refused call, cut to what a trace holds."""
    ok: bool
    result: JsonValue = None
    error: str = ""


class AttemptGrade(Model):
    """Every component of `runtime.contract.Grade`."""

    reward: float
    """gate × outcome, plus the penalties."""
    outcome: float = Field(ge=0, le=1)
    process: float | None
    gate: float
    checks: dict[str, bool]
    criteria: dict[str, bool | None]
    penalties: dict[str, float]
    detail: dict[str, JsonValue]
    """For people; never shown to an agent."""
    conditions: dict[str, bool] = Field(default_factory=dict)
    """What the gate may ask for: `valid_transcript`, `within_budget`."""


class Tokens(Model):
    """What a model read and wrote, summed over the turns of an attempt; zeros where the endpoint does not tell."""

    prompt: int = Field(default=0, ge=0)
    """Cached ones included; the conversation counts again in each turn."""
    cached: int = Field(default=0, ge=0)
    completion: int = Field(default=0, ge=0)
    """Reasoning included."""

    @property
    def total(self) -> int:
        """Read and written."""
        return self.prompt + self.completion


class Attempt(Model):
    """One rollout."""

    schema_version: int = SCHEMA_VERSION
    task: str
    """Id of the task, or of the candidate where it was made in a build."""
    lead: str
    """Key of the candidate's lead: attempts live and go with it."""
    played: Digest
    """Digest of everything that is played and graded: the same task judged again has the same one."""
    policy: Policy
    model: str = ""
    """Name of the model, or of a scripted policy such as `skill=0.8`; empty for others."""
    settings: Digest
    """Digest of what decides how the policy plays: model, sampling, prompts, budgets, or the scripted skill."""
    hinted: bool = False
    """Whether the candidate's hint was told."""
    k: int = Field(ge=0)
    """Number of the draw."""
    status: AttemptStatus
    trouble: str = ""
    """The environment's error, where that kept the attempt from an end."""
    trace: tuple[TraceStep, ...] = ()
    """The calls, in order, as grading saw them."""
    tools: tuple[ChatTool, ...] = ()
    """For a model: what it was offered."""
    conversation: tuple[ChatMessage, ...] = ()
    """For a model: every turn, system prompt first; the last assistant's turn included."""
    ending: Ending | None = None
    """None: it did not end."""
    fault: str = ""
    """What was wrong with the answer that ended the episode, where it was `malformed`."""
    failure: FailureKind | None = None
    """None for a success, and for what did not end."""
    grade: AttemptGrade | None = None
    turns: int = Field(default=0, ge=0)
    """Answers of the model; for other policies, calls."""
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    """US dollars of new calls; None where prices or usage are not known."""
    wall_s: float = Field(default=0.0, ge=0)
    model_s: float = Field(default=0.0, ge=0)
    """Of `wall_s`, seconds that were waited for the model."""

    @property
    def key(self) -> str:
        """Identity: an attempt of the same key is not made twice."""
        return attempt_key(self.played, self.policy, self.settings, hinted=self.hinted, k=self.k)

    @property
    def finished(self) -> bool:
        """Whether it counts."""
        return self.status is AttemptStatus.FINISHED

    @model_validator(mode="after")
    def _consistent(self) -> Attempt:
        graded = self.grade is not None and self.ending is not None
        if self.finished != graded or self.finished == bool(self.trouble):
            raise ValueError("a finished attempt has an ending and a grade, another has its trouble")
        return self


def attempt_key(played: str, policy: Policy, settings: str, *, hinted: bool, k: int) -> str:
    """The key of an attempt before it is made; arguments as the fields of `Attempt`."""
    return digest_of([played, policy.value, settings, hinted, k])


def played_digest(candidate: Candidate, tests: TestLists | None, controls: Sequence[Control]) -> str:
    """Digest of everything that is played and graded: not of where it comes from, its panel, or its hint."""
    return digest_of(
        {
            "instruction": candidate.instruction,
            "environment": candidate.environment.document(),
            "verifier": candidate.verifier.document(),
            "budget": candidate.budget.document(),
            "reference": None if candidate.reference is None else candidate.reference.document(),
            "tests": None if tests is None else tests.document(),
            # Their order says nothing, and depends on which validator measured first.
            "controls": sorted(canonical_json(control.document()) for control in controls),
        }
    )
