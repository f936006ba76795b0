"""envsynth build: what it hands to the pipeline and what it shows; the pipeline itself is a stand-in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from envsynth.cli._result import print_result
from envsynth.config import BuildConfig
from envsynth.errors import SandboxError
from envsynth.models import BuildReport, Event, FunnelRow, ModelUse


class Pipeline(ModuleType):
    """Records the configuration and tells a short story."""

    config: BuildConfig
    error: BaseException | None = None
    exit_code = 0

    def build(self, config, progress) -> BuildReport:
        self.config = config
        progress(Event("source", "reading ./repo", "./repo"))
        progress(Event("lead", "admitted t-1: Fix\x1b[2J it", "./repo", 1, 2, {"status": "admitted"}))
        if self.error is not None:
            raise self.error
        progress(Event("error", "line 3 is bad", "./repo", 1, 2))
        return BuildReport(
            build=1,
            catalog=config.catalog,
            pack=config.out / config.pack_name,
            leads=2,
            statuses={"admitted": 1, "owed": 1},
            funnel=(FunnelRow(source="./repo", status="owed", reason="no_registry", leads=1),),
            tasks=("t-1",),
            errors=("l.txt:3: it is bad",),
            seconds=1.25,
            cpu_s=2.5,
            exit_code=self.exit_code,
        )


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    stand_in = Pipeline("envsynth.pipeline")
    monkeypatch.setitem(sys.modules, "envsynth.pipeline", stand_in)
    monkeypatch.setattr("envsynth.pipeline", stand_in, raising=False)
    return stand_in


def test_options_reach_the_pipeline(envsynth, pipeline):
    printed = envsynth(
        "build",
        "--source",
        "./a limit=2",
        "--source",
        "b.txt",
        "--limit",
        "5",
        "--seed",
        "3",
        "--jobs",
        "2",
        "--catalog",
        "c.duckdb",
        "--out",
        "packs",
        "--sandbox",
        "local",
        "--offline",
        "--keep-going",
        "--llm",
        "author=big@http://127.0.0.1:9/v1",
        "--llm",
        "judge=small",
        "--budget",
        "2.5",
    )
    assert printed.code == 0
    config = pipeline.config
    assert (config.sources, config.root) == (("./a limit=2", "b.txt"), Path.cwd())
    assert (config.limit, config.seed, config.jobs, config.sandbox) == (5, 3, 2, "local")
    assert (config.offline, config.keep_going) == (True, True)
    assert (config.llm.author.base_url, config.llm.judge.model, config.llm.solver) == (
        "http://127.0.0.1:9/v1", "small", None,
    )  # fmt: skip
    assert config.llm.budget == 2.5
    assert (config.catalog, config.out) == (Path.cwd() / "c.duckdb", Path.cwd() / "packs")


def test_the_end_says_what_where_and_what_next(envsynth, pipeline):
    printed = envsynth("build", "--source", "x")
    for part in (
        "1 tasks admitted of 2 leads, in 1.2 s (2.5 s CPU)",
        "1\towed\tno_registry\t./repo",
        "catalog  catalogs/envsynth.duckdb",
        "pack     outputs/envsynth-gymnasium",
        "envsynth catalog ls\n",
        "envsynth catalog show t-1\n",
        "the same build command again",
        "envsynth replay outputs/envsynth-gymnasium\n",
        'gymnasium.make("envsynth_gymnasium:t-1-v0")',
    ):
        assert part in printed.out
    assert "reading ./repo\n[1/2] admitted t-1: Fix\\x1b[2J it\nerror: line 3 is bad\n" in printed.err
    assert "envsynth: l.txt:3: it is bad" in printed.err
    assert "catalog ls --catalog other.duckdb" in envsynth("build", "--source", "x", "--catalog", "other.duckdb").out


def test_the_end_says_what_models_were_asked_and_cost(capsys):
    asked = {"model": "big", "endpoint": "http://127.0.0.1:9/v1", "prompt_tokens": 1200, "completion_tokens": 34}
    report = BuildReport(
        build=1, catalog=Path("c.duckdb"), pack=None, leads=0, statuses={}, funnel=(), seconds=1, cpu_s=1,
        models=(
            ModelUse(role="author", calls=7, cached=2, uncertain=1, cost_usd=0.0125, uncertain_usd=0.003, **asked),
            ModelUse(role="judge", calls=1, **asked),
        ),
    )  # fmt: skip
    print_result(report, json=False)
    printed = capsys.readouterr().out
    assert "role\tmodel\tcalls\tcached\tuncertain\ttokens in\ttokens out\tUS dollars\n" in printed
    assert "author\tbig\t7\t2\t1 (at most $0.003000)\t1200\t34\t0.012500\n" in printed
    assert "judge\tbig\t1\t0\t0\t1200\t34\tunknown\n" in printed
    print_result(report, json=True)
    assert json.loads(capsys.readouterr().out)["models"][0]["cost_usd"] == 0.0125


def test_json_lines(envsynth, pipeline):
    printed = envsynth("build", "--source", "x", "--json")
    lines = [json.loads(line) for line in printed.out.splitlines()]
    assert [line["event"] for line in lines] == ["source", "lead", "error", "report"]
    assert lines[1] == {
        "event": "lead",
        "text": "admitted t-1: Fix\x1b[2J it",
        "source": "./repo",
        "done": 1,
        "total": 2,
        "detail": {"status": "admitted"},
    }
    assert BuildReport.model_validate({key: value for key, value in lines[3].items() if key != "event"}).tasks == (
        "t-1",
    )
    assert printed.err == ""


@pytest.mark.parametrize("code", [1, 2, 3])
def test_the_report_decides_the_exit_code(envsynth, pipeline, code):
    pipeline.exit_code = code
    assert envsynth("build", "--source", "x").code == code


@pytest.mark.parametrize(("error", "code"), [(SandboxError("no sandbox works"), 3), (KeyboardInterrupt(), 130)])
def test_a_build_that_breaks_off(envsynth, pipeline, error, code):
    pipeline.error = error
    printed = envsynth("build", "--source", "x")
    assert printed.code == code
    assert printed.err.splitlines()[-1].startswith("envsynth: ")


def test_configuration_errors_come_before_any_work(envsynth):
    Path("envsynth.toml").write_text("limt = 3\n")
    printed = envsynth("build", "--source", "x")
    assert printed.code == 2
    assert "did you mean limit?" in printed.err


def test_sources_of_the_configuration_file(envsynth, pipeline):
    Path("envsynth.toml").write_text('sources = ["list.txt"]\njobs = 1\n')
    assert envsynth("build").code == 0
    assert (pipeline.config.sources, pipeline.config.jobs) == (("list.txt",), 1)


def test_the_bar_on_a_terminal(pipeline, monkeypatch, capsys):
    from envsynth.cli._progress import watching

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with watching(json=False) as progress:
        progress(Event("plan", "2 leads", "x", 0, 2))
        progress(Event("lead", "admitted [bold]t-1[/bold]", "x", 1, 2))
    assert "[1/2] admitted [bold]t-1[/bold]" in capsys.readouterr().err
