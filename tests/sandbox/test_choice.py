"""Which backend is taken, and what is said where none works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import envsynth
from envsynth.errors import ConfigError, SandboxUnavailable
from envsynth.sandbox import BACKENDS, choose, choose_and_tell, explain
from envsynth.sandbox._docker_args import Profile
from envsynth.sandbox._docker_client import Daemon
from envsynth.sandbox.bubblewrap import BubblewrapBackend
from envsynth.sandbox.docker import DockerBackend, Found

ASK = """
import json, sys
from envsynth.errors import SandboxUnavailable
from envsynth.sandbox import choose
answers = {}
for name, trusted in (("auto", True), ("auto", False), ("bubblewrap", True), ("local", False)):
    try:
        answers[f"{name} {trusted}"] = choose(name, trusted=trusted, where="list.txt:3").name
    except SandboxUnavailable as error:
        answers[f"{name} {trusted}"] = str(error)
print(json.dumps(answers))
"""


def broken(monkeypatch: pytest.MonkeyPatch, *, docker: bool = False) -> None:
    monkeypatch.setattr(BubblewrapBackend, "_found", "no bwrap was found")
    found = Found(Daemon(None, "unix:///x", {}), Profile("sha256:0", "0:0", "", (), ()), True)
    monkeypatch.setattr(DockerBackend, "_find", lambda _: found if docker else "no Docker daemon answers")


def test_automatic_takes_isolation_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BubblewrapBackend, "unavailable", lambda self: None)
    assert choose("auto", trusted=True, where="x").isolates


def test_automatic_takes_docker_second_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, docker=True)
    choice = choose_and_tell("auto", trusted=False, where="x")
    assert (choice.backend.name, choice.backend.isolates) == ("docker", True)
    assert choice.note == "sandbox docker is used, since others do not work here: bubblewrap: no bwrap was found"
    assert choose_and_tell("docker", trusted=False, where="x").note == ""


def test_the_best_choice_needs_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BubblewrapBackend, "unavailable", lambda self: None)
    assert choose_and_tell("auto", trusted=True, where="x").note == ""


def test_automatic_falls_back_only_for_trusted_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    backend = choose("auto", trusted=True, where="x")
    assert (backend.name, backend.isolates) == ("local", False)
    assert "no isolation" in BACKENDS["local"].warning  # type: ignore[union-attr]
    with pytest.raises(SandboxUnavailable) as caught:
        choose("auto", trusted=False, where="list.txt:3")
    for part in ("list.txt:3", "no bwrap was found", "no Docker daemon", "trusted=yes", "--sandbox local"):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_asked_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    assert choose("local", trusted=False, where="x").name == "local"
    with pytest.raises(SandboxUnavailable, match="no bwrap was found"):
        choose("bubblewrap", trusted=True, where="x")
    for name in ("chroot", "docker:", "local:runc"):
        with pytest.raises(ConfigError, match="bubblewrap"):
            choose(name, trusted=True, where="x")


def test_docker_with_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, docker=True)
    assert choose("docker:runsc", trusted=False, where="x").name == "docker:runsc"
    monkeypatch.setenv("ENVSYNTH_DOCKER_RUNTIME", "kata")
    assert choose("docker", trusted=False, where="x").name == "docker:kata"


def test_explanations(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    reports = {report.name: report for report in explain()}
    assert (reports["bubblewrap"].works, reports["bubblewrap"].explanation) == (False, "no bwrap was found")
    assert (reports["local"].works, reports["local"].isolates) == (True, False)


@pytest.mark.sandbox
def test_where_user_namespaces_are_refused() -> None:
    backend = BubblewrapBackend()
    reason = backend.unavailable()
    if reason is not None:
        pytest.skip(reason)
    found = BubblewrapBackend._find()
    assert not isinstance(found, str)
    if not found.disable_nesting:
        pytest.skip("this bubblewrap cannot forbid nesting")
    root = Path(envsynth.__file__).parent.parent
    code = f"import sys; sys.path.insert(0, {str(root)!r})\n{ASK}"
    args = ["--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--proc", "/proc"]
    done = subprocess.run(
        [found.binary, *args, sys.executable, "-c", code], capture_output=True, check=True, timeout=60,
        env={**os.environ, "DOCKER_HOST": "unix:///no/such/socket"},
    )  # fmt: skip
    answers = json.loads(done.stdout)
    assert answers["auto True"] == answers["local False"] == "local"
    for asked in ("auto False", "bubblewrap True"):
        assert "user namespaces" in answers[asked]
        assert "\n" not in answers[asked]
    assert "trusted=yes" in answers["auto False"]
