"""Tasks that are nearly the same under other names: what an adversary would put into train and eval."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.catalog.reports import Shared
from envsynth.errors import ExportError
from envsynth.generators.business import Business
from envsynth.generators.mechanism.contract import Presentation
from envsynth.generators.mechanism.draw import draw, find, show
from envsynth.generators.mechanism.dress import skins_of
from envsynth.generators.mechanism.registry import family, family_names
from envsynth.kinship import LIKE, address, kin_of, numbers, shared
from envsynth.models import (
    Candidate,
    FileMode,
    Lead,
    Origin,
    Outcome,
    Provenance,
    Reference,
    Source,
    SourceKind,
    SourceOptions,
    Task,
    Tier,
    Tree,
    TreeEntry,
    Verifier,
    WorldRef,
)
from envsynth.splits import split_ids

Change = Callable[[Outcome], Outcome]


def found(blobs: Cache, ones: Iterable[Task], twos: Iterable[Task]) -> list[Shared]:
    return list(shared(kin_of(ones, blobs), kin_of(twos, blobs)))


# --- repositories -----------------------------------------------------------------------------------------------

SPELLINGS = (
    "https://host.example/owner/shop", "https://host.example/owner/shop.git", "http://host.example/owner/shop/",
    "https://www.Host.example/Owner/Shop", "https://kim@host.example:8443/owner/shop",
    "git@host.example:owner/shop.git", "ssh://git@host.example:22/owner/shop", "host.example:owner/shop",
    "https://host.example//owner/./shop",
    "https://host.example/owner/sh%6Fp", "https://host.example/owner/shop@v1.2",
)  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_one_repository_has_one_address_however_it_is_spelt(spelling: str) -> None:
    assert address(spelling) == "host.example/owner/shop"


def test_other_repositories_have_other_addresses() -> None:
    others = (
        SPELLINGS[0], "https://host.example/owner/shop2", "https://other.example/owner/shop", "/srv/owner/shop",
        "https://host.example/fork/shop", "pypi:shop==1.0", "../owner/shop",
    )  # fmt: skip
    assert len({address(one) for one in others}) == len(others)
    assert address("pypi:shop==1.0") == address("pypi:shop==2.0")
    assert address("file:///srv/owner/shop.git") == address("/srv/owner/shop/.git") == address("/srv/owner/shop.bundle")


def code(number: int) -> bytes:
    return "".join(f"def step_{number}_{line}(x):\n    return x * {line} + {number}\n" for line in range(9)).encode()


def tree(blobs: Cache, numbers: Iterable[int], folder: str = "src", licence: bytes = b"") -> str:
    files = {f"{folder}/m{number}.py": licence + code(number) for number in numbers} | {
        "LICENSE": b"as you like\n" * 40
    }
    entries = (
        TreeEntry(path=path, mode=FileMode.FILE, blob=blobs.put(content), size=len(content))
        for path, content in files.items()
    )
    return blobs.put_tree(Tree(entries=tuple(entries)))


def of_repository(maker: Any, index: int, source: str, files: Iterable[int], **changed: Any) -> Task:
    """A task of a repository with these files, whose commits and reference are its own."""
    outcome: Outcome = maker.outcome(index, source=source)
    assert outcome.task is not None
    candidate = outcome.task.candidate
    roles = ({"pattern": r"\.py$", "role": "source"},)
    environment = candidate.workspace.model_validate(
        candidate.workspace.document()
        | {"tree": tree(maker.blobs, files, changed.pop("folder", "src"), changed.pop("licence", b"")), "roles": roles}
    )
    provenance = candidate.provenance.model_copy(update={
        "base_commit": changed.pop("base_commit", f"{index:03d}a" * 10), "reference_commit": f"{index:03d}b" * 10,
        "lead": candidate.provenance.lead.model_copy(update={"name": changed.pop("name", f"r{index}")}),
    })  # fmt: skip
    reference = changed.pop("reference", None) or Reference(
        changes=tree(maker.blobs, [1000 + index]), patch=maker.blobs.put(f"+{index}".encode())
    )
    assert not changed
    update = {"environment": environment, "provenance": provenance, "reference": reference}
    return outcome.task.model_copy(update={"candidate": candidate.model_copy(update=update)})


MINE, FORK = "https://host.example/owner/shop", "https://host.example/someone/bazaar"


@pytest.mark.parametrize(
    ("source", "files", "more", "why"),
    [
        ("git@host.example:owner/shop.git", range(50, 60), {}, "another spelling"),
        (FORK, range(10), {}, "10 same files"),
        (FORK, range(10), {"folder": "lib"}, "10 same files"),
        (FORK, range(10), {"licence": b"# Copyright Bazaar Ltd.\r\n\r\n"}, "10 same files"),
        (FORK, [0, 1, 2, *range(50, 57)], {}, "3 same files"),
        ("/srv/mirror/shop", range(10), {}, "10 same files"),
        ("pypi:shop==2.0", range(5, 15), {}, "5 same files"),
        (FORK, range(50, 60), {"base_commit": "001b" * 10}, "same commits"),
        (FORK, [0, 1, 2, *range(50, 90)], {"name": "r1"}, "3 same files"),
    ],
)
def test_one_repository_under_another_address_is_known(
    maker: Any, source: str, files: Iterable[int], more: dict[str, Any], why: str
) -> None:
    one = of_repository(maker, 1, MINE, range(10) if "name" not in more else range(43))
    two = of_repository(maker, 2, source, files, **more)
    (leak,) = found(maker.blobs, [one], [two])
    assert (leak.trait, leak.task, leak.other) == ("repository", one.id, two.id)
    assert leak.value.endswith(f"({why})")
    assert found(maker.blobs, [two], [one])[0].trait == "repository"


@pytest.mark.parametrize("files", [range(50, 60), [0, *range(50, 59)], [0, 1, 2, *range(50, 90)]])
def test_repositories_with_little_in_common_are_two(maker: Any, files: Iterable[int]) -> None:
    one, two = of_repository(maker, 1, MINE, range(40)), of_repository(maker, 2, FORK, files)
    assert found(maker.blobs, [one], [two]) == []


def test_a_solution_under_another_id_is_known(maker: Any) -> None:
    one = of_repository(maker, 1, MINE, range(10))
    two = of_repository(maker, 2, FORK, range(50, 60), reference=one.candidate.solution)
    assert found(maker.blobs, [one], [two])[0] == Shared("near-duplicate", "same reference", one.id, two.id)
    nothing = Reference(changes=maker.blobs.put_tree(Tree()), removed=("a.py",), patch=maker.blobs.put(b"-a"))
    less = nothing.model_copy(update={"removed": ("b.py",), "patch": maker.blobs.put(b"-b")})
    three = of_repository(maker, 3, MINE, range(10), reference=nothing)
    four = of_repository(maker, 4, FORK, range(50, 60), reference=less)
    assert found(maker.blobs, [three], [four]) == []


# --- worlds -----------------------------------------------------------------------------------------------------


def of_world(blobs: Cache, world: Any, generator: str, label: str, **metadata: Any) -> Task:
    """A task in a world, whose name is in its id."""
    lead = Lead(
        generator=generator, generator_version="1", source=f"{generator}:x", name=label, revision="1", strategy="s",
        ref=label, index=0, group=metadata.pop("group", ""),
    )  # fmt: skip
    document = world if isinstance(world, dict) else json.loads(world.to_json())
    candidate = Candidate(
        instruction="Do it.", environment=WorldRef(world=blobs.put(json.dumps(document).encode())),
        verifier=Verifier(checks=({"id": "c", "sql": "SELECT 1"},)), provenance=Provenance(lead=lead),
        metadata=metadata,
    )  # fmt: skip
    return Task(candidate=candidate, tests=None, panel=(), tier=Tier.VERIFIED, verdicts=())


@cache
def drawn(name: str, seed: str, skin: int) -> Any:
    """A draw of a family in one of its skins: the same seed gives the same draw in each."""
    kind, skins = family(name), list(skins_of(name).values())
    number = find(kind, skins[0], 2, seed)
    return show(draw(kind, skins[skin], 2, seed, number), Presentation.HIDDEN).world


@pytest.mark.slow
@pytest.mark.parametrize("name", family_names())
def test_a_draw_in_another_skin_under_another_familys_name_is_known(maker: Any, name: str) -> None:
    one = of_world(maker.blobs, drawn(name, "a", 0), "mechanism", "one", family=name, skin="s", mechanism="m1")
    two = of_world(maker.blobs, drawn(name, "a", 1), "mechanism", "two", family="new", skin="t", mechanism="m2")
    (leak,) = found(maker.blobs, [one], [two])
    assert (leak.trait, leak.task, leak.other) == ("mechanism", one.id, two.id)
    other = of_world(maker.blobs, drawn(name, "b", 1), "mechanism", "other", family=name, skin="t", mechanism="m3")
    assert found(maker.blobs, [one], [other]) == []


def test_a_skin_under_another_name_is_known(maker: Any) -> None:
    one = of_world(maker.blobs, drawn("bandit", "a", 0), "mechanism", "one", family="bandit", skin="s", mechanism="m1")
    two = of_world(maker.blobs, drawn("bandit", "b", 0), "mechanism", "two", family="bandit", skin="t", mechanism="m2")
    assert [(leak.trait, leak.value) for leak in found(maker.blobs, [one], [two])] == [
        ("skin", "bandit s = bandit t (same names)")
    ]


def business(location: str, seed: int, blobs: Cache) -> Task:
    """The first task that the project's own generator makes of a company in Great Britain."""
    source = Source(
        uri=f"scenario:{location}", kind=SourceKind.SCENARIO, location=location, options=SourceOptions(seed=seed),
        extra=(("countries", "gb"), ("levels", "1")), origin=Origin(file="list", line=1),
    )  # fmt: skip
    context: Any = SimpleNamespace(blobs=blobs, model=lambda role: None)
    developed = (Business().develop(lead, source, context) for lead in islice(Business().plan(source, context), 9))  # type: ignore[type-var]
    candidate = next(one for one in developed if isinstance(one, Candidate))
    return Task(candidate=candidate, tests=None, panel=(), tier=Tier.VERIFIED, verdicts=())


