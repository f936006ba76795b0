"""Catalogs that are locked, newer, damaged, out of space or were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import duckdb
import pytest

from envsynth.catalog import Catalog
from envsynth.errors import CatalogError, CatalogLocked, CatalogSchemaMismatch, ConfigError, EnvsynthError
from envsynth.models import OutcomeStatus


@pytest.fixture
def catalog_path(maker, tmp_path: Path) -> Path:
    path = tmp_path / "catalog.duckdb"
    with Catalog.open(path) as catalog:
        catalog.record(catalog.begin_build({}), [maker.outcome(1)], maker.blobs)
    return path


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("read_only", [True, False])
def test_locked_by_another_process_names_it(catalog_path, read_only):
    code = """
        import sys, pathlib
        from envsynth.catalog import Catalog
        with Catalog.open(pathlib.Path(sys.argv[1])):
            print("open", flush=True)
            sys.stdin.read()
    """
    with python(code, str(catalog_path)) as holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(CatalogLocked, match=rf"in use \(process {holder.pid} .*holds it\)\. Next: wait") as caught:
            Catalog.open(catalog_path, read_only=read_only)
        assert caught.value.retryable
        assert "\n" not in str(caught.value)
        holder.stdin.close()
    Catalog.open(catalog_path, read_only=read_only).close()


def test_two_readers_at_once(catalog_path):
    code = """
        import sys, pathlib
        from envsynth.catalog import Catalog
        with Catalog.open(pathlib.Path(sys.argv[1]), read_only=True) as catalog:
            print(len(catalog.tasks()))
    """
    with Catalog.open(catalog_path, read_only=True) as catalog, python(code, str(catalog_path)) as other:
        assert other.communicate()[0] == "1\n"
        assert len(catalog.tasks()) == 1


def test_open_in_this_process_in_another_mode(catalog_path):
    with Catalog.open(catalog_path), pytest.raises(CatalogLocked, match="this process has it open in another mode"):
        Catalog.open(catalog_path, read_only=True)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_newer_schema(catalog_path, read_only):
    with duckdb.connect(catalog_path) as connection:
        connection.execute("INSERT INTO migration VALUES (99, 'later', TIMESTAMP '2099-01-01')")
    with pytest.raises(CatalogSchemaMismatch, match=r"schema 99, this envsynth knows \d .*upgrade envsynth") as caught:
        Catalog.open(catalog_path, read_only=read_only)
    assert caught.value.exit_code == 2


def test_a_newer_file_format(catalog_path):
    content = bytearray(catalog_path.read_bytes())
    assert content[8:12] == b"DUCK"
    content[12:20] = (200).to_bytes(8, "little")
    catalog_path.write_bytes(content)
    with pytest.raises(CatalogError, match=r"too new|damaged"):
        Catalog.open(catalog_path)


@pytest.mark.parametrize("content", [b"", b"hello", b"text\n" * 5000])
def test_no_catalog_at_all(tmp_path, content):
    path = tmp_path / "other.duckdb"
    path.write_bytes(content)
    with pytest.raises(CatalogError, match=r"other.duckdb: the file is not a DuckDB database .* move this one away"):
        Catalog.open(path)
    assert path.read_bytes() == content


def test_a_foreign_database_is_left_alone(tmp_path):
    path = tmp_path / "foreign.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS a")
    with pytest.raises(CatalogError, match="not an envsynth catalog"):
        Catalog.open(path)
    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("mine",)]


@pytest.mark.parametrize("damage", ["header", "middle", "cut"])
def test_a_damaged_catalog(catalog_path, damage):
    content = bytearray(catalog_path.read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    else:
        start = 5000 if damage == "header" else 12288 + 1000
        content[start : start + 250000] = b"\xa5" * len(content[start : start + 250000])
    catalog_path.write_bytes(content)
    with pytest.raises(CatalogError) as caught, Catalog.open(catalog_path, read_only=True) as catalog:
        catalog.tasks()
    assert str(catalog_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_none_to_read_and_no_folder_to_write(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no catalog .*envsynth build"):
        Catalog.open(tmp_path / "none.duckdb", read_only=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvsynthError, match="catalog cannot be made"):
        Catalog.open(tmp_path / "file" / "x.duckdb")


RECORDING = """
    import sys, pathlib, resource, importlib.util
    spec = importlib.util.spec_from_file_location("making", sys.argv[3]); making = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(making)
    from envsynth.cache import Cache
    from envsynth.catalog import Catalog
    from envsynth.errors import EnvsynthError
    maker = making.Maker(Cache(pathlib.Path(sys.argv[2])))
    outcomes = [maker.outcome(index) for index in range(16)]
    for index, outcome in enumerate(outcomes):
        digest = maker.blobs.put(__import__("os").urandom(200_000))  # does not compress
        patch = outcome.candidate.reference.model_copy(update={"patch": digest})
        candidate = outcome.candidate.model_copy(update={"reference": patch})
        task = outcome.task.model_copy(update={"candidate": candidate})
        outcomes[index] = outcome.model_copy(update={"candidate": candidate, "task": task})
    with Catalog.open(pathlib.Path(sys.argv[1])) as catalog:
        build = catalog.begin_build({})
        if sys.argv[4] == "full":
            limit = 2_000_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        for number, outcome in enumerate(outcomes, 1):
            try:
                catalog.record(build, [outcome], maker.blobs)
            except EnvsynthError as error:
                print("error", error, flush=True)
                sys.exit(error.exit_code)
            print("kept", number, flush=True)
            if sys.argv[4] == "wait":
                sys.stdin.readline()
"""


def test_a_full_disk_loses_nothing_that_was_kept(tmp_path, maker):
    path = tmp_path / "catalog.duckdb"
    with python(
        RECORDING, str(path), str(tmp_path / "cache"), str(Path(__file__).with_name("conftest.py")), "full"
    ) as child:
        lines = child.communicate()[0].splitlines()
        assert child.returncode == 3
    kept = [line for line in lines if line.startswith("kept")]
    assert lines[-1].startswith("error")
    assert "no space left" in lines[-1]
    assert 1 <= len(kept) < 16
    with Catalog.open(path) as catalog:
        assert len(catalog.tasks()) == len(kept)
        assert catalog.dump()["missing"] == []
        catalog.record(1, [maker.outcome(100)], maker.blobs)


def test_killed_loses_at_most_what_was_in_flight(tmp_path):
    path = tmp_path / "catalog.duckdb"
    with python(
        RECORDING, str(path), str(tmp_path / "cache"), str(Path(__file__).with_name("conftest.py")), "go"
    ) as child:
        kept = 0
        while kept < 8:
            kept = int(child.stdout.readline().split()[1])
        child.send_signal(signal.SIGKILL)
        kept += len(child.stdout.read().splitlines())
    assert child.returncode == -signal.SIGKILL
    assert Path(f"{path}.wal").exists()
    for read_only in (True, False, True):
        with Catalog.open(path, read_only=read_only) as catalog:
            assert kept <= len(catalog.tasks()) <= kept + 1
            assert catalog.dump()["missing"] == []


def test_a_torn_log_loses_only_itself(catalog_path, maker):
    Path(f"{catalog_path}.wal").write_bytes(os.urandom(5000))
    with Catalog.open(catalog_path) as catalog:
        assert catalog.outcome(maker.outcome(1).lead.key).status is OutcomeStatus.ADMITTED
        catalog.record(1, [maker.outcome(2)], maker.blobs)
    with Catalog.open(catalog_path, read_only=True) as catalog:
        assert len(catalog.tasks()) == 2
