"""The parity table: targets × panel trajectories, with size, export time and import cost of each emitted package.

Usage: python run.py CATALOG [--each N] [--by SQL] [--targets NAME ...] [--cache DIR]

`--by` is an SQL expression over the table `task` that groups tasks, such as `generator`; N tasks of each are taken,
in an order that is the same each time. Environments of targets are made under the cache, from the package index.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from envsynth import plugins
from envsynth.catalog import Catalog
from envsynth.exporters._package import holders
from envsynth.exporters._target_env import interpreter_of
from envsynth.exporters.replay import replay
from envsynth.models import Task

IMPORTS = 5
"""Times that each package is imported in a fresh process."""


class Row(NamedTuple):
    """One target."""

    target: str
    tasks: int
    verdicts: Counter[str]
    trouble: str
    megabytes: float
    export_s: float
    import_s: float
    """CPU seconds of `import PACKAGE`, less those of an empty process; median."""
    replay_s: float
    """Wall seconds of the comparison."""


def measured(target: str, tasks: list[Task], catalog: Catalog, folder: Path) -> Row:
    """Export, import and replay through one target."""
    python = interpreter_of(target)
    began = time.perf_counter()
    pack = plugins.load("exporters", target)().export(tasks, catalog.blobs, folder / target, {"name": "parity-pack"})
    exported = time.perf_counter() - began
    size = sum(path.stat().st_size for path in pack.rglob("*") if path.is_file()) / 1e6
    bare, loaded = (_cpu_s(python, code, pack) for code in ("pass", "import parity_pack"))
    began = time.perf_counter()
    report = replay(pack, target=target)
    verdicts = Counter(line.verdict for line in report.lines)
    for line in report.lines:
        if line.verdict != "same":
            print(f"  {target}: {line.task} {line.label}: {line.verdict}: {line.error}", file=sys.stderr)
    taken = time.perf_counter() - began
    return Row(target, len(tasks), verdicts, report.trouble, size, exported, loaded - bare, taken)


def _cpu_s(python: Path, code: str, pack: Path) -> float:
    measure = "import resource, sys; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
    environment = {**os.environ, "PYTHONPATH": str(pack), "PYTHONDONTWRITEBYTECODE": "1"}
    taken = []
    for _ in range(IMPORTS):
        command = [str(python), "-c", f"{code}\n{measure}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        taken.append(float(done.stdout.split()[-1]))
    return statistics.median(taken)


def chosen(catalog: Catalog, by: str, each: int) -> list[Task]:
    """N tasks of each group."""
    where = (
        f"id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY {by} ORDER BY hash(id)) AS place FROM task)"
        f" WHERE place <= {each})"
    )
    return list(catalog.tasks(where))


def main() -> int:
    """Print the table; exit code 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--by", default="generator")
    parser.add_argument("--targets", nargs="*", default=plugins.names("exporters"))
    parser.add_argument("--cache", type=Path, default=None)
    options = parser.parse_args()
    if options.cache is not None:
        os.environ["ENVSYNTH_CACHE"] = str(options.cache.absolute())
    with Catalog.open(options.catalog, read_only=True) as catalog, tempfile.TemporaryDirectory() as folder:
        tasks = chosen(catalog, options.by, options.each)
        print("| target | tasks | trajectories | same | differ | failed | MB | export s | import CPU s | replay s |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        rows = [row for target in options.targets if (row := _row(target, tasks, catalog, Path(folder))) is not None]
    return int(any(row.trouble or set(row.verdicts) - {"same"} for row in rows))


def _row(target: str, tasks: list[Task], catalog: Catalog, folder: Path) -> Row | None:
    held = [task for task in tasks if target in holders(task.candidate.environment.kind)]
    if not held:
        return None
    row = measured(target, held, catalog, folder)
    cells = (row.verdicts["same"], row.verdicts["differs"], row.verdicts["error"])
    print(
        f"| {target} | {row.tasks} | {sum(row.verdicts.values())} | {' | '.join(map(str, cells))} |"
        f" {row.megabytes:.1f} | {row.export_s:.1f} | {row.import_s:.2f} | {row.replay_s:.0f} |"
        + (f" {row.trouble}" if row.trouble else ""),
        flush=True,
    )
    return row


if __name__ == "__main__":
    sys.exit(main())
