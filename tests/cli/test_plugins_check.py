"""envsynth plugins check: one line a fault, exit code 1 on findings, generators without documents are passed over."""

from __future__ import annotations

import json

import pytest

from envsynth import plugins
from envsynth.errors import ConfigError


class Sound:
    def faults(self):
        return iter(())


class Broken:
    def faults(self):
        yield "desk.yaml:3: no such table: \x1b[31mchairs"
        yield "desk.yaml:9: there is no tool sit"


class Plain:
    pass


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch):
    def ship(**classes) -> None:
        def load(group, name):
            if name not in classes:
                raise ConfigError(f"there is no generator named {name!r}")
            return classes[name]

        monkeypatch.setattr(plugins, "names", lambda group: sorted(classes))
        monkeypatch.setattr(plugins, "load", load)

    return ship


def test_faults_are_printed_one_a_line(envsynth, shipped) -> None:
    shipped(a=Sound, b=Broken, c=Plain)
    printed = envsynth("plugins", "check")
    assert printed.code == 1
    assert printed.out == "desk.yaml:3: no such table: \\x1b[31mchairs\ndesk.yaml:9: there is no tool sit\n"
    assert printed.err == "2 faults\n"
    lines = [json.loads(line) for line in envsynth("plugins", "check", "--json").out.splitlines()]
    assert lines[1] == {"generator": "b", "fault": "desk.yaml:9: there is no tool sit"}


def test_without_faults_all_is_well(envsynth, shipped) -> None:
    shipped(a=Sound, b=Broken, c=Plain)
    printed = envsynth("plugins", "check", "a", "c")
    assert (printed.code, printed.out, printed.err) == (0, "", "no faults\n")


def test_an_unknown_generator(envsynth, shipped) -> None:
    shipped(a=Sound)
    printed = envsynth("plugins", "check", "z")
    assert printed.code == 2
    assert "there is no generator named 'z'" in printed.err


def test_a_check_that_fails_itself_is_one_line(envsynth, shipped) -> None:
    class Failing:
        def faults(self):
            raise KeyError("chairs")

    shipped(f=Failing)
    printed = envsynth("plugins", "check")
    assert printed.code == 3
    assert printed.err == "envsynth: f: the documents cannot be checked (KeyError: 'chairs')\n"
