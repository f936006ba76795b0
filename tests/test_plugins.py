"""Plug-ins: third parties' are seen, listing imports nothing, each fault has its own message."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envsynth import plugins
from envsynth.errors import ConfigError

MODULES = {
    "good": "__all__ = ['Good', 'VERSION']\nVERSION = 1\nclass Good: name = 'good'\nclass Hidden: ...\n",
    "none": "__all__ = ['VERSION']\nVERSION = 1\n",
    "two": "__all__ = ['A', 'B']\nclass A: ...\nclass B: ...\n",
    "broken": "import no_such_module_at_all\n",
    "absent": "__all__ = ['Missing']\n",
}


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution with exporters of every quality."""
    for name, text in MODULES.items():
        (tmp_path / f"acme_{name}.py").write_text(text)
    info = tmp_path / "acme-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.2\n")
    entries = "".join(f"acme-{name} = acme_{name}\n" for name in MODULES)
    (info / "entry_points.txt").write_text(f"[envsynth.exporters]\n{entries}")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins._registry.cache_clear()
    yield tmp_path
    plugins._registry.cache_clear()
    for name in MODULES:
        sys.modules.pop(f"acme_{name}", None)


def test_third_parties_are_listed_without_import(third_party):
    assert {"acme-good", "gymnasium"} <= set(plugins.names("exporters"))
    listed = {plugin.name: plugin for plugin in plugins.listing("exporters")}
    assert listed["acme-good"].distribution == "acme 1.2"
    assert listed["acme-broken"].module == "acme_broken"
    assert not [name for name in sys.modules if name.startswith("acme_")]


def test_a_good_one_loads(third_party):
    assert plugins.load("exporters", "acme-good").name == "good"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme-none", r"acme_none, from acme 1\.2.*exports no class in __all__.*exactly one"),
        ("acme-absent", "exports no class"),
        ("acme-two", r"exports 2 classes .*found: A, B"),
        ("acme-broken", r"cannot be imported.*import acme_broken.*No module named 'no_such_module_at_all'"),
        ("acme-goood", r"no exporter named 'acme-goood' \(did you mean acme-good\?\)"),
        ("xyzzy", r"no exporter named 'xyzzy' \(known: "),
    ],
)
def test_each_fault_has_its_own_message(third_party, name, message):
    with pytest.raises(ConfigError, match=message) as caught:
        plugins.load("exporters", name)
    assert "\n" not in str(caught.value)


def test_two_that_claim_one_name(third_party):
    info = third_party / "rival-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[envsynth.exporters]\nacme-good = rival_good\n")
    plugins._registry.cache_clear()
    with pytest.raises(ConfigError, match=r"two plug-ins of group exporters are named 'acme-good'"):
        plugins.names("exporters")


def test_no_such_group():
    with pytest.raises(ConfigError, match="no plug-in group 'trainers'"):
        plugins.names("trainers")  # type: ignore[arg-type]
