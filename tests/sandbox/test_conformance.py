"""The conformance suite on every backend of ours, in every way it can be made."""

from __future__ import annotations

import pytest

from envsynth.runtime.contract import Backend
from envsynth.sandbox.bubblewrap import BubblewrapBackend
from envsynth.sandbox.conformance import SandboxConformance
from envsynth.sandbox.local import LocalBackend


@pytest.mark.sandbox
class TestBubblewrap(SandboxConformance):
    def make_backend(self) -> Backend:
        return BubblewrapBackend()


@pytest.mark.sandbox
@pytest.mark.slow
class TestBubblewrapWithoutCgroups(SandboxConformance):
    def make_backend(self) -> Backend:
        return BubblewrapBackend(cgroups=False)


@pytest.mark.sandbox
@pytest.mark.slow
class TestBubblewrapWithoutOverlay(SandboxConformance):
    def make_backend(self) -> Backend:
        return BubblewrapBackend(overlay=False)


@pytest.mark.slow
class TestLocal(SandboxConformance):
    def make_backend(self) -> Backend:
        return LocalBackend()


@pytest.mark.slow
class TestLocalWithoutCgroups(SandboxConformance):
    def make_backend(self) -> Backend:
        return LocalBackend(cgroups=False)
