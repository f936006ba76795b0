"""The conformance suite is shipped in the package; its asserts explain themselves all the same."""

import pytest

pytest.register_assert_rewrite("envsynth.sandbox.conformance")