@pytest.mark.slow
def test_a_company_is_one_under_any_scenario_and_another_seed_makes_another(maker: Any) -> None:
    one, two = business("retail", 0, maker.blobs), business("retail/returns", 0, maker.blobs)
    assert one.candidate.world == two.candidate.world
    assert found(maker.blobs, [one], [two]) == []  # equal names are the catalog's
    renamed = _labelled(two, "someone-elses")
    assert [leak.trait for leak in found(maker.blobs, [one], [renamed])] == ["company"]
    assert found(maker.blobs, [one], [business("retail", 1, maker.blobs)]) == []


def _labelled(task: Task, name: str) -> Task:
    lead = task.candidate.provenance.lead.model_copy(update={"name": name, "seed": 77})
    provenance = task.candidate.provenance.model_copy(update={"lead": lead})
    return task.model_copy(update={"candidate": task.candidate.model_copy(update={"provenance": provenance})})


# --- numbers ----------------------------------------------------------------------------------------------------

DRAWN = Random(1)
ROWS = {
    "orders": [[number, f"order {number}", f"2025-01-{DRAWN.randrange(1, 29):02d}", DRAWN.randrange(90), None]
               for number in range(30)],
    "lines": [[DRAWN.randrange(5), DRAWN.random()] for _ in range(20)],
}  # fmt: skip


