"""Work units in processes on this machine."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from multiprocessing.connection import wait

from envsynth.errors import EnvsynthError
from envsynth.executors._interrupts import first_noted
from envsynth.executors._worker import Work, Worker, WorkerDied

FINISH_S = 60.0
"""What is under way has so long to end by itself once nothing more is begun."""
LEAVE_S = 120.0
"""Then, or after Ctrl-C, a call of a model has so long to be answered; everything else ends at once."""
_LOOK_S = 0.2
Result = tuple[str, str | EnvsynthError]
Parcel = deque[str]
"""Units that are best done by one worker."""


class LocalExecutor:
    """At most `jobs` units at once; with one job everything runs in this process.

    A worker that dies (out of memory, killed) takes down only the unit it was given: that one is run once more when
    nothing else runs, and ends as an error only if its worker dies again.

    Ctrl-C ends the workers, but those that a model is answering have time to take the answer in; a second Ctrl-C ends
    them too.

    Args:
        jobs: so many.
        tell: told one line where something is waited for.
    """

    def __init__(self, jobs: int, tell: Callable[[str], None] = lambda _: None) -> None:
        self.jobs = max(1, jobs)
        self._tell = tell
        self._stopped = False
        self._crew: _Crew | None = None

    def stop(self) -> None:
        """Begin no more units; `map` yields those that end in time, and ends."""
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
            KeyboardInterrupt: after everything that had ended was yielded.
            Exception: what `work` itself raises beyond EnvsynthError is a defect and passes unchanged.
        """
        if self.jobs == 1 or len(units) <= 1:
            for unit in units:
                if not self._stopped:
                    yield unit, _call(work, unit)
            return
        crew = self._crew = _Crew(work, _parcels(units, groups), self.jobs, self._tell)
        yield from crew.run()
        for unit in crew.lost:
            if self._stopped:
                return
            alone = _Crew(work, [deque([unit])], 1, self._tell)
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

    def __init__(self, work: Work, parcels: Iterable[Parcel], size: int, tell: Callable[[str], None]) -> None:
        self.lost: list[str] = []
        """Units whose worker died."""
        self._work = work
        self._waiting = deque(parcels)
        self._open: dict[Worker, Parcel] = {}
        """What workers have begun, and may not have finished."""
        self._size = size
        self._tell = tell
        self._finish_by: float | None = None
        self._leave_by: float | None = None
        self._idle: list[Worker] = []
        self._busy: list[Worker] = []
        self._gone: list[Worker] = []

    def run(self) -> Iterator[Result]:
        """Yield what becomes of each unit that is not lost.

        Raises:
            KeyboardInterrupt: after that.
        """
        with first_noted() as interrupted:
            try:
                while self._hand_out() and self._has_time(interrupted=interrupted()):
                    yield from self._ended()
            finally:
                self._disband()
            if interrupted():
                raise KeyboardInterrupt

    def _ended(self) -> Iterator[Result]:
        """What came to an end, after a short wait for it."""
        ready = wait([worker.channel for worker in self._busy], _LOOK_S)
        for worker in [one for one in self._busy if one.channel in ready]:
            try:
                answer = worker.answer()
            except WorkerDied:
                self._move(worker, self._gone)
                self.lost.append(worker.unit)
                continue
            self._move(worker, self._idle)
            yield worker.unit, answer

    def stop(self) -> None:
        """Hand out nothing more."""
        self._waiting.clear()
        for parcel in self._open.values():
            parcel.clear()
        if self._finish_by is None:
            self._finish_by = time.monotonic() + FINISH_S

    def _has_time(self, *, interrupted: bool) -> bool:
        """Whether what is under way is still waited for; has it end where its time is up."""
        now = time.monotonic()
        if self._leave_by is None and (interrupted or now > (self._finish_by or now)):
            self.stop()
            self._leave_by = now + LEAVE_S
            self._tell("stopping: answers that models are giving are waited for; Ctrl-C gives them up")
            for worker in self._busy:
                worker.leave()
        return self._leave_by is None or now < self._leave_by

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
