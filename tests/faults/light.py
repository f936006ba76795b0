"""The command line with few attacks and mutants: builds of seconds, which take the same way as any other.

Worker processes import this file again, so that they are light too.
"""

from __future__ import annotations

import signal

from envsynth.validators import mutation
from envsynth.validators.adversary import validator

ATTACKS = ("root_conftest", "equal_to_all")


def lighten() -> None:
    """Leave most of the dear steps' work out."""
    validator.ATTACKS = tuple(attack for attack in validator.ATTACKS if attack.name in ATTACKS)
    mutation.MAX_MUTANTS = 2


def interruptible() -> None:
    """Whoever runs these tests in the background has interrupts ignored, and its children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


lighten()

if __name__ == "__main__":
    from envsynth.cli.main import main

    interruptible()
    main()
