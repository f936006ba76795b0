"""Attempts as chat JSONL: conversations with tool calls, what of them is learned from, rewards, and preference pairs.

One grading record decides everything: what is accepted is what has its reward, and an attempt that the environment kept
from an end is in neither file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from envsynth import __version__
from envsynth.errors import ExportError
from envsynth.exporters._contents import file_digests
from envsynth.exporters._folder import MANIFEST, manifest_bytes, require_free, write_pack
from envsynth.exporters._vendor import rendered
from envsynth.exporters.chat_text import Rendered, text_of
from envsynth.models import Attempt, ChatMessage, ChatTool, canonical_json

__all__ = ["ATTEMPTS", "PAIRS", "ChatPack", "export_chat"]

ATTEMPTS = "attempts.jsonl"
PAIRS = "pairs.jsonl"
_FORMAT = "chat"
_SCHEMA = 1


class ChatPack(NamedTuple):
    """What was written."""

    folder: Path
    attempts: int
    accepted: int
    pairs: int
    left_out: Mapping[str, int]
    """Attempts that have no line, by why: `environment_error`, or `no_conversation` of policies that do not talk."""


def export_chat(attempts: Iterable[Attempt], out: Path, *, pairs: bool = False, text: bool = False) -> ChatPack:
    """Write attempts as chat; the same attempts give the same bytes.

    Args:
        attempts: of any tasks and policies.
        out: folder; an earlier one of this kind goes away whole.
        pairs: whether preference pairs are written too.
        text: whether each line also has its conversation as one text, with the spans that are learned from.

    Raises:
        ExportError: there is nothing to write, or something else is in the folder.
    """
    left_out: dict[str, int] = defaultdict(int)
    kept: list[Attempt] = []
    for attempt in attempts:
        why = _unfit(attempt)
        if why:
            left_out[why] += 1
        else:
            kept.append(attempt)
    if not kept:
        told = ", ".join(f"{number} {why}" for why, number in sorted(left_out.items())) or "none is selected"
        raise ExportError(
            "there is no conversation to export", where=_FORMAT, cause=told,
            next_step="envsynth rollout --policy model, or widen --where",
        )  # fmt: skip
    name = out.absolute().name
    require_free(out, name=name, format_=_FORMAT)
    kept.sort(key=lambda one: (one.task, one.hinted, one.model, one.settings, one.k, one.key))
    found = list(_pairs(kept)) if pairs else []
    files = {ATTEMPTS: _lines(_line(one, text=text) for one in kept)}
    if pairs:
        files[PAIRS] = _lines(found)
    accepted = sum(map(is_accepted, kept))
    files["README.md"] = rendered(
        "chat/README.md", name=name, attempts=str(len(kept)), accepted=str(accepted), pairs=str(len(found))
    )
    manifest = {
        "schema_version": _SCHEMA, "format": _FORMAT, "name": name, "envsynth": __version__, "attempts": len(kept),
        "accepted": accepted, "pairs": len(found), "left_out": dict(sorted(left_out.items())),
        "files": file_digests(files),
    }  # fmt: skip
    files[MANIFEST] = manifest_bytes(manifest)
    write_pack(out, files)
    return ChatPack(out, len(kept), accepted, len(found), dict(left_out))


def is_accepted(attempt: Attempt) -> bool:
    """Whether an attempt is a success: gate open, outcome 1 (of mechanisms, whose outcome is graded, near it)."""
    return attempt.finished and attempt.failure is None


def _unfit(attempt: Attempt) -> str:
    if not attempt.finished or attempt.grade is None:
        return "environment_error"
    learned = any(map(_is_learned, attempt.conversation))
    return "" if learned else "no_conversation"


def _is_learned(message: ChatMessage) -> bool:
    """Whether a turn is the model's own: everything else is masked from the loss."""
    return message.role == "assistant" and not message.given


