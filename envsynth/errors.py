"""The errors a user can meet, and the one place that classifies foreign ones.

    EnvsynthError
    ├── ConfigError             usage or configuration: exit code 2
    ├── SourceError             a source that cannot be read: exit code 2, or 3 where the host is at fault
    │   └── NoInterpreter
    ├── GeneratorError          a generator failed on a whole source: exit code 3
    ├── ValidatorError          a validator itself failed: exit code 3
    ├── SandboxError            the environment failed, never the agent: exit code 3
    │   ├── SandboxUnavailable
    │   ├── SandboxTimeout
    │   └── DiskFull
    ├── ModelError              a language model gave nothing to go on: exit code 3
    │   ├── ModelEndpointError  the endpoint or the way to it failed, never the model
    │   │   ├── ModelRateLimited
    │   │   ├── ModelRequestRejected
    │   │   └── EndpointDown    no call would fare better: the build stops
    │   ├── ModelOutputError    the model answered, and what it wrote is no use
    │   │   ├── ModelRefused
    │   │   ├── ModelTruncated
    │   │   ├── ModelEmpty
    │   │   ├── ModelOverlong
    │   │   ├── ModelMalformed
    │   │   └── ModelBadToolCall
    │   └── BudgetSpent         the spend limit is reached: the build stops
    ├── CatalogError            exit code 3
    │   ├── CatalogSchemaMismatch
    │   └── CatalogLocked
    └── ExportError             exit code 2

Standard library only: the runtime that is copied into packs raises these too.
"""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


class EnvsynthError(Exception):
    """What failed, where, why, and what to do next.

    Args:
        what: one sentence, without a final full stop; or an error of ours, whose fields are taken over where none is
            given (vector environments raise `type(error)(error)` anew).
        where: the id, path, URI or line it happened on.
        cause: the likely cause.
        next_step: the exact next command, or what to change.
        retryable: whether the same call may succeed later.
    """

    exit_code = 3
    default_retryable = False

    def __init__(
        self,
        what: str | EnvsynthError,
        *,
        where: str = "",
        cause: str = "",
        next_step: str = "",
        retryable: bool | None = None,
    ) -> None:
        if isinstance(what, EnvsynthError):
            where, cause, next_step = where or what.where, cause or what.cause, next_step or what.next_step
            retryable = what.retryable if retryable is None else retryable
            what = what.what
        self.what: str = str(what)
        super().__init__(self.what)
        self.where: str = where
        self.cause: str = cause
        self.next_step: str = next_step
        self.retryable: bool = self.default_retryable if retryable is None else retryable

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        if self.cause:
            line += f" ({self.cause})"
        if self.next_step:
            line += f". Next: {self.next_step}"
        return " ".join(line.split())

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries; the default would drop the keyword arguments.
        return (_rebuild, (type(self), self.what, self.where, self.cause, self.next_step, self.retryable))


def _rebuild(
    kind: type[EnvsynthError], what: str, where: str, cause: str, next_step: str, retryable: bool
) -> EnvsynthError:
    return kind(what, where=where, cause=cause, next_step=next_step, retryable=retryable)


class ConfigError(EnvsynthError):
    """Usage or configuration is wrong; nothing was done."""

    exit_code = 2


class SourceError(EnvsynthError):
    """A source cannot be read or is not what it claims to be."""

    exit_code = 2


class NoInterpreter(SourceError):
    """Nothing installed on this machine runs the project; that is no fault of the project's."""


class GeneratorError(EnvsynthError):
    """A generator failed on a whole source."""


class ValidatorError(EnvsynthError):
    """A validator itself failed; the candidate is owed a verdict."""

    default_retryable = True


class SandboxError(EnvsynthError):
    """The environment failed. Never scored as the agent's."""

    default_retryable = True


class SandboxUnavailable(SandboxError):
    """No backend works here, or the one asked for does not."""

    default_retryable = False


