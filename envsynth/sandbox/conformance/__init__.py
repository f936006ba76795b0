"""What any sandbox backend must do, as tests: subclass `SandboxConformance`, give it a backend, run pytest.

    class TestMine(SandboxConformance):
        def make_backend(self) -> Backend:
            return MyBackend()

Isolation is asked only of backends that claim it (`Backend.isolates`), and a page cache that no call empties or
tells of those whose attribute `filters_calls` is true. This package needs pytest and is not part of packs.
"""

from __future__ import annotations

from ._changes import ChangeConformance
from ._commands import CommandConformance, LimitConformance
from ._isolation import IsolationConformance
from ._layers import LayerConformance
from ._state import FileConformance, StateConformance

__all__ = ["SandboxConformance"]


class SandboxConformance(
    CommandConformance,
    LimitConformance,
    IsolationConformance,
    LayerConformance,
    FileConformance,
    ChangeConformance,
    StateConformance,
):
    """Subclass it and override `make_backend`."""