def _line(attempt: Attempt, *, text: bool) -> dict[str, Any]:
    messages = attempt.conversation
    shown = text_of(messages, attempt.tools, _is_learned) if text else None
    return {
        "id": attempt.key, "task": attempt.task, "played": attempt.played, "policy": attempt.policy.value,
        "model": attempt.model, "settings": attempt.settings, "hinted": attempt.hinted, "k": attempt.k,
        "messages": [_message(one) for one in messages], "tools": [_tool(one) for one in attempt.tools],
        "loss": _loss(messages), **({} if shown is None else _text(shown)), **_rewards(attempt),
        "accepted": is_accepted(attempt), "failure": None if attempt.failure is None else attempt.failure.value,
        "ending": None if attempt.ending is None else attempt.ending.value, "turns": attempt.turns,
        "tokens": attempt.tokens.document(), "cost_usd": attempt.cost_usd,
    }  # fmt: skip


def _rewards(attempt: Attempt) -> dict[str, Any]:
    """Every component by itself; what is for people only, such as failing hidden tests, stays behind."""
    grade = attempt.grade
    if grade is None:
        return {}
    return {"reward": grade.reward, "rewards": grade.model_dump(mode="json", exclude={"reward", "detail"})}


def _text(shown: Rendered) -> dict[str, Any]:
    return {"text": shown.text, "text_spans": [list(span) for span in shown.spans]}


def _loss(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    """What is learned from: a flag a message, and the same as spans of characters in the messages' fields."""
    spans = [
        {"message": number, "field": field, "start": 0, "end": len(value)}
        for number, one in enumerate(messages)
        if _is_learned(one)
        for field, value in _fields(one)
        if value
    ]
    return {"messages": [_is_learned(one) for one in messages], "spans": spans}


def _fields(message: ChatMessage) -> Iterator[tuple[str, str]]:
    """Texts of a message that the model wrote, by their place in it."""
    yield "reasoning_content", message.reasoning
    yield "content", message.content
    for number, call in enumerate(message.tool_calls):
        yield f"tool_calls.{number}.function.name", call.name
        yield f"tool_calls.{number}.function.arguments", call.arguments


def _message(message: ChatMessage) -> dict[str, Any]:
    """A message as the chat-completions protocol has it."""
    found: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.reasoning:
        found["reasoning_content"] = message.reasoning
    if message.tool_calls:
        found["content"] = message.content or None
        found["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.role == "tool":
        found["tool_call_id"] = message.tool_call_id
    return found


def _tool(tool: ChatTool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _pairs(attempts: Sequence[Attempt]) -> Iterator[dict[str, Any]]:
    """Accepted over not accepted, of the same task as it is played, told in the same words with the same tools.

    Each attempt is in one pair at most, so that a task that is nearly always solved has few. Equal rewards, and equal
    conversations, are no preference.
    """
    groups: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        groups[_told(attempt)].append(attempt)
    for group in groups.values():
        chosen = [one for one in group if is_accepted(one)]
        rejected = [one for one in group if not is_accepted(one)]
        for better, worse in zip(chosen, rejected, strict=False):
            if _reward(better) > _reward(worse):
                yield _pair(better, worse)


def _told(attempt: Attempt) -> str:
    """What the model had before it, the hint included: only attempts with equal ones can be compared."""
    before = attempt.conversation[: _begins(attempt)]
    return canonical_json(
        [
            attempt.task, attempt.played, attempt.hinted, [_message(one) for one in before],
            [_tool(one) for one in attempt.tools],
        ]
    )  # fmt: skip


def _begins(attempt: Attempt) -> int:
    """Index of the first turn that is the model's own."""
    return next(number for number, one in enumerate(attempt.conversation) if _is_learned(one))


def _reward(attempt: Attempt) -> float:
    return 0.0 if attempt.grade is None else attempt.grade.reward


def _pair(better: Attempt, worse: Attempt) -> dict[str, Any]:
    begins = _begins(better)
    found: dict[str, Any] = {
        "task": better.task, "hinted": better.hinted,
        "prompt": [_message(one) for one in better.conversation[:begins]],
        "tools": [_tool(one) for one in better.tools],
    }  # fmt: skip
    for name, attempt in (("chosen", better), ("rejected", worse)):
        rest = attempt.conversation[begins:]
        found |= {
            name: [_message(one) for one in rest], f"{name}_loss": _loss(rest), f"{name}_id": attempt.key,
            f"{name}_model": attempt.model, f"{name}_reward": _reward(attempt),
        }  # fmt: skip
    return found


def _lines(documents: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{canonical_json(one)}\n" for one in documents).encode("utf-8", "replace")
