"""The one list of attacks."""

from __future__ import annotations

from envsynth.validators.adversary.from_inside import FROM_INSIDE
from envsynth.validators.adversary.from_outside import FROM_OUTSIDE

ATTACKS = (*FROM_OUTSIDE, *FROM_INSIDE)

SHIPPED = (
    "root_conftest", "plugin_by_pytest_ini", "deleted_tests", "background_process", "frame_oracle", "report_replaced",
)  # fmt: skip
"""Those that go into a task's panel, so that every copy of the grader can be tried with them."""

BY_NAME = {attack.name: attack for attack in ATTACKS}
