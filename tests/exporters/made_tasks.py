"""Tasks that the project's own generators make: one of each industry, one of each family of mechanisms."""

from __future__ import annotations

from itertools import islice
from types import SimpleNamespace
from typing import Any

from envsynth.models import Candidate, Origin, Source, SourceKind, SourceOptions, Task, Tier
from envsynth.protocols import BlobStore


def made_tasks(blobs: BlobStore) -> list[Task]:
    """One of each industry and family, with the panels that they claim."""
    from envsynth.generators.business import Business
    from envsynth.generators.business.load import library
    from envsynth.generators.mechanism import Mechanism
    from envsynth.generators.mechanism.registry import family_names

    wanted = [(Business(), SourceKind.SCENARIO, name) for name in sorted(library().industries)]
    wanted += [(Mechanism(), SourceKind.MECHANISM, name) for name in family_names()]
    return [_first(generator, kind, name, blobs) for generator, kind, name in wanted]


def _first(generator: Any, kind: SourceKind, name: str, blobs: BlobStore) -> Task:
    source = Source(
        uri=f"{kind.value}:{name}", kind=kind, location=name, options=SourceOptions(seed=11),
        origin=Origin(file="list", line=1),
    )  # fmt: skip
    context: Any = SimpleNamespace(
        blobs=blobs, model=lambda role: None, remember=lambda kind, key, make: make(), settings=None
    )
    developed = (generator.develop(lead, source, context) for lead in islice(generator.plan(source, context), 20))
    candidate = next(one for one in developed if isinstance(one, Candidate))
    return Task(candidate=candidate, tests=None, panel=candidate.panel, tier=Tier.VERIFIED, verdicts=())
