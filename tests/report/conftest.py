"""A catalog of a shop task, a mechanism and a hostile task, with attempts, and its report."""

from __future__ import annotations

import importlib.util
import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.config import load_config
from envsynth.llm import Ledger
from envsynth.llm.ledger import Ask, ledger_path
from envsynth.llm.messages import Usage
from envsynth.models import CriterionClass, Lead, Provenance
from envsynth.models.verifier import Criterion
from envsynth.report import write_report
from envsynth.rollout.runner import RolloutRequest
from envsynth.rollout.runner import rollout as run

TESTS = Path(__file__).parent.parent


def _load(path: Path) -> None:
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec
        assert spec.loader
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])


for place in ("worldkit.py", "validators/world_bench.py", "rolloutkit.py"):
    _load(TESTS / place)

import rolloutkit  # noqa: E402
import world_bench  # noqa: E402

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> & \u2028 <!-- "
RUBRIC = Criterion(
    id="looked", class_=CriterionClass.ESSENTIAL, text=f"It looked first {EVIL}",
    sql="SELECT EXISTS (SELECT 1 FROM trace WHERE tool = 'look')", evidence="SELECT * FROM trace",
)  # fmt: skip


def provenance(name: str) -> Provenance:
    return Provenance(
        lead=Lead(generator="mechanism", generator_version="1", source=f"mechanism:{name}", name=name, revision="r",
                  strategy="hidden", ref="0123456789ab", index=0)
    )  # fmt: skip


class Page(HTMLParser):
    """What a browser would make of the report, as far as tests ask."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.words: list[str] = []
        self._script: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._script = dict(attrs).get("id") or ""
            self.scripts[self._script] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is None:
            self.words.append(data)
        else:
            self.scripts[self._script] += data

    def task(self, name: str) -> dict[str, Any]:
        (found,) = [
            self.scripts[str(attributes["id"])]
            for tag, attributes in self.elements
            if tag == "script" and attributes.get("data-task") == name
        ]
        document: dict[str, Any] = json.loads(found)
        return document


class Made(NamedTuple):
    catalog: Path
    file: Path
    page: Page
    shop: str
    wheel: str
    evil: str
    text: str
    """What the task `evil` says."""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("report")
    cache = Cache(folder / "cache")
    verifier = world_bench.SHOP_VERIFIER.model_copy(update={"rubric": (RUBRIC,)})
    shop = rolloutkit.shop_task(cache, provenance=provenance("shop"))
    wheel = rolloutkit.wheel_task(cache, provenance=provenance("wheel"))
    note = ("note", {"body": EVIL})
    candidate = world_bench.candidate(
        cache, world_bench.worldkit.shop(), instruction=EVIL, hint=EVIL, verifier=verifier,
        provenance=provenance("evil"), panel=(*world_bench.SHOP_PANEL, world_bench.line("mutant:evil", 0, note)),
    )  # fmt: skip
    evil = rolloutkit.task_of(candidate, candidate.panel)
    path = rolloutkit.catalog_of(folder / "made.duckdb", cache, [shop, wheel, evil])
    run(
        load_config(catalog=path, jobs=1),
        RolloutRequest(policy="scripted", skill=0.6, names=(shop.id,), attempts=4),
        lambda event: None,
    )
    ledger = Ledger(ledger_path(path))
    ledger.settle(
        ledger.reserve(Ask("author", "some-model", "http://localhost", "r", 5_000_000_000)),
        Usage(prompt_tokens=1234, completion_tokens=56), 2_500_000_000,
    )  # fmt: skip
    written = write_report(path, folder / "out")
    with Catalog.open(path, read_only=True) as catalog:
        assert catalog.task_ids() == sorted([shop.id, wheel.id, evil.id])
    return Made(path, written.path, Page(written.path.read_text("utf-8")), shop.id, wheel.id, evil.id, EVIL)
