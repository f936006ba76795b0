"""What an agent is told of its tools: documented, unambiguous, and such that a call can fit."""

from __future__ import annotations

from collections.abc import Iterator

from envsynth.models import Finding, Tool, World
from envsynth.models.world import Parameter

_INTEGERS = range(-(2**63), 2**63)
_BOUND = frozenset({"now"})
"""Names that the runtime binds itself."""


def schema_findings(world: World) -> Iterator[Finding]:
    """What is wrong with the tools' names, texts and parameters."""
    for tool in world.tools:
        where = f"tool {tool.name}"
        if not tool.doc.strip():
            yield Finding(rule="tool_without_doc", message="nothing says what it does", where=where)
        for parameter in (*tool.parameters, *(tool.each.fields if tool.each else ())):
            place = f"{where}, parameter {parameter.name}"
            if not parameter.doc.strip():
                yield Finding(rule="parameter_without_doc", message="nothing says what it means", where=place)
            fault = _fault(parameter)
            if fault:
                yield Finding(rule="parameter_bounds", message=fault, where=place)
        yield from _clashes(tool, where)


def _clashes(tool: Tool, where: str) -> Iterator[Finding]:
    """Names of which one would hide the other when statements are run."""
    outer = [parameter.name for parameter in tool.parameters]
    inner = [field.name for field in tool.each.fields] if tool.each else []
    taken = _BOUND | {"position"} if tool.each else _BOUND
    for name in (*outer, *inner):
        if name in taken:
            yield Finding(rule="parameter_name_taken", message=f"{name} is bound by the world itself", where=where)
    for name in sorted(set(outer) & set(inner)) + sorted({name for name in inner if inner.count(name) > 1}):
        yield Finding(rule="parameter_name_taken", message=f"two parameters are called {name}", where=where)


def _fault(parameter: Parameter) -> str:
    """Why no value, or not the values meant, can fit."""
    number = parameter.type in ("integer", "number")
    low, high = parameter.minimum, parameter.maximum
    least, most = parameter.min_length, parameter.max_length
    if (low is not None or high is not None) and not number:
        return f"a {parameter.type} has no minimum or maximum"
    if (least is not None or most is not None) and parameter.type != "string":
        return f"a {parameter.type} has no length"
    if low is not None and high is not None and low > high:
        return f"nothing lies between {low} and {high}"
    if least is not None and most is not None and least > most:
        return f"no text has at least {least} and at most {most} characters"
    if parameter.type == "integer" and any(bound is not None and not _is_whole(bound) for bound in (low, high)):
        return "the bounds of an integer are whole numbers of 64 bits"
    return _fault_of_enum(parameter)


def _fault_of_enum(parameter: Parameter) -> str:
    wanted = {"string": str, "integer": int, "number": int}.get(parameter.type)
    for value in parameter.enum:
        if wanted is None or not isinstance(value, wanted):
            return f"{value!r} is no {parameter.type}"
        low, high = parameter.minimum, parameter.maximum
        if isinstance(value, int) and ((low is not None and value < low) or (high is not None and value > high)):
            return f"{value} lies outside its bounds"
    return ""


def _is_whole(bound: float) -> bool:
    return float(bound).is_integer() and int(bound) in _INTEGERS