def test_names_texts_orders_of_columns_and_money_do_not_count() -> None:
    renamed = {
        "zamówienia": [[f"nr {a}", d * 3, c, a, None] for a, _, c, d, _ in ROWS["orders"]],
        "pozycje": [[b * 0.25, a] for a, b in ROWS["lines"]],
    }
    assert numbers(renamed) == numbers(ROWS)
    assert numbers(ROWS).total() == 30 + 30 + 20 + 20


def test_what_every_world_has_does_not_count() -> None:
    assert numbers({"t": [[n, 7, "x", None, 10 - 2 * n] for n in range(20)], "none": []}) == {}


def test_worlds_of_few_numbers_are_not_compared(maker: Any) -> None:
    world = {"rows": {"t": [[1], [5], [2]]}, "tables": [], "tools": []}
    ones = [of_world(maker.blobs, world | {"id": name}, "other", name) for name in ("a", "b")]
    assert found(maker.blobs, ones[:1], ones[1:]) == []
    large = {"rows": {"t": [[value * value % 11] for value in range(20)]}, "tables": [], "tools": []}
    ones = [of_world(maker.blobs, large | {"id": name}, "other", name) for name in ("a", "b")]
    assert [leak.trait for leak in found(maker.blobs, ones[:1], ones[1:])] == ["world"]


