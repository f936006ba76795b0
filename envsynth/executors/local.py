"""Work units in processes on this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from multiprocessing.connection import wait

from envsynth.errors import EnvsynthError
from envsynth.executors._worker import Work, Worker, WorkerDied

Result = tuple[str, str | EnvsynthError]
Parcel = deque[str]
"""Units that are best done by one worker."""


class LocalExecutor:
    """At most `jobs` units at once; with one job everything runs in this process.

    A worker that dies (out of memory, killed) takes down only the unit it was given: that one is run once more when
    nothing else runs, and ends as an error only if its worker dies again.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = max(1, jobs)
        self._stopped = False
        self._crew: _Crew | None = None

    def stop(self) -> None:
        """Begin no more units; `map` yields those that are under way, and ends."""
        self._stopped = True
        if self._crew is not None:
            self._crew.stop()

    def map(self, work: Work, units: Sequence[str], groups: Sequence[str] = ()) -> Iterator[Result]:
        """Yield (unit, result or error) as each ends.

        Args:
            work: done with each unit.
            units: in the order in which they begin.
            groups: of each unit; neighbours with an equal one that is not empty go to one worker, as long as others
                have enough to do.

        Raises:
            Exception: what `work` itself raises beyond EnvsynthError is a defect and passes unchanged.
        """
        if self.jobs == 1 or len(units) <= 1:
            for unit in units:
                if not self._stopped:
                    yield unit, _call(work, unit)
            return
        crew = self._crew = _Crew(work, _parcels(units, groups), self.jobs)
        yield from crew.run()
        for unit in crew.lost:
            if self._stopped:
                return
            alone = _Crew(work, [deque([unit])], 1)
            yield from alone.run()
            if alone.lost:
                yield unit, _died()


def _parcels(units: Sequence[str], groups: Sequence[str]) -> list[Parcel]:
    """Units in order; those of one group together."""
    found: list[Parcel] = []
    last = ""
    for unit, group in zip_longest(units, groups, fillvalue=""):
        if group and group == last:
            found[-1].append(unit)
        else:
            found.append(deque([unit]))
        last = group
    return found


class _Crew:
    """Workers that share a list of units."""

    def __init__(self, work: Work, parcels: Iterable[Parcel], size: int) -> None:
        self.lost: list[str] = []
        """Units whose worker died."""
        self._work = work
        self._waiting = deque(parcels)
        self._open: dict[Worker, Parcel] = {}
        """What workers have begun, and may not have finished."""
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

    def stop(self) -> None:
        """Hand out nothing more."""
        self._waiting.clear()
        for parcel in self._open.values():
            parcel.clear()

    def _hand_out(self) -> bool:
        """Keep everyone busy; whether anyone is."""
        while len(self._busy) < self._size and (self._waiting or any(self._open.values())):
            worker = self._idle.pop() if self._idle else Worker()
            self._busy.append(worker)
            parcel = self._parcel(worker)
            try:
                worker.give(self._work, parcel[0])
            except WorkerDied:
                self._move(worker, self._gone)
                if worker.unit:  # it died after its last unit, and so not of this one
                    continue
                self.lost.append(parcel[0])
            parcel.popleft()
        return bool(self._busy)

    def _parcel(self, worker: Worker) -> Parcel:
        """What a worker goes on with: its own, else the next, else what another one has most left of."""
        if not self._open.get(worker):
            self._open[worker] = self._waiting.popleft() if self._waiting else max(self._open.values(), key=len)
        return self._open[worker]

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
