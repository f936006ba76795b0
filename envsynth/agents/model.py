"""A language model that calls tools until it has nothing more to do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from envsynth.agents.base import Limits, Play, Played, Told
from envsynth.errors import ModelBadToolCall, ModelOutputError, ModelRequestRejected
from envsynth.llm import Client, Message, Prompt, Reply, Tool, ToolCall, load_prompt, quoted, system, tool_result, user
from envsynth.models import ChatCall, ChatMessage, ChatTool, Ending, Policy, Tokens, digest_of
from envsynth.runtime.contract import Episode
from envsynth.runtime.observe import render

__all__ = ["SHOWN", "Malformed", "ModelAgent"]

_VERSION = "1"
SHOWN = 100_000
"""Characters of a result that are shown, as many as the gymnasium adapter shows."""
_CUT = "\n[... cut ...]"
_PROMPTS = Path(__file__).with_name("prompts")
_NAMES = ("system", "hand_in", "stop", "budget", "cost", "tokens", "seconds", "hint")

Malformed = Literal["as_graded", "end", "answer"]
"""What a malformed call comes to.

`as_graded`: as in exported packs. Arguments that are no JSON object are no call at all: the episode ends with gate 0
where the reward's gate asks for a valid transcript, else the model is told; a tool that there is not is an error like
any other. `end`: both end the episode. `answer`: the model is told of both, and goes on.
"""


class ModelAgent:
    """A model with native tool calls, for worlds and workspaces alike.

    Calls of one turn are made in order. A turn without calls ends the episode as it stands. An answer that is refused,
    cut, empty or over-long is the model's own fault: the episode ends with gate 0. Where the endpoint fails there is no
    attempt; where it rejects a conversation for its length after the first turn, the model has used up its context,
    which ends the episode like a spent budget of tokens.
    """

    policy = Policy.MODEL

    def __init__(self, client: Client, limits: Limits, malformed: Malformed = "as_graded") -> None:
        """A policy.

        Args:
            client: the model.
            limits: what an attempt may take.
            malformed: what becomes of malformed calls.
        """
        self.name = client.settings.model
        self._client = client
        self._limits = limits
        self._malformed = malformed

    def identity(self, told: Told) -> str:
        """Digest of the model, its sampling, the prompts, the limits and the hint; not of the endpoint's address."""
        settings = self._client.settings
        return digest_of(
            [
                _VERSION, settings.model, settings.sampling.document(), settings.max_chars, self._limits.document(),
                self._malformed, _prompts_version(), told.hint,
            ]
        )  # fmt: skip

    def play(self, episode: Episode, told: Told, k: int) -> Played:
        """Play draw `k`.

        Raises:
            SandboxError: the environment failed.
            ModelEndpointError: the way to the model failed.
            BudgetSpent: there is no money for another call.
        """
        talk = _Talk(self._client, episode, told, self._limits, self._malformed)
        while not talk.over:
            talk.turn(k)
        return talk.played()


