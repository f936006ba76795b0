"""The parity table: every target plays the panels of the same tasks, and every component of each reward is compared.

One row a target, as Markdown on standard output: tasks and trajectories; how many of these are the same in every
component, differ, or failed for the environment's sake; megabytes of the emitted pack; wall seconds to export it; CPU
seconds of `import PACK` in a fresh process of the target's environment, less those of an empty one, the median; and
wall seconds of the comparison. What is not the same, and what `--sizes` asks for, is a line each on standard error.
Exit code 0: all the same; 1: something is not; 2 and 3: wrong usage, and what the machine lacks.

`--by` is an SQL expression over the catalog's view `task`: `source` is a mechanism's family, a scenario's industry or a
repository. N tasks of each group are taken, in an order that is the same each time. Grading a workspace takes seconds,
twice for each trajectory, so `--labels 4 --whole 3` plays every trajectory of three tasks of each group, and four of
each other task: reference, idle, and others of every kind in turn.

A target that holds other environments leaves those out, and one without a runtime to play through has its size only.
Environments of targets are made under the cache, from the package index, at the first time.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

from envsynth import plugins
from envsynth.catalog import Catalog
from envsynth.errors import ConfigError, EnvsynthError
from envsynth.exporters._package import holders
from envsynth.exporters._target_env import interpreter_of
from envsynth.exporters.replay import ReplayReport, replay
from envsynth.models import Task, Trajectory

LARGEST = 10
"""Files of each pack that `--sizes` lists."""
COLUMNS = (
    "target", "tasks", "trajectories", "same", "differ", "failed", "MB", "export s", "import CPU s", "replay s"
)  # fmt: skip


class Selection(NamedTuple):
    """Which trajectories are played."""

    by: str
    """SQL expression that groups tasks."""
    where: str
    """SQL condition on tasks."""
    each: int
    """Tasks of each group."""
    labels: int
    """Trajectories of each task; 0: all."""
    whole: int
    """Tasks of each group that keep all."""

    def tasks(self, catalog: Catalog) -> list[Task]:
        """The tasks, with the trajectories that are played."""
        whole = {task.id for task in self._first(catalog, self.whole)} if self.labels else set()
        return [
            task.model_copy(update={"panel": kept(task.id, task.panel, self.labels)})
            if self.labels and task.id not in whole
            else task
            for task in self._first(catalog, self.each)
        ]

    def _first(self, catalog: Catalog, count: int) -> list[Task]:
        ranked = (
            f"SELECT id, row_number() OVER (PARTITION BY {self.by} ORDER BY md5(id)) AS place"
            f" FROM task WHERE {self.where}"
        )
        return catalog.tasks(f"id IN (SELECT id FROM ({ranked}) WHERE place <= {count})")


def kept(task: str, panel: Sequence[Trajectory], count: int) -> tuple[Trajectory, ...]:
    """So many trajectories of a task's panel: reference, idle, and of each other kind one in turn."""
    kinds: dict[str, list[Trajectory]] = defaultdict(list)
    for line in sorted(panel, key=lambda line: hashlib.sha256(f"{task} {line.label}".encode()).digest()):
        kinds[line.label.partition(":")[0]].append(line)
    first = [line for kind in ("reference", "idle") for line in kinds.pop(kind, [])]
    turns = chain.from_iterable(zip_longest(*(kinds[kind] for kind in sorted(kinds))))
    return tuple([*first, *(line for line in turns if line is not None)][:count])


class Row(NamedTuple):
    """One target; None where there is nothing to measure."""

    target: str
    tasks: int
    megabytes: float
    export_s: float
    largest: list[tuple[str, int]]
    """Files of the pack with their bytes, the largest first."""
    import_s: float | None = None
    report: ReplayReport | None = None
    replay_s: float | None = None
    trouble: str = ""

    @property
    def good(self) -> bool:
        """Whether all is the same; a target without a runtime cannot differ."""
        lines = () if self.report is None else self.report.lines
        return not self.trouble and all(line.verdict == "same" for line in lines)

    def cells(self) -> str:
        """As a row of the table."""
        verdicts = None if self.report is None else Counter(line.verdict for line in self.report.lines)
        counts = (
            ["-"] * 4
            if verdicts is None
            else [str(verdicts.total()), *(str(verdicts[name]) for name in ("same", "differs", "error"))]
        )
        costs = [
            f"{self.megabytes:.1f}", f"{self.export_s:.1f}", _figure(self.import_s, 2), _figure(self.replay_s, 0),
        ]  # fmt: skip
        return _line([self.target, str(self.tasks), *counts, *costs]) + (f" {self.trouble}" if self.trouble else "")