@pytest.mark.parametrize("seed", range(20))
def test_no_like_pair_is_missed_for_the_sake_of_speed(maker: Any, seed: int) -> None:
    """Against a comparison of all pairs."""
    rng = Random(seed)
    columns = [[rng.randrange(100) for _ in range(10)] for _ in range(30)]

    def worlds(prefix: str) -> list[Task]:
        made = []
        for number in range(12):
            begin = rng.choice([0, 0, 4, 15])
            rows = {str(place): [[value] for value in columns[begin + place]] for place in range(11 + rng.randrange(3))}
            # Its own and rarest columns are too few to tell it from others.
            rows |= {f"own-{place}": [[rng.random()] for _ in range(3)] for place in range(1 + rng.randrange(4))}
            document = {"id": f"{prefix}{number}", "rows": rows, "tables": [], "tools": []}
            made.append(of_world(maker.blobs, document, "other", f"{prefix}{number}"))
        return made

    ones, twos = worlds("a"), worlds("b")
    counted = {
        task.id: numbers(json.loads(maker.blobs.get(task.candidate.world.world))["rows"]) for task in ones + twos
    }
    every = {
        (one.id, two.id) for one in ones for two in twos
        if (counted[one.id] & counted[two.id]).total() >= LIKE * min(counted[one.id].total(), counted[two.id].total())
    }  # fmt: skip
    assert 0 < len(every) < len(ones) * len(twos)
    assert {(leak.task, leak.other) for leak in found(maker.blobs, ones, twos)} == every


# --- through the catalog ----------------------------------------------------------------------------------------


def test_splits_of_a_catalog_are_compared_by_contents_too(maker: Any, tmp_path: Path) -> None:
    outcomes = []
    for index, source in ((1, MINE), (2, "git@host.example:owner/shop")):
        task = of_repository(maker, index, source, range(index * 20, index * 20 + 9))
        lead = task.candidate.provenance.lead
        outcomes.append(Outcome(
            lead=lead, ladder=maker.ladder, candidate=task.candidate, task=task,
            verdicts=maker.outcome(index).verdicts, cost=maker.outcome(index).cost,
        ))  # fmt: skip
    with Catalog.open(tmp_path / "c.duckdb") as catalog:
        catalog.record(catalog.begin_build({}), outcomes, maker.blobs)
        splits = {"train": f"source = '{MINE}'", "eval": f"source <> '{MINE}'"}
        with pytest.raises(ExportError, match=r"1 by repository .*another spelling"):
            split_ids(catalog, splits)
        assert split_ids(catalog, splits, ["repository"]).keys() == splits.keys()
