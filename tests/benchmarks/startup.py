"""CPU seconds of starting: `python tests/benchmarks/startup.py` prints medians and fails above the budgets."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

BUDGETS = {
    "import envsynth": (["-c", "import envsynth"], 0.3),
    "envsynth --help": (["-c", "from envsynth.cli.main import run; run(['--help'])"], 0.6),
}
REPEATS = 7


def cpu_seconds(arguments: list[str]) -> float:
    """User and system seconds of one interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Measure; 1 when a median is above its budget."""
    worst = 0
    for name, (arguments, budget) in BUDGETS.items():
        cpu_seconds(arguments)
        median = statistics.median(cpu_seconds(arguments) for _ in range(REPEATS))
        worst |= median > budget
        print(f"{name:18}{median:6.3f} s CPU, budget {budget} s")
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
