"""Work units in a pool of processes on this machine."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from envsynth.errors import EnvsynthError

_PR_SET_PDEATHSIG = 1

Result = tuple[str, str | EnvsynthError]


class LocalExecutor:
    """At most `jobs` units at once; with one job everything runs in this process.

    A worker that dies (out of memory, killed) takes down only the units that were in flight: each of those is run
    once more alone, and only a unit whose worker dies again ends as an error.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = max(1, jobs)

    def map(self, work: Callable[[str], str], units: Sequence[str]) -> Iterator[Result]:
        """Yield (unit, result or error) as each ends.

        Raises:
            Exception: what `work` itself raises beyond EnvsynthError is a defect and passes unchanged.
        """
        if self.jobs == 1 or len(units) <= 1:
            for unit in units:
                yield unit, _call(work, unit)
            return
        suspects: list[str] = []
        queue = list(reversed(units))
        while queue:
            with _pool(min(self.jobs, len(queue))) as pool:
                yield from self._drain(pool, work, queue, suspects)
        for unit in suspects:
            with _pool(1) as pool:
                try:
                    yield unit, pool.submit(_call, work, unit).result()
                except BrokenProcessPool:
                    yield unit, _died()

    def _drain(
        self, pool: ProcessPoolExecutor, work: Callable[[str], str], queue: list[str], suspects: list[str]
    ) -> Iterator[Result]:
        """Run units from the queue's end until it is empty or a worker died."""
        flying: dict[Future[str | EnvsynthError], str] = {}
        try:
            while queue or flying:
                while queue and len(flying) < self.jobs:
                    # Taken from the queue only once it flies: a pool that broke meanwhile refuses it.
                    flying[pool.submit(_call, work, queue[-1])] = queue[-1]
                    queue.pop()
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    yield flying.pop(future), result
        except BrokenProcessPool:
            suspects.extend(unit for unit in flying.values())
        except BaseException:
            _kill(pool)
            raise


def _call(work: Callable[[str], str], unit: str) -> str | EnvsynthError:
    try:
        return work(unit)
    except EnvsynthError as error:
        return error


def _pool(size: int) -> ProcessPoolExecutor:
    # Spawned, not forked: a forked child would share the catalog's open file and its threads' locks.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(size, mp_context=context, initializer=_start_worker, initargs=(os.getpid(),))


def _start_worker(parent: int) -> None:
    # Ctrl-C is the parent's to handle; a killed parent must not leave workers behind.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before this could be asked for
        os._exit(1)


def _kill(pool: ProcessPoolExecutor) -> None:
    """End the workers at once; their sandboxes die with them."""
    for process in list((pool._processes or {}).values()):
        process.kill()
    pool.shutdown(wait=False, cancel_futures=True)


def _died() -> EnvsynthError:
    return EnvsynthError(
        "a worker process died", cause="most likely it ran out of memory",
        next_step="run the same command with --jobs 1; finished work is kept", retryable=True,
    )  # fmt: skip