def _figure(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def measured(target: str, tasks: list[Task], catalog: Catalog, folder: Path, imports: int) -> Row:
    """Export, import so many times, and replay through one target."""
    began = time.perf_counter()
    pack = plugins.load("exporters", target)().export(tasks, catalog.blobs, folder / target, {"name": "parity-pack"})
    exported = time.perf_counter() - began
    files = [(path.relative_to(pack).as_posix(), path.stat().st_size) for path in pack.rglob("*") if path.is_file()]
    files.sort(key=lambda file: (-file[1], file[0]))
    row = Row(target, len(tasks), sum(size for _, size in files) / 1e6, exported, files[:LARGEST])
    try:
        python = interpreter_of(target)
    except ConfigError:
        return row  # its packs are read, or played by a trainer that needs more than this machine
    cost = None
    if imports:
        cost = _cpu_s(python, "import parity_pack", pack, imports) - _cpu_s(python, "pass", pack, imports)
    began = time.perf_counter()
    report = replay(pack, target=target)
    taken = time.perf_counter() - began
    for line in report.lines:
        if line.verdict != "same":
            print(f"  {target}: {line.task} {line.label}: {line.verdict}: {line.error}", file=sys.stderr, flush=True)
    return row._replace(import_s=cost, report=report, replay_s=taken, trouble=report.trouble)


def _cpu_s(python: Path, code: str, pack: Path, times: int) -> float:
    measure = "import resource, sys; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
    environment = {**os.environ, "PYTHONPATH": str(pack), "PYTHONPYCACHEPREFIX": str(pack.with_name("bytecode"))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    taken = []
    for _ in range(1 + times):  # the first compiles
        command = [str(python), "-c", f"{code}\n{measure}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        taken.append(float(done.stdout.split()[-1]))
    return statistics.median(taken[1:])


def _row(target: str, tasks: list[Task], catalog: Catalog, options: argparse.Namespace) -> Row | None:
    held = [task for task in tasks if target in holders(task.candidate.environment.kind)]
    if not held:
        print(f"  {target}: holds none of these environments", file=sys.stderr, flush=True)
        return None
    with tempfile.TemporaryDirectory() as folder:
        row = measured(target, held, catalog, Path(folder), options.imports)
    print(row.cells(), flush=True)
    if options.sizes:
        for path, size in row.largest:
            print(f"  {target}: {size / 1e6:8.3f} MB  {path}", file=sys.stderr, flush=True)
    return row


def main() -> int:
    """Print the table; exit code 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path, help="catalog file; read only")
    parser.add_argument("--by", default="generator", metavar="SQL", help="what groups tasks (generator)")
    parser.add_argument("--where", default="true", metavar="SQL", help="condition on tasks (all)")
    parser.add_argument("--each", type=int, default=10, metavar="N", help="tasks of each group (10)")
    parser.add_argument("--labels", type=int, default=0, metavar="N", help="trajectories of each task (all)")
    parser.add_argument("--whole", type=int, default=0, metavar="N", help="tasks of each group that keep all (0)")
    parser.add_argument("--targets", nargs="*", metavar="NAME", help="formats, in this order (all)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="folder of environments ($ENVSYNTH_CACHE)")
    parser.add_argument("--imports", type=int, default=5, metavar="N", help="imports of each package; 0: none (5)")
    parser.add_argument("--sizes", action="store_true", help="list the largest files of each pack")
    options = parser.parse_args()
    if options.cache is not None:
        os.environ["ENVSYNTH_CACHE"] = str(options.cache.absolute())
    selection = Selection(options.by, options.where, options.each, options.labels, options.whole)
    try:
        with Catalog.open(options.catalog, read_only=True) as catalog:
            tasks = selection.tasks(catalog)
            print(_line(list(COLUMNS)), _line(["---"] * len(COLUMNS)), sep="\n", flush=True)
            targets = options.targets or plugins.names("exporters")
            rows = [_row(target, tasks, catalog, options) for target in targets]
    except EnvsynthError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return exc.exit_code
    return int(not all(row.good for row in rows if row is not None))


if __name__ == "__main__":
    sys.exit(main())
