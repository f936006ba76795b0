"""Reading what authors supply: service blueprints and industries, each fault with its file and line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from envsynth.errors import ConfigError, GeneratorError
from envsynth.generators.business.blueprint import Industry, Service, steps_of
from envsynth.generators.business.yamllines import BadYaml, Fault, Lines, read_yaml

_HERE = Path(__file__).parent

Kind = type[Service] | type[Industry]


class Read(NamedTuple):
    """A document with its lines."""

    document: Service | Industry
    lines: Lines


class Library:
    """The blueprints and industries of one folder; read once."""

    def __init__(self, folder: Path) -> None:
        """A library.

        Args:
            folder: has `blueprints/SERVICE.yaml` and `industries/INDUSTRY.yaml`.
        """
        self.folder = folder
        self._read: dict[tuple[str, str], Read | Fault] = {}
        self._composed: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[Service, ...]] = {}

    @property
    def services(self) -> tuple[str, ...]:
        """Names of all service blueprints."""
        return self._names("blueprints")

    @property
    def industries(self) -> tuple[str, ...]:
        """Names of all industries."""
        return self._names("industries")

    def service(self, name: str) -> Service:
        """A service blueprint.

        Raises:
            ConfigError: there is none; names the nearest.
            GeneratorError: its file is not as it should be; says on which line.
        """
        found = self._open("blueprints", name, Service, "service")
        assert isinstance(found.document, Service)
        return found.document

    def industry(self, name: str, *, where: str = "") -> Industry:
        """An industry.

        Raises:
            ConfigError: there is none; names the nearest.
            GeneratorError: its file is not as it should be; says on which line.
        """
        found = self._open("industries", name, Industry, "industry", where)
        assert isinstance(found.document, Industry)
        return found.document

    def process(self, industry: Industry, name: str, *, where: str = "") -> tuple[str, ...]:
        """The goals of a process.

        Raises:
            ConfigError: the industry has no such process; names the nearest.
        """
        if name not in industry.processes:
            raise _unknown("process", name, tuple(industry.processes), where, f" of {industry.industry}")
        return industry.processes[name]

    def composed(self, industry: Industry) -> tuple[Service, ...]:
        """The services of an industry, each after those that it needs, without the tools that it does without.

        Raises:
            GeneratorError: one of them is missing, or they need each other in a circle.
        """
        key = industry.services, industry.without
        if key not in self._composed:
            left_out = frozenset(industry.without)
            self._composed[key] = tuple(_lean(self.service(name), left_out) for name in self._in_order(industry))
        return self._composed[key]

    def place(self, kind: str, name: str, *place: str | int) -> str:
        """`file:line` of a part of a document; the document's name where it is from no file.

        Args:
            kind: `service` or `industry`.
            name: of the document.
            place: as for `Lines.at`.
        """
        found = self._read.get(("blueprints" if kind == "service" else "industries", name))
        return found.lines.at(*place) if isinstance(found, Read) else f"{kind} {name}"

    def faults(self) -> Iterator[Fault]:
        """Files that cannot be read, the first fault of each."""
        kinds: tuple[tuple[str, Kind], ...] = (("blueprints", Service), ("industries", Industry))
        for folder, model in kinds:
            for name in self._names(folder):
                yield from all_faults(self.folder / folder / f"{name}.yaml", model)

    def _names(self, folder: str) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in (self.folder / folder).glob("*.yaml")))

    def _open(self, folder: str, name: str, model: Kind, kind: str, where: str = "") -> Read:
        if (folder, name) not in self._read:
            known = self._names(folder)
            if name not in known:
                raise _unknown(kind, name, known, where)
            self._read[folder, name] = _read(self.folder / folder / f"{name}.yaml", model)
        found = self._read[folder, name]
        if isinstance(found, Fault):
            raise GeneratorError(
                f"the {kind} {name} cannot be used", where=found.where, cause=found.message,
                next_step="envsynth plugins check",
            )  # fmt: skip
        return found

    def _in_order(self, industry: Industry) -> tuple[str, ...]:
        order: list[str] = []
        for name in industry.services:
            self._visit(name, industry, order, ())
        return tuple(order)

    def _visit(self, name: str, industry: Industry, order: list[str], path: tuple[str, ...]) -> None:
        if name in order:
            return
        where = self.place("industry", industry.industry, "services")
        if name in path:
            circle = " → ".join((*path[path.index(name) :], name))
            where = self.place("service", path[-1], "needs")
            raise GeneratorError("services need each other in a circle", where=where, cause=circle)
        if name not in self.services:
            raise _unknown("service", name, self.services, where)
        if name not in industry.services:
            raise GeneratorError(
                f"{path[-1]} needs {name}, which {industry.industry} does not have", where=where,
                next_step=f"add {name} to its services",
            )  # fmt: skip
        for needed in self.service(name).needs:
            self._visit(needed, industry, order, (*path, name))
        order.append(name)


def _lean(service: Service, left_out: frozenset[str]) -> Service:
    """A service without some tools, and without the goals that call one of them."""
    if not any(tool.name in left_out for tool in service.tools):
        return service
    tools = tuple(tool for tool in service.tools if tool.name not in left_out)
    goals = tuple(goal for goal in service.goals if not any(step.tool in left_out for _, step in steps_of(goal)))
    return service.model_copy(update={"tools": tools, "goals": goals})


@cache
def library(folder: Path = _HERE) -> Library:
    """The library of a folder; envsynth's own without one."""
    return Library(folder)


def all_faults(path: Path, model: Kind) -> Iterator[Fault]:
    """Everything that keeps a file from being such a document; `file:line` each."""
    try:
        value, lines = read_yaml(path)
    except BadYaml as exc:
        yield exc.fault
        return
    own = "service" if model is Service else "industry"
    if not isinstance(value, dict):
        yield Fault(lines.at(), f"no document of a{'n' if own == 'industry' else ''} {own}")
        return
    try:
        model.model_validate(value)
    except ValidationError as exc:
        # A value that fits none of several kinds has a fault for each of them.
        faults = {lines.at(*error["loc"]): error for error in reversed(exc.errors())}
        for where, error in reversed(faults.items()):
            yield Fault(where, _said(error["loc"], error["msg"], str(error["type"])))
        return
    if value[own] != path.stem:
        yield Fault(lines.at(own), f"the file is called {path.stem}, and the {own} {value[own]}")


def _read(path: Path, model: Kind) -> Read | Fault:
    fault = next(all_faults(path, model), None)
    if fault is not None:
        return fault
    value, lines = read_yaml(path)
    return Read(model.model_validate(value), lines)


def _said(place: Sequence[str | int], message: str, kind: str) -> str:
    field = ".".join(map(str, place))
    if kind == "extra_forbidden":
        return f"there is no field {place[-1]!r} here ({field})"
    if kind == "missing":
        return f"{field} is missing"
    text = message.removeprefix("Value error, ")
    return f"{field}: {text}" if field else text


def _unknown(kind: str, name: str, known: Sequence[str], where: str, owner: str = "") -> ConfigError:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    right = " or ".join(close) if close else f"one of {', '.join(known)}" if known else "none: there are no others"
    return ConfigError(f"there is no {kind} {name!r}{owner}", where=where, next_step=f"use {right}")
