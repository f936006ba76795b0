"""Language models behind any OpenAI-compatible endpoint: typed answers, cached by content, paid from a ledger."""

from envsynth.llm.authoring import REPAIRS, Authored, Order, Unrepaired, author, told
from envsynth.llm.client import Client, Structured, Tally, open_client
from envsynth.llm.ledger import Ledger, Spend, ledger_path
from envsynth.llm.messages import Message, Reply, Tool, ToolCall, Usage, assistant, system, tool_result, user
from envsynth.llm.prompting import Prompt, load_prompt, quoted
from envsynth.llm.resolve import load_llm
from envsynth.llm.settings import (
    ROLES,
    JudgeSettings,
    LlmSettings,
    Prices,
    Role,
    RoleSettings,
    Sampling,
    SolverSettings,
)

__all__ = [
    "REPAIRS",
    "ROLES",
    "Authored",
    "Client",
    "JudgeSettings",
    "Ledger",
    "LlmSettings",
    "Message",
    "Order",
    "Prices",
    "Prompt",
    "Reply",
    "Role",
    "RoleSettings",
    "Sampling",
    "SolverSettings",
    "Spend",
    "Structured",
    "Tally",
    "Tool",
    "ToolCall",
    "Unrepaired",
    "Usage",
    "assistant",
    "author",
    "ledger_path",
    "load_llm",
    "load_prompt",
    "open_client",
    "quoted",
    "system",
    "told",
    "tool_result",
    "user",
]
