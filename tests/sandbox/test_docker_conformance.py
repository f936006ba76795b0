"""The conformance suite on Docker, in every way its sandboxes can be made."""

from __future__ import annotations

import os

import pytest

from envsynth.runtime.contract import Backend
from envsynth.sandbox.conformance import SandboxConformance
from envsynth.sandbox.docker import DockerBackend


@pytest.mark.docker
class TestDocker(SandboxConformance):
    def make_backend(self) -> Backend:
        return DockerBackend()


@pytest.mark.docker
class TestDockerWithoutOverlay(SandboxConformance):
    def make_backend(self) -> Backend:
        return DockerBackend(overlay=False)


@pytest.mark.docker
class TestDockerWithGVisor(SandboxConformance):
    def make_backend(self) -> Backend:
        if not os.environ.get("ENVSYNTH_TEST_GVISOR"):
            pytest.skip("set ENVSYNTH_TEST_GVISOR=1 where the daemon knows the runtime runsc")
        return DockerBackend("runsc")
