"""How a case is shown to a model: everything quoted, a turn a line, so that no text can pass for another turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from envsynth.judge.case import Case, Rows
from envsynth.llm import quoted
from envsynth.runtime.contract import JSON

__all__ = ["shown_case", "shown_policies", "shown_tables", "shown_tools", "shown_trace"]

MOST = 60_000
"""Characters of a trace at most, roughly."""
_LEAST = 200
"""Characters of one answer that are always shown."""
_ONE = 3_000
"""Characters of one answer at most."""
_PAGE = 8_000
_NOTHING = "(none)"


def shown_case(case: Case) -> str:
    """Trace, answer and evidence of a case."""
    return f"{shown_trace(case)}\n\n{shown_tables(case)}"


def shown_trace(case: Case, name: str = "trace") -> str:
    """The turns of a case, one JSON line each."""
    limit = max(_LEAST, min(_ONE, MOST // max(1, len(case.trace))))
    lines = [
        _json({
            "turn": turn.turn, "tool": turn.tool, "arguments": _clipped(turn.arguments, limit), "ok": turn.ok,
            **({"result": _clipped(turn.result, limit)} if turn.ok else {"error": turn.error[:limit]}),
        })
        for turn in case.trace
    ]  # fmt: skip
    return quoted("\n".join(lines) or "(no turns)", name)


def shown_tables(case: Case) -> str:
    """The tables that a score may point at."""
    return "\n\n".join(quoted(_table(rows), f"table {name}") for name, rows in case.tables.items())


def shown_policies(policies: Mapping[str, str]) -> str:
    """The pages that an agent can read."""
    parts = [
        quoted(text if len(text) <= _PAGE else f"{text[:_PAGE]}…", f"policy {name}") for name, text in policies.items()
    ]
    return "\n\n".join(parts) or _NOTHING


def shown_tools(tools: Sequence[JSON]) -> str:
    """What the tools are, one JSON line each."""
    return quoted("\n".join(_json(tool) for tool in tools) or _NOTHING, "tools")


def _table(rows: Rows) -> str:
    if rows.withheld:
        return f"(withheld: {rows.withheld})"
    lines = [
        _json({"row": number, **dict(zip(rows.columns, row, strict=True))}) for number, row in enumerate(rows.rows, 1)
    ]
    if rows.more:
        lines.append(f"({rows.more} more rows are not shown)")
    return "\n".join(lines) or "(no rows)"


def _clipped(value: JSON, limit: int) -> JSON:
    text = _json(value)
    return value if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def _json(value: JSON) -> str:
    """One line whatever is in it: line ends are escaped, and so is every character that some readers end a line at."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")