class SandboxTimeout(SandboxError):
    """The environment's own work (not the agent's command) ran out of time."""


class DiskFull(SandboxError):
    """No space left, whatever raised it; nothing else would fare better."""

    default_retryable = False


class ModelError(EnvsynthError):
    """A language model gave nothing to go on."""


class ModelEndpointError(ModelError):
    """The endpoint or the way to it failed: never counted as a fault of the model's output."""

    default_retryable = True


class ModelRateLimited(ModelEndpointError):
    """The endpoint asks for more patience than there is."""


class ModelRequestRejected(ModelEndpointError):
    """The endpoint does not take this request, such as one longer than the model's context."""

    default_retryable = False


class EndpointDown(ModelEndpointError):
    """The endpoint fails every call in the same way; no other call would fare better."""

    default_retryable = False


class ModelOutputError(ModelError):
    """The model answered, and what it wrote is no use; the endpoint did its part.

    The same call is answered from the cache, so it fails again; another draw, or other messages, may not.
    """

    def __init__(
        self,
        what: str | EnvsynthError,
        *,
        where: str = "",
        cause: str = "",
        next_step: str = "",
        retryable: bool | None = None,
    ) -> None:
        super().__init__(what, where=where, cause=cause, next_step=next_step, retryable=retryable)
        self.output: str = what.output if isinstance(what, ModelOutputError) else ""
        """What the model wrote, for feedback and for the record."""

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"output": self.output})


class ModelRefused(ModelOutputError):
    """The model declined to answer, or a filter kept its answer back."""


class ModelTruncated(ModelOutputError):
    """The answer was cut at the token limit."""


class ModelEmpty(ModelOutputError):
    """The answer holds neither text nor a tool call."""


class ModelOverlong(ModelOutputError):
    """The answer is longer than was allowed."""


class ModelMalformed(ModelOutputError):
    """The answer does not fit the wanted type, after repair."""


class ModelBadToolCall(ModelOutputError):
    """A call of a tool that there is not, or with arguments that are not a JSON object."""


class BudgetSpent(ModelError):
    """The spend limit leaves no room for another call; what was done is kept, and a higher limit goes on from there."""


class CatalogError(EnvsynthError):
    """The catalog cannot be read or written."""


class CatalogSchemaMismatch(CatalogError):
    """The catalog was written by a newer version."""

    exit_code = 2


class CatalogLocked(CatalogError):
    """Another process holds the catalog."""

    default_retryable = True


class ExportError(EnvsynthError):
    """A pack cannot be written from this selection."""

    exit_code = 2


@contextmanager
def boundary(error: type[EnvsynthError], what: str, *, where: str = "", next_step: str = "") -> Iterator[None]:
    """Turn any foreign exception into `error`; the only broad `except` in the package.

    Raises:
        EnvsynthError: errors of ours pass unchanged; a full disk is named as such whatever raised it.
    """
    try:
        yield
    except EnvsynthError:
        raise
    except subprocess.TimeoutExpired as exc:
        raise error(
            what, where=where, cause=f"no answer in {exc.timeout:.0f} s", next_step=next_step, retryable=True
        ) from exc
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(where or str(exc.filename or "")) from exc
        raise error(what, where=where, cause=_describe(exc), next_step=next_step) from exc
    except Exception as exc:
        raise error(what, where=where, cause=_describe(exc), next_step=next_step) from exc


def disk_full(where: str) -> DiskFull:
    """The one message for a full disk, so that it is recognised wherever it happens."""
    return DiskFull(
        "no space left on the disk", where=where, cause="the disk or a quota is full",
        next_step="free some space and run the same command again: finished work is kept",
    )  # fmt: skip


def _describe(exc: BaseException) -> str:
    text = " ".join(str(exc).split())
    if isinstance(exc, OSError) and exc.strerror:
        return f"{exc.strerror}: {exc.filename}" if exc.filename else exc.strerror
    name = type(exc).__name__
    return f"{name}: {text[:300]}" if text else name
