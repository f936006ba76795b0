"""Every skin of every family can be worn, and what is missing from one is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envsynth.generators.mechanism import skin_checks
from envsynth.generators.mechanism.dress import skins_of


@pytest.mark.slow
def test_our_own_skins_can_be_worn() -> None:
    assert list(skin_checks.skin_faults()) == []


def test_what_a_skin_lacks_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    name, skin = next(iter(skins_of("inventory").items()))
    neutral, *_ = skin.names
    names = {word: own for word, own in skin.names.items() if word != neutral}
    bald = replace(skin, names=names)
    few = replace(skin, name="few", labels=())
    monkeypatch.setattr(skin_checks, "family_names", lambda: ("inventory",))
    monkeypatch.setattr(skin_checks, "skins_of", lambda family: {name: bald, "few": few})
    faults = list(skin_checks.skin_faults())
    assert any(f"the skin {name} has no name for {neutral}" in fault for fault in faults)
    assert len(faults) == len(set(faults))
