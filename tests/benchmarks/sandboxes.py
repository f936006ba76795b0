"""The same tests under several sandboxes: are the results the same, and what does each cost?

Usage: python tests/benchmarks/sandboxes.py --catalog P ... [--tasks N] [--repeats R] [--cache DIR] [SANDBOX ...]

The start and reference trees of N tasks of each catalog are tested under every sandbox, with nothing remembered.
Prints seconds a run (of the whole call, and of the command inside), tests whose results differ, and the images'
megabytes; exit code 1 when one test differs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from envsynth.catalog import Catalog
from envsynth.catalog.blobs import roots_of
from envsynth.context import BuildContext
from envsynth.models import Source, Task, TestRun, Tree
from envsynth.panel import reference_tree
from envsynth.runtime.recipe import ensure_environment


class Tally:
    """Seconds and results of everything that ran."""

    def __init__(self, sandboxes: Sequence[str], cache: Path, repeats: int) -> None:
        self.contexts = {name: BuildContext(cache, sandbox=name) for name in sandboxes}
        self.whole: dict[str, list[float]] = {name: [] for name in sandboxes}
        self.inside: dict[str, list[float]] = {name: [] for name in sandboxes}
        self.tasks = self.compared = self.different = 0
        self._repeats = repeats

    def add(self, task: Task, catalog: Catalog) -> None:
        """Run both trees of a task under every sandbox."""
        context = next(iter(self.contexts.values()))
        _fill(task, catalog, context)
        source = catalog.source(task.candidate.provenance.lead.source)
        trees = {
            "start": context.blobs.get_tree(task.candidate.environment.tree),
            "reference": reference_tree(task.candidate, context.blobs),
        }
        for state, tree in trees.items():
            runs = {name: self._run(task, tree, name, source) for name in self.contexts}
            found = _differences(runs)
            for line in found:
                print(f"{task.id} {state}: {line}")
            self.different += len(found)
            self.compared += max(len(run.records) for run in runs.values())
        self.tasks += 1
        print(f"{self.tasks} {task.id}", flush=True)

    def _run(self, task: Task, tree: Tree, name: str, source: Source) -> TestRun:
        """Runs that are not remembered; the last one's results."""
        workspace, context = task.candidate.environment, self.contexts[name]
        language = context.language(workspace.recipe.language)
        for _ in range(self._repeats):
            began = time.monotonic()
            run = language.run_tests(workspace, tree, source=source, context=context)
            self.whole[name].append(time.monotonic() - began)
            self.inside[name].append(run.cost.wall_s)
        return run

    def show(self) -> None:
        """Print medians and totals."""
        for name, seconds in self.whole.items():
            whole, inside = statistics.median(seconds), statistics.median(self.inside[name])
            print(f"{name:12} {len(seconds)} runs, median {whole:.2f} s a run, {inside:.2f} s of the command")
        print(f"{self.tasks} tasks, {self.compared} test results compared, {self.different} differ")


def main() -> int:
    """Run every task under every sandbox."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as own:
        tally = Tally(arguments.sandboxes, Path(arguments.cache or own), arguments.repeats)
        for path in arguments.catalog:
            with Catalog.open(path, read_only=True) as catalog:
                for task in catalog.tasks()[: arguments.tasks]:
                    tally.add(task, catalog)
    tally.show()
    _images()
    return 1 if tally.different else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog", type=Path, action="append", required=True)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("sandboxes", nargs="*", default=["bubblewrap", "docker"])
    return parser.parse_args()


def _fill(task: Task, catalog: Catalog, context: BuildContext) -> None:
    """Put what the catalog holds of a task into the cache, and make its environment."""
    trees, contents = roots_of(task.candidate)
    for digest in trees:
        tree = catalog.blobs.get_tree(digest)
        context.blobs.put_tree(tree)
        contents += [entry.blob for entry in tree.entries]
    for digest in contents:
        context.blobs.put(catalog.blobs.get(digest))
    ensure_environment(
        task.candidate.environment.recipe.document(),
        catalog.blobs.get,
        context.cache_dir,
        note=lambda line: print(line, flush=True),
    )


def _statuses(run: TestRun) -> dict[str, str]:
    return {record.key: record.status.value for record in run.records}


def _differences(runs: Mapping[str, TestRun]) -> list[str]:
    """Tests whose result is not the same everywhere."""
    tables = {name: _statuses(run) for name, run in runs.items()}
    keys = sorted({key for table in tables.values() for key in table})
    found = [f"{name}: {run.trouble}" for name, run in runs.items() if run.trouble]
    for key in keys:
        seen = {name: table.get(key, "missing") for name, table in tables.items()}
        if len(set(seen.values())) > 1:
            found.append(f"{key}: {', '.join(f'{name} {status}' for name, status in seen.items())}")
    return found


def _images() -> None:
    from envsynth.errors import SandboxError
    from envsynth.sandbox._docker_client import connect
    from envsynth.sandbox._docker_images import listing

    try:
        for image in listing(connect().api):
            print(f"{image.reference}: {image.bytes / 1e6:.0f} MB, {image.own_bytes / 1e6:.1f} of its own")
    except SandboxError as error:
        print(error)


if __name__ == "__main__":
    sys.exit(main())
