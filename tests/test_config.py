"""Configuration: precedence, paths, unknown settings, the resolved record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsynth.config import BuildConfig, load_config, resolved_path, write_resolved
from envsynth.errors import ConfigError
from envsynth.llm import LlmSettings


def test_defaults_are_absolute(tmp_path):
    config = load_config(cwd=tmp_path)
    assert config.catalog == tmp_path / "catalogs/envsynth.duckdb"
    assert config.out == tmp_path / "outputs"
    assert config.root == tmp_path
    assert (config.format, config.executor, config.sandbox, config.pack_name) == (
        "gymnasium", "local", "auto", "envsynth-gymnasium",
    )  # fmt: skip
    assert config.jobs >= 1


def test_command_line_over_file_over_default(tmp_path):
    (tmp_path / "envsynth.toml").write_text('sources = ["a.txt"]\njobs = 7\nlimit = 3\ncatalog = "c.duckdb"\n')
    config = load_config(cwd=tmp_path, limit=5, jobs=None)
    assert (config.jobs, config.limit, config.sources) == (7, 5, ("a.txt",))
    assert config.catalog == tmp_path / "c.duckdb"
    assert config.source_defaults.limit == 5


def test_a_file_elsewhere_reads_from_its_own_folder(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/my.toml").write_text('sources = "a.txt"\ncatalog = "c.duckdb"\n')
    config = load_config(Path("etc/my.toml"), cwd=tmp_path)
    assert (config.sources, config.root, config.catalog) == (("a.txt",), tmp_path / "etc", tmp_path / "etc/c.duckdb")
    given = load_config(Path("etc/my.toml"), cwd=tmp_path, sources=("b.txt",), catalog=Path("d.duckdb"))
    assert (given.sources, given.root, given.catalog) == (("b.txt",), tmp_path, tmp_path / "d.duckdb")


def test_a_resolved_configuration_replays(tmp_path):
    config = load_config(cwd=tmp_path, sources=("./repo limit=2",), seed=3, keep_going=True)
    target = write_resolved(config)
    assert target == resolved_path(config.catalog) == tmp_path / "catalogs/envsynth.build.json"
    assert load_config(target, cwd=Path("/")) == config
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limt = 3", r"my.toml: unknown setting 'limt' \(did you mean limit\?\)"),
        ("xyz = 3", r"unknown setting 'xyz' \(known: cache, "),
        ("limit = 0", r"my.toml: limit: .* \(it is 0\)"),
        ("jobs = 'many'", r"jobs: .*valid integer"),
        ("sources = 3", "sources: "),
        ("llm = 3", "my.toml: llm: "),
        ("[llm.author]\nmodel = 'x'\ntimeout = 0", r"my.toml: llm\.author\.timeout: .*greater than 0"),
        ("[llm.writer]\nmodel = 'x'", r"unknown setting 'llm\.writer'"),
        ("limit = ", "not TOML"),
        ("\x00", "not TOML"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, text, message):
    (tmp_path / "my.toml").write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(Path("my.toml"), cwd=tmp_path)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


AUTHOR = """
[llm.author]
model = "big"
base_url = "http://127.0.0.1:8000/v1"
api_key_env = "BIG_KEY"
prices = { input = 2.5, output = 10 }
"""


def test_models_come_from_the_file_and_the_command_line_and_replay_without_a_key(tmp_path, monkeypatch):
    monkeypatch.setenv("BIG_KEY", "sk-secret")
    (tmp_path / "envsynth.toml").write_text(AUTHOR)
    config = load_config(cwd=tmp_path, llm=["judge=small@http://127.0.0.1:9/v1"], budget=0.5)
    assert (config.llm.author.model, config.llm.judge.model, config.llm.solver) == ("big", "small", None)
    assert (config.llm.budget, config.ledger) == (0.5, tmp_path / "catalogs/envsynth.spend.sqlite")
    target = write_resolved(config)
    assert "sk-secret" not in target.read_text()
    assert load_config(target, cwd=Path("/")) == config
    assert load_config(target, cwd=Path("/"), budget=2.0).llm.budget == 2.0


def test_a_configuration_without_models_has_none(tmp_path):
    (tmp_path / "old.json").write_text('{"llm": ""}')
    assert load_config(Path("old.json"), cwd=tmp_path).llm == LlmSettings()
    assert load_config(cwd=tmp_path).llm == LlmSettings()


@pytest.mark.parametrize("setting", ["api_key_env = 'sk-proj-hush'", "base_url = 'https://h/v1?key=sk-proj-hush'"])
def test_a_key_in_the_settings_is_refused_and_not_repeated(tmp_path, setting):
    (tmp_path / "envsynth.toml").write_text(f"[llm.author]\nmodel = 'x'\n{setting}\n")
    with pytest.raises(ConfigError, match=r"llm\.author\.") as caught:
        load_config(cwd=tmp_path)
    assert "hush" not in str(caught.value)


def test_bad_settings_of_the_command_line(tmp_path):
    with pytest.raises(ConfigError, match="command line: seed"):
        load_config(cwd=tmp_path, seed=-1)
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(cwd=tmp_path, catalog=tmp_path)
    with pytest.raises(ConfigError, match="no such configuration file"):
        load_config(Path("none.toml"), cwd=tmp_path)
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(ConfigError, match="no table of settings"):
        load_config(Path("list.json"), cwd=tmp_path)


def test_an_unwritable_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="resolved configuration cannot be written"):
        write_resolved(load_config(cwd=tmp_path, catalog=Path("file/c.duckdb")))


@pytest.mark.parametrize(
    ("catalog", "name"), [("my_Set 2.duckdb", "my-set-2-gymnasium"), ("2024.duckdb", "pack-2024-gymnasium")]
)
def test_pack_names_are_fit_for_distributions(tmp_path, catalog, name):
    assert load_config(cwd=tmp_path, catalog=Path(catalog)).pack_name == name


def test_a_pack_is_named_after_its_source_list(tmp_path):
    assert load_config(cwd=tmp_path, sources=("lists/quick start.txt",)).pack_name == "quick-start-gymnasium"
    assert load_config(cwd=tmp_path, sources=("https://host.example/a/b limit=2",)).pack_name == "envsynth-gymnasium"


def test_documents_are_json(tmp_path):
    config = load_config(cwd=tmp_path)
    assert BuildConfig.model_validate(json.loads(json.dumps(config.document()))) == config
