"""Where work units run."""

from collections.abc import Callable, Sequence

from envsynth.errors import ConfigError, EnvsynthError
from envsynth.executors.local import LocalExecutor
from envsynth.protocols import Executor

__all__ = ["LocalExecutor", "make_executor", "work_through"]


def make_executor(name: str, jobs: int, tell: Callable[[str], None] = lambda _: None) -> Executor:
    """An executor by name.

    Args:
        name: of a kind of executors.
        jobs: units at once.
        tell: told one line where something is waited for.

    Raises:
        ConfigError: there is no such executor.
    """
    if name != "local":
        raise ConfigError(f"there is no executor {name!r}", next_step="use --executor local")
    return LocalExecutor(jobs, tell)


def work_through(
    executor: Executor,
    work: Callable[[str], str],
    units: Sequence[str],
    take: Callable[[str, str | BaseException], None],
    groups: Sequence[str] = (),
) -> None:
    """Have units done and their results taken. After an error, what is under way elsewhere is still taken.

    Args:
        executor: of this work alone.
        work: as for `Executor.map`.
        units: as for `Executor.map`.
        take: given each unit and its result as it ends.
        groups: as for `Executor.map`.

    Raises:
        EnvsynthError: the first that `take` raised.
    """
    error: EnvsynthError | None = None
    for unit, result in executor.map(work, units, groups):
        try:
            take(unit, result)
        except EnvsynthError as exc:
            error = error or exc
            executor.stop()  # other workers' calls are under way and paid for: their answers are waited for
    if error is not None:
        raise error
