"""Work units in processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait

from envsynth.errors import EnvsynthError
from envsynth.executors._worker import Work, Worker, WorkerDied

Result = tuple[str, str | EnvsynthError]


class LocalExecutor:
    """At most `jobs` units at once; with one job everything runs in this process.

    A worker that dies (out of memory, killed) takes down only the unit it was given: that one is run once more when
    nothing else runs, and ends as an error only if its worker dies again.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = max(1, jobs)

    def map(self, work: Work, units: Sequence[str]) -> Iterator[Result]:
        """Yield (unit, result or error) as each ends.

        Raises:
            Exception: what `work` itself raises beyond EnvsynthError is a defect and passes unchanged.
        """
        if self.jobs == 1 or len(units) <= 1:
            for unit in units:
                yield unit, _call(work, unit)
            return
        crew = _Crew(work, units, self.jobs)
        yield from crew.run()
        for unit in crew.lost:
            alone = _Crew(work, [unit], 1)
            yield from alone.run()
            if alone.lost:
                yield unit, _died()


class _Crew:
    """Workers that share a list of units."""

    def __init__(self, work: Work, units: Sequence[str], size: int) -> None:
        self.lost: list[str] = []
        """Units whose worker died."""
        self._work = work
        self._queue = list(reversed(units))
        self._size = size
        self._idle: list[Worker] = []
        self._busy: list[Worker] = []
        self._gone: list[Worker] = []

    def run(self) -> Iterator[Result]:
        """Yield what becomes of each unit that is not lost."""
        try:
            while self._hand_out():
                ready = wait([worker.channel for worker in self._busy])
                for worker in [one for one in self._busy if one.channel in ready]:
                    try:
                        answer = worker.answer()
                    except WorkerDied:
                        self._move(worker, self._gone)
                        self.lost.append(worker.unit)
                        continue
                    self._move(worker, self._idle)
                    yield worker.unit, answer
        finally:
            self._disband()

    def _hand_out(self) -> bool:
        """Keep everyone busy; whether anyone is."""
        while self._queue and len(self._busy) < self._size:
            worker = self._idle.pop() if self._idle else Worker()
            self._busy.append(worker)
            try:
                worker.give(self._work, self._queue[-1])
            except WorkerDied:
                self._move(worker, self._gone)
                if worker.unit:  # it died after its last unit, and so not of this one
                    continue
                self.lost.append(self._queue[-1])
            self._queue.pop()
        return bool(self._busy)

    def _move(self, worker: Worker, where: list[Worker]) -> None:
        self._busy.remove(worker)
        where.append(worker)

    def _disband(self) -> None:
        everyone = [*self._busy, *self._idle, *self._gone]
        for worker in self._busy:
            worker.kill()
        for worker in everyone:
            worker.dismiss()
        for worker in everyone:
            worker.join()


def _call(work: Work, unit: str) -> str | EnvsynthError:
    try:
        return work(unit)
    except EnvsynthError as error:
        return error


def _died() -> EnvsynthError:
    return EnvsynthError(
        "a worker process died", cause="most likely it ran out of memory",
        next_step="run the same command with --jobs 1; finished work is kept", retryable=True,
    )  # fmt: skip
