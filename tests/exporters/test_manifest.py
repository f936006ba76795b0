"""The manifest of a pack: one digest of all, what was selected, whose work it is; a folder checked by it."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_task as tiny
import tiny_worlds as worlds

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.cli.export import _selection
from envsynth.errors import ExportError
from envsynth.exporters._attributions import attributions, public_source, spdx, told
from envsynth.exporters._folder import manifest_bytes, pack_digest, read_manifest
from envsynth.exporters._manifest import Selection, record_selection, verified_pack
from envsynth.exporters.gymnasium import Gymnasium
from envsynth.exporters.parquet import Parquet
from envsynth.exporters.replay import replay, verified_package
from envsynth.models import Task


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("worlds"))


@pytest.fixture
def pack(store: Cache, tmp_path: Path) -> Path:
    return Gymnasium().export([worlds.make_world_task(store, worlds.TASKS[0])], store, tmp_path / "desk-tasks", {})


def from_source(task: Task, source: str, **more: Any) -> Task:
    candidate = task.candidate
    lead = candidate.provenance.lead.model_copy(update={"source": source})
    provenance = candidate.provenance.model_copy(update={"lead": lead, **more})
    return task.model_copy(update={"candidate": candidate.model_copy(update={"provenance": provenance})})


# --- one digest of all ------------------------------------------------------------------------------------------


def test_the_digest_is_of_every_file_and_of_all_else_that_the_manifest_says(pack: Path) -> None:
    manifest = read_manifest(pack)
    assert verified_pack(pack) == ("desk_tasks", manifest["digest"])
    for field in manifest.keys() - {"digest"}:
        assert pack_digest({**manifest, field: "another"}) != manifest["digest"], field
    files = manifest["files"]
    assert isinstance(files, dict)
    assert pack_digest({**manifest, "files": {**files, "README.md": "0" * 64}}) != manifest["digest"]
    assert {path.relative_to(pack).as_posix() for path in pack.rglob("*") if path.is_file()} == {
        "manifest.json", *files,
    }  # fmt: skip


@pytest.mark.parametrize("forged", ["name", "version", "tasks", "tiers", "licences"])
def test_a_manifest_that_was_changed_is_not_believed(pack: Path, forged: str) -> None:
    manifest = pack / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), forged: "another"}))
    with pytest.raises(ExportError, match="digest that it states"):
        verified_package(pack)


@pytest.mark.parametrize("digest", [None, 7])
def test_a_pack_without_a_digest_is_none(pack: Path, digest: object) -> None:
    manifest = pack / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "digest": digest}))
    with pytest.raises(ExportError, match="this is no pack"):
        verified_package(pack)


@pytest.mark.parametrize(
    ("forged", "told"),
    [
        ({"package": "os"}, "this is no pack"),
        ({"files": {"/etc/hostname": "0" * 64}}, "this is no pack"),
        ({"files": {"../elsewhere": "0" * 64}}, "this is no pack"),
        ({"more": float("nan")}, "damaged"),
    ],
)
def test_a_manifest_that_leads_elsewhere_is_no_packs(pack: Path, forged: dict[str, object], told: str) -> None:
    document = {**read_manifest(pack), **forged}
    if "more" not in forged:
        document["digest"] = pack_digest(document)
    (pack / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(ExportError, match=told):
        verified_package(pack)


def test_a_manifest_deeper_than_any_is_no_packs(pack: Path) -> None:
    (pack / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ExportError, match="this is no pack"):
        verified_package(pack)


def test_tables_have_a_digest_and_no_player(store: Cache, tmp_path: Path) -> None:
    pack = Parquet().export([worlds.make_world_task(store, worlds.TASKS[0])], store, tmp_path / "desk", {})
    assert verified_pack(pack) == ("", read_manifest(pack)["digest"])
    with pytest.raises(ExportError, match="no pack that can be played"):
        verified_package(pack)


# --- what is in the folder and not in the manifest --------------------------------------------------------------


def _file(path: str) -> Callable[[Path], object]:
    def plant(pack: Path) -> None:
        (pack / path).parent.mkdir(parents=True, exist_ok=True)
        (pack / path).write_text("raise SystemExit('planted')\n")

    return plant


def _link(path: str) -> Callable[[Path], object]:
    def plant(pack: Path) -> None:
        elsewhere = pack.parent / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "__init__.py").write_text("")
        (pack / path).symlink_to(elsewhere)

    return plant


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        (_file("desk_tasks/json.py"), "desk_tasks/json.py"),
        (_file("desk_tasks/through/__init__.py"), "desk_tasks/through/__init__.py"),
        (_file("desk_tasks/_envsynth/runtime/later.pyc"), "desk_tasks/_envsynth/runtime/later.pyc"),
        (_file("desk_tasks/hidden/more.txt"), "desk_tasks/hidden/more.txt"),
        (_file("desk_tasks/__pycache__/x.py"), "desk_tasks/__pycache__/x.py"),
        (_file("sqlite3.py"), r"sqlite3\.py"),
        (_file("sitecustomize.py"), r"sitecustomize\.py"),
        (_file("json/__init__.py"), "json/__init__.py"),
        (_file("plug.dist-info/entry_points.txt"), r"plug\.dist-info"),
        (_file("Plug.EGG-INFO/entry_points.txt"), r"Plug\.EGG-INFO"),
        (_link("json"), "json/__init__.py"),
        (_link("desk_tasks/extra"), "desk_tasks/extra"),
    ],
)
def test_what_would_be_imported_and_is_not_in_the_manifest_is_named(
    pack: Path, plant: Callable[[Path], object], named: str
) -> None:
    plant(pack)
    with pytest.raises(ExportError, match=f"{named} is not in the manifest"):
        replay(pack)


def test_what_playing_leaves_behind_is_no_harm(pack: Path) -> None:
    for path in ("logs/run.txt", "uv.lock", "desk_tasks/__pycache__/env.cpython-311.pyc", ".venv/lib/x.py"):
        (pack / path).parent.mkdir(parents=True, exist_ok=True)
        (pack / path).write_text("x")
    assert verified_package(pack) == "desk_tasks"


def test_a_planted_compiled_file_is_not_run(pack: Path) -> None:
    source, marker = pack / "desk_tasks/pack.py", pack.parent / "marker"
    honest = source.read_text()
    planted = pack.parent / "planted.py"
    planted.write_text(f"open({str(marker)!r}, 'w').close()\n{honest}")
    compiled = Path(importlib.util.cache_from_source(str(source)))
    compiled.parent.mkdir()
    # As if it had been compiled from the honest source, whatever time that has.
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(planted), cfile=str(compiled), dfile=str(source), invalidation_mode=unchecked)
    before = compiled.read_bytes()
    report = replay(pack)
    assert (report.exit_code, {line.verdict for line in report.lines}) == (0, {"same"})
    assert not marker.exists()
    assert (list(compiled.parent.iterdir()), compiled.read_bytes()) == ([compiled], before)


@pytest.mark.parametrize("format_", ["openenv", "reasoning-gym", "skyrl-gym", "trl", "verifiers"])
def test_a_pack_is_played_where_its_trainer_is_not_installed(format_: str, store: Cache, tmp_path: Path) -> None:
    task = worlds.make_world_task(store, worlds.TASKS[0])
    pack = plugins.load("exporters", format_)().export([task], store, tmp_path / "desk-tasks", {})
    report = replay(pack)
    assert (report.exit_code, report.trouble) == (0, "")
    assert len(report.lines) == len(task.panel)


def test_a_replay_tells_the_digest_of_what_was_played(pack: Path) -> None:
    assert replay(pack).digest == read_manifest(pack)["digest"]


# --- what was selected ------------------------------------------------------------------------------------------


def test_the_selection_is_recorded_and_signed(pack: Path) -> None:
    before = read_manifest(pack)
    digest = record_selection(pack, Selection("source LIKE '%desk%'"))
    manifest = read_manifest(pack)
    assert manifest["selection"] == {"where": "source LIKE '%desk%'"}
    assert digest == manifest["digest"] != before["digest"]
    assert {**before, "selection": 0, "digest": 0} == {**manifest, "selection": 0, "digest": 0}
    assert verified_pack(pack).digest == digest
    assert record_selection(pack.parent / "nowhere", Selection("")) == ""


def test_splits_are_recorded_the_same_in_whatever_order_they_were_named() -> None:
    one = _selection("train", "", {"train": " a ", "test": "b", "eval": "c"}, "skin,company")
    two = _selection("train", "", {"eval": "c", "train": "a", "test": "b"}, "company, skin")
    assert manifest_bytes(one.document()) == manifest_bytes(two.document())
    assert one.document() == {
        "where": "a", "split": "train", "apart_from": {"eval": "c", "test": "b"}, "allow_shared": ["company", "skin"],
    }  # fmt: skip
    assert _selection("", "tier = 'verified'", {}, "").document() == {"where": "tier = 'verified'"}


@pytest.mark.parametrize(
    "place", ["/home/kim/src/shop", "file:///home/kim/src/shop", "~/src/shop/", "../kim/shop", "./kim/shop"]
)
def test_no_place_of_the_machine_is_in_a_selection(place: str) -> None:
    where = f"source = '{place}' OR name LIKE '%/%' OR ref = ''"
    assert Selection(where).document() == {"where": "source = 'local:shop' OR name LIKE '%/%' OR ref = ''"}


# --- whose work it is -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "public"),
    [
        ("/home/kim/src/shop", "local:shop"),
        ("../kim/shop", "local:shop"),
        ("~/src/shop.bundle", "local:shop"),
        ("file:///home/kim/shop", "local:shop"),
        ("https://kim@host.example/owner/shop", "https://host.example/owner/shop"),
        ("ssh://kim@host.example:22/owner/shop", "ssh://host.example:22/owner/shop"),
        ("kim@host.example:owner/shop", "host.example:owner/shop"),
        ("git@host.example:owner/shop", "git@host.example:owner/shop"),
        ("https://host.example/owner/shop", "https://host.example/owner/shop"),
        ("pypi:shop==1.0", "pypi:shop==1.0"),
        ("scenario:retail/returns", "scenario:retail/returns"),
    ],
)
def test_sources_are_told_without_folders_and_logins(cache: Cache, source: str, public: str) -> None:
    task = from_source(tiny.make_task(cache), source)
    assert public_source(task.candidate.provenance.lead) == public
    shown = told(task)
    assert (shown.id, shown.candidate.provenance.lead.source) == (task.id, public)
    assert shown.to_json() == task.to_json().replace(json.dumps(source), json.dumps(public))


HELD = [(target, kind) for target in plugins.names("exporters") for kind in plugins.load("exporters", target).kinds]


@pytest.mark.parametrize(("target", "kind"), HELD)
def test_no_pack_tells_where_it_was_built(target: str, kind: str, cache: Cache, tmp_path: Path) -> None:
    made = tiny.make_task(cache) if kind == "workspace" else worlds.make_world_task(cache, worlds.TASKS[0])
    task = from_source(made, "/home/kim/secret-folder/shop")
    pack = plugins.load("exporters", target)().export([task], cache, tmp_path / "out" / "shop-tasks", {})
    for path in sorted(pack.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            assert b"secret-folder" not in content, path
            assert os.fsencode(tmp_path) not in content, path
    assert [line["id"] for line in read_manifest(pack)["tasks"]] == [task.id]  # type: ignore[attr-defined]
    verified_pack(pack)


def test_sources_commits_packages_and_models_are_told(cache: Cache, store: Cache) -> None:
    one = tiny.make_task(cache)
    recipe = one.candidate.workspace.recipe.model_copy(update={"requirements": ("pytest==8.0.0", "attrs==23.1.0")})
    environment = one.candidate.workspace.model_copy(update={"recipe": recipe})
    one = one.model_copy(update={"candidate": one.candidate.model_copy(update={"environment": environment})})
    one = from_source(one, "https://example.org/shop", base_commit="b" * 40, reference_commit="a" * 40, author="m-1")
    two = worlds.make_world_task(store, worlds.TASKS[0])
    assert attributions([two, one]) == attributions([one, two]) == {
        "sources": [
            {"source": "https://example.org/shop", "generator": "repository", "tasks": 1,
             "commits": ["a" * 40, "b" * 40]},
            {"source": f"mechanism:{worlds.TASKS[0]}", "generator": "mechanism", "tasks": 1, "commits": []},
        ],
        "packages": ["attrs==23.1.0", "pytest==8.0.0"],
        "models": {"m-1": 1},
    }  # fmt: skip


BSD = (
    "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided that:\n"
    "1. Redistributions of source code must retain the above copyright notice.\n"
)
MIT = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this\nsoftware ... "
    "The above copyright notice and this permission notice shall be included."
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Apache License\n   Version 2.0, January 2004", "Apache-2.0"),
        (MIT, "MIT"),
        (MIT.replace("The above", "").replace("copyright notice and", ""), "MIT-0"),
        (BSD, "BSD-2-Clause"),
        (f"{BSD}3. Neither the name may\nbe used to endorse or promote products", "BSD-3-Clause"),
        ("GNU GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007", "GPL-3.0"),
        ("GNU LESSER GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007", "LGPL-3.0"),
        (f"{MIT}\n---\n{BSD}", ""),
        ("Do as you like.", ""),
        ("", ""),
    ],
)
def test_licences_are_known_by_their_texts(text: str, name: str) -> None:
    assert spdx(f"Copyright (c) 2020 Kim\n\n{text}\n".encode()) == name


def test_the_manifest_says_which_licence_a_text_is(cache: Cache, tmp_path: Path) -> None:
    task = tiny.make_task(cache, start={**tiny.START, "LICENSE": MIT})
    (line,) = read_manifest(Gymnasium().export([task], cache, tmp_path / "shop-tasks", {}))["licences"]  # type: ignore[misc]
    assert (line["source"], line["spdx"]) == ("https://example.org/shop", "MIT")