class _Talk:
    """One conversation, from the system prompt to what ends it."""

    def __init__(self, client: Client, episode: Episode, told: Told, limits: Limits, malformed: Malformed) -> None:
        self._client, self._told, self._limits = client, told, limits
        self._began = time.monotonic()
        self._play = Play(episode, told)
        self._tools = tuple(
            Tool(name=tool["name"], description=tool["description"], parameters=tool["parameters"])
            for tool in episode.tools()
        )
        self._ends_unknown = malformed == "end"
        self._ends_misshapen = malformed == "end" or (malformed == "as_graded" and told.gated)
        self._messages = [system(_system_text(told, limits, self._play.submits)), user(_shown(told.instruction))]
        self._said = [_kept(message) for message in self._messages]
        self._fault = ""
        self._turns = 0
        self._written = 0
        self._tokens = Tokens()
        self._cost: float | None = 0.0
        self._waited = 0.0

    @property
    def over(self) -> bool:
        return self._play.ending is not None

    def turn(self, k: int) -> None:
        """One answer of the model, and the calls in it."""
        if self._spent():
            return
        try:
            reply = self._client.complete(
                self._messages, tools=self._tools, prompt_version=_prompts_version(), draw=k, check=False
            )
        except ModelRequestRejected as error:
            if not self._turns or "context" not in error.cause.lower():
                raise
            self._fault = str(error)
            self._play.stop(Ending.TOKEN_BUDGET)
            return
        reply = reply.model_copy(update={"tool_calls": _told_apart(reply.tool_calls)})
        self._count(reply)
        self._say(reply.message, reply.reasoning)
        fault = self._client.fault(reply, self._tools)
        if fault is not None and not isinstance(fault, ModelBadToolCall):
            self._refuse(reply.output, fault)
        elif not reply.tool_calls:
            self._play.stop()
        for call in reply.tool_calls:
            self._say(tool_result(call, self._answer(call, fault)))

    def played(self) -> Played:
        """Everything that is kept of it."""
        offered = tuple(
            ChatTool(name=tool.name, description=tool.description, parameters=tool.parameters) for tool in self._tools
        )
        return Played(
            self._play.stop(), self._fault, self._turns, offered, tuple(self._said), self._tokens, self._cost,
            self._waited,
        )  # fmt: skip

    def _spent(self) -> bool:
        limits = self._limits
        if limits.max_tokens is not None and self._written >= limits.max_tokens:
            self._play.stop(Ending.TOKEN_BUDGET)
        elif limits.max_seconds is not None and time.monotonic() - self._began >= limits.max_seconds:
            self._play.stop(Ending.TIME_BUDGET)
        return self.over

    def _count(self, reply: Reply) -> None:
        self._turns += 1
        usage = reply.usage
        if usage is not None:
            self._tokens = Tokens(
                prompt=self._tokens.prompt + usage.prompt_tokens, cached=self._tokens.cached + usage.cached_tokens,
                completion=self._tokens.completion + usage.completion_tokens,
            )  # fmt: skip
        # An endpoint that does not count must not make the limit vanish: four characters are a token then.
        self._written += usage.completion_tokens if usage is not None else len(reply.output + reply.reasoning) // 4 + 1
        self._cost = None if self._cost is None or reply.cost_usd is None else self._cost + reply.cost_usd
        self._waited += 0.0 if reply.cached else reply.seconds

    def _answer(self, call: ToolCall, fault: ModelOutputError | None) -> str:
        """What a call is answered; once the episode is over, that it is."""
        arguments, known = call.parsed(), any(tool.name == call.name for tool in self._tools)
        ends = (arguments is None and self._ends_misshapen) or (not known and self._ends_unknown)
        if ends and not self.over:
            written = f"{call.name} {call.arguments}"
            return self._refuse(written, fault or ModelBadToolCall("the call is malformed", cause=written[:120]))
        result = self._play.call(call.name, call.arguments if arguments is None else arguments)
        return _shown(render(result))

    def _refuse(self, written: str, fault: ModelOutputError) -> str:
        self._fault = " ".join(f"{fault.what} ({fault.cause})".split())[:500]
        return _shown(render(self._play.malformed(_shown(written))))

    def _say(self, message: Message, reasoning: str = "") -> None:
        self._messages.append(message)
        self._said.append(_kept(message, reasoning))


def _told_apart(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Calls whose ids differ: some servers give all of a turn the same."""
    if len({call.id for call in calls}) == len(calls):
        return tuple(calls)
    return tuple(call.model_copy(update={"id": f"call_{number}"}) for number, call in enumerate(calls))


def _kept(message: Message, reasoning: str = "") -> ChatMessage:
    calls = tuple(ChatCall(id=call.id, name=call.name, arguments=call.arguments) for call in message.tool_calls)
    return ChatMessage(
        role=message.role, content=message.content, tool_calls=calls, tool_call_id=message.tool_call_id,
        reasoning=reasoning,
    )  # fmt: skip


def _shown(text: str) -> str:
    """A text that any protocol takes, its end cut where it is too long."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= SHOWN else text[: SHOWN - len(_CUT)] + _CUT


def _prompt(name: str) -> Prompt:
    return load_prompt(_PROMPTS / f"{name}.md")


def _prompts_version() -> str:
    return digest_of([_prompt(name).version for name in _NAMES])[:16]


def _system_text(told: Told, limits: Limits, submits: frozenset[str]) -> str:
    hand_in = ", ".join(sorted(submits))
    budget = [_prompt("budget").fill(calls=str(told.turns))]
    if told.cost is not None:
        budget.append(_prompt("cost").fill(cost=f"{told.cost:g}"))
    if limits.max_tokens is not None:
        budget.append(_prompt("tokens").fill(tokens=str(limits.max_tokens)))
    if limits.max_seconds is not None:
        budget.append(_prompt("seconds").fill(seconds=f"{limits.max_seconds:g}"))
    hint = _prompt("hint").fill(hint=quoted(told.hint, "hint")) if told.hint else ""
    return _prompt("system").fill(
        ending=_prompt("hand_in").fill(tools=hand_in) if hand_in else _prompt("stop").text,
        budget=" ".join(budget), hint=f"\n\n{hint}" if hint else "",
    )  # fmt: skip
