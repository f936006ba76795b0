from __future__ import annotations

import pickle
import subprocess

import pytest

from envsynth import errors
from envsynth.errors import EnvsynthError, SandboxError, boundary


def all_errors() -> list[type[EnvsynthError]]:
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EnvsynthError)]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_is_one_line_survives_pickling_and_is_drawn(kind: type[EnvsynthError]) -> None:
    error = kind("it broke", where="here", cause="two\nlines", next_step="mend it", retryable=True)
    assert str(error) == "here: it broke (two lines). Next: mend it"
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.retryable) == (kind, str(error), True)
    assert kind.__name__ in (errors.__doc__ or "")
    assert kind.exit_code in (2, 3)


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_an_error_raised_anew_around_itself_says_the_same(kind: type[EnvsynthError]) -> None:
    error = kind("it broke", where="here", cause="why", next_step="mend it", retryable=True)
    again = kind(error)
    assert (str(again), again.retryable, again.args) == (str(error), True, error.args)
    assert str(pickle.loads(pickle.dumps(again))) == str(error)
    assert str(kind(error, where="there")).startswith("there: it broke")
    assert str(kind(ValueError("foreign"))) == "foreign"


@pytest.mark.parametrize("foreign", [
    ValueError("no"), RuntimeError(), KeyError("key"), OSError(5, "I/O error"), subprocess.TimeoutExpired("git", 3),
    RecursionError("deep"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
])  # fmt: skip
def test_the_boundary_maps_every_foreign_error(foreign: Exception) -> None:
    with pytest.raises(SandboxError) as caught, boundary(SandboxError, "it broke", where="here"):
        raise foreign
    assert str(caught.value).startswith("here: it broke (")
    assert caught.value.__cause__ is foreign


def test_the_boundary_lets_our_own_errors_and_ctrl_c_pass() -> None:
    with pytest.raises(errors.CatalogLocked), boundary(SandboxError, "it broke"):
        raise errors.CatalogLocked("held")
    with pytest.raises(KeyboardInterrupt), boundary(SandboxError, "it broke"):
        raise KeyboardInterrupt
