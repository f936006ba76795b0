"""What the models of one build were asked and cost: what its ledger holds at the end and did not at the beginning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envsynth.llm.ledger import Ledger, Spend
from envsynth.llm.settings import ROLES, LlmSettings
from envsynth.models import ModelUse

__all__ = ["Account"]

_Key = tuple[str, str, str]


class Account:
    """Opened when a build begins.

    Args:
        llm: the build's models.
        ledger: where their calls are entered; need not be there yet.
    """

    def __init__(self, llm: LlmSettings, ledger: Path) -> None:
        self._llm = llm
        self._ledger = ledger
        self._before = self._rows()

    def uses(self, cached: Mapping[str, int]) -> tuple[ModelUse, ...]:
        """What each role was asked so far; roles that were asked nothing are left out.

        Args:
            cached: answers that came from the cache, by role.
        """
        after = self._rows()
        found = []
        for role in ROLES:
            settings = self._llm.role(role)
            if settings is None:
                continue
            key = (role, settings.model, settings.base_url)
            old, new = self._before.get(key, Spend()), after.get(key, Spend())
            use = ModelUse(
                role=role, model=settings.model, endpoint=settings.base_url, calls=new.settled - old.settled,
                cached=cached.get(role, 0), released=new.released - old.released,
                uncertain=max(0, new.uncertain - old.uncertain), prompt_tokens=new.prompt_tokens - old.prompt_tokens,
                completion_tokens=new.completion_tokens - old.completion_tokens,
                cost_usd=None if settings.prices is None else _more(new.settled_usd, old.settled_usd),
                uncertain_usd=_more(new.uncertain_usd, old.uncertain_usd),
            )  # fmt: skip
            if use.calls or use.cached or use.released or use.uncertain:
                found.append(use)
        return tuple(found)

    def _rows(self) -> Mapping[_Key, Spend]:
        """What the ledger holds; nothing is made where no model was ever asked."""
        if not any(self._llm.role(role) for role in ROLES) or not self._ledger.exists():
            return {}
        return {(row.role, row.model, row.endpoint): row for row in Ledger(self._ledger).rows()}


def _more(new: float, old: float) -> float:
    """US dollars more, to the picodollar that the ledger reckons in."""
    return max(0.0, round(new - old, 12))
