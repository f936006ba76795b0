"""All mutants of a reference: parts of it left out, functions put back, and mutations of the lines it brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from envsynth.hunks import changed_lines, file_drops, hunk_drops, lines_of, name_of
from envsynth.languages.python.functions import changed_functions, functions, parse
from envsynth.languages.python.mutants.equivalence import why_equivalent
from envsynth.languages.python.mutants.operators import KINDS, mutations
from envsynth.languages.python.pieces import differing_pieces
from envsynth.models import Variant, VariantFile

MODULE_ENDS = (".py", ".pyw")


def mutants(before: Mapping[str, str], after: Mapping[str, str]) -> list[Variant]:
    """Wrong variants of the reference, the most telling kinds first; equal arguments give an equal list.

    No two have the same text, none is the reference or the start, and every one of a module that can be read is itself
    a module that can be read.

    Args:
        before: text of each source file that the reference touches, by path, at the start.
        after: the same with the reference applied.
    """
    seen = {_outcome(after, ()), tuple(sorted(before.items()))}
    names: Counter[str] = Counter()
    found: list[Variant] = []
    for variant in _proposed(before, after):
        outcome = _outcome(after, variant.files)
        if outcome in seen or not all(_readable(one, after) for one in variant.files):
            continue
        seen.add(outcome)
        names[variant.name] += 1
        number = names[variant.name]
        update = {"name": variant.name if number == 1 else f"{variant.name}:{number}"}
        found.append(variant.model_copy(update={**update, "equivalent": _equivalent(variant, after)}))
    return found


def _proposed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Variant]:
    yield from hunk_drops(before, after)
    modules = [path for path in sorted(after) if path.endswith(MODULE_ENDS) and before.get(path) != after[path]]
    for path in modules:
        yield from _reverts(path, before.get(path, ""), after[path])
    yield from file_drops(before, after)
    changes = [
        Variant(name=name_of(one.kind, path, one.line), kind=one.kind, path=path, line=one.line,
                description=one.description, files=(VariantFile(path=path, text=one.text),))
        for path in modules
        for one in mutations(after[path], changed_lines(before.get(path, ""), after[path]))
    ]  # fmt: skip
    yield from sorted(changes, key=lambda one: KINDS.index(one.kind))


def _reverts(path: str, before: str, after: str) -> Iterator[Variant]:
    """The reference with one of the functions that it changes as at the start."""
    left, right = parse(before), parse(after)
    if left is None or right is None:
        return
    old, lines, old_lines = functions(left), lines_of(after), lines_of(before)
    for function in changed_functions(left, right):
        was = old.get(function.name)
        if was is None:
            continue
        text = [*lines[: function.first - 1], *old_lines[was.first - 1 : was.last], *lines[function.last :]]
        yield Variant(
            name=name_of("function_revert", path, function.first),
            kind="function_revert",
            path=path,
            line=function.first,
            description=f"`{function.name}` as it was at the start",
            files=(VariantFile(path=path, text="".join(text)),),
        )


def _outcome(after: Mapping[str, str], files: Iterable[VariantFile]) -> tuple[tuple[str, str], ...]:
    texts: dict[str, str | None] = {**after, **{one.path: one.text for one in files}}
    return tuple(sorted((path, text) for path, text in texts.items() if text is not None))


def _readable(file: VariantFile, after: Mapping[str, str]) -> bool:
    if file.text is None or not file.path.endswith(MODULE_ENDS):
        return True
    pieces = differing_pieces(after.get(file.path, ""), file.text)
    return pieces is None or parse(pieces[1]) is not None


def _equivalent(variant: Variant, after: Mapping[str, str]) -> str:
    """Why all files of a variant behave as the reference's; empty where one may not."""
    reasons = []
    for one in variant.files:
        reference = after.get(one.path)
        if one.text is None or reference is None or not one.path.endswith(MODULE_ENDS):
            return ""
        elsewhere = "\n".join(text for path, text in after.items() if path != one.path)
        reasons.append(why_equivalent(reference, one.text, elsewhere))
    return "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""
