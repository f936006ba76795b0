"""Where work units run."""

from envsynth.errors import ConfigError
from envsynth.executors.local import LocalExecutor
from envsynth.protocols import Executor

__all__ = ["LocalExecutor", "make_executor"]


def make_executor(name: str, jobs: int) -> Executor:
    """An executor by name.

    Raises:
        ConfigError: there is no such executor.
    """
    if name != "local":
        raise ConfigError(f"there is no executor {name!r}", next_step="use --executor local")
    return LocalExecutor(jobs)
