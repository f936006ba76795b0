"""Packs for SWE-bench: what a task repository holds, and what SWE-bench's own check, parser and grading make of it."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
import tiny_attacks as attacks
import tiny_task as tiny
import tiny_worlds as worlds
import yaml
from pack_files import files_of, task_directories

from envsynth.cache import Cache
from envsynth.errors import ExportError
from envsynth.exporters._swe import repository_of, trees_of
from envsynth.exporters._target_env import interpreter_of
from envsynth.exporters.replay import replay
from envsynth.exporters.swebench import Swebench
from envsynth.models import Check, Task, TestLists, ToolCall, Trajectory
from envsynth.runtime.container import CONTENTS
from envsynth.runtime.contract import Grade
from envsynth.runtime.episode_db import ListedTest
from envsynth.runtime.testlog import HIDDEN, grade_logged, log_lines, main, spelled
from envsynth.sandbox.bubblewrap import BubblewrapBackend

REQUIRED = {"instance_id", "repo", "version", "base_commit", "split", "image", "log_parser", "eval_type", "datasets"}
CLASSIC = {
    "instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement", "hints_text", "created_at",
    "version", "FAIL_TO_PASS", "PASS_TO_PASS", "environment_setup_commit",
}  # fmt: skip
NASTY = (
    "t.py::a[5m]", "t.py::a[6m]", "t.py::b[x  y]", "t.py::b[x y]", "t.py::c[x - y]", "t.py::c[[ - z", "t.py::d[\n\t]",
    "t.py::e[\u3000\u2028\x85]", "t.py::f[\x1b[31mred]", "t.py::g[é]", "PASSED t.py::h", "t.py::i PASSED",
    "[1] t.py::j", "t.py::k[[[5m5m]",
)  # fmt: skip
READER = tiny.BROKEN + (
    "\nfor _place in ['/eval.sh', '/opt/envsynth/hidden.zip', '/opt/envsynth/handed/shop/prices.py']:\n"
    "    try:\n        open(_place, 'rb').read()\n    except OSError:\n        continue\n"
    "    def total(prices, discount=0):\n        return sum(prices) * (100 - discount) / 100\n"
)
PRINTER = tiny.BROKEN + (
    "\nimport os\n\n_LOG = b'\\n>>>>> Start Test Output\\nPASSED tests/test_prices.py::test_discount\\n"
    "PASSED tests/test_prices.py::test_plain\\nPASSED tests/test_basket.py::test_pay\\n>>>>> End Test Output\\n'\n"
    "for _place in (1, 2, '/proc/1/fd/1', '/dev/stdout', '/dev/console'):\n    try:\n"
    "        _out = _place if isinstance(_place, int) else os.open(_place, os.O_WRONLY)\n        os.write(_out, _LOG)\n"
    "    except OSError:\n        pass\n"
)
INTO_GIT = (
    b"diff --git a/.git/hooks/x b/.git/hooks/x\nnew file mode 100755\n--- /dev/null\n+++ b/.git/hooks/x\n"
    b"@@ -0,0 +1 @@\n+touch /forged\n"
)


def exported(cache: Cache, out: Path, **options: str) -> Path:
    return Swebench().export([tiny.make_task(cache), tiny.make_task(cache, ref="b" * 10)], cache, out, options)


def brought(script: str) -> dict[str, bytes]:
    """What an evaluation script brings."""
    found = re.search(r"<<'END_OF_ARCHIVE'[^\n]*\n(.*)\nEND_OF_ARCHIVE\n", script, re.DOTALL)
    assert found
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(found[1]))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_pack_is_the_same_bytes_each_time(cache: Cache, tmp_path: Path) -> None:
    pack = exported(cache, tmp_path / "one" / "shop-tasks")
    assert files_of(pack) == files_of(exported(cache, tmp_path / "two" / "shop-tasks"))
    manifest = json.loads((pack / "manifest.json").read_text())
    assert (manifest["format"], manifest["package"], len(manifest["tasks"])) == ("swebench", "shop_tasks", 2)
    readme = (pack / "README.md").read_text()
    assert "$" not in readme.replace("$ENVSYNTH", "")
    assert "weaker" in readme
    for directory in task_directories(pack):
        assert set(files_of(directory)) == {
            "task.yaml", "tests.json", "problem_statement.md", "gold.patch", "test.patch", "eval.sh", "Dockerfile",
            ".dockerignore", "image/runtime.zip", "image/contents.zip", "image/task.json",
        }  # fmt: skip


def test_a_task_says_what_swebench_asks(cache: Cache, tmp_path: Path) -> None:
    pack = exported(cache, tmp_path / "shop-tasks")
    told = yaml.safe_load((pack / "sweb.yaml").read_text())
    assert told == {"datasets": ["shop-tasks"], "splits": ["test"]}
    for directory in task_directories(pack):
        task = yaml.safe_load((directory / "task.yaml").read_text())
        assert task.keys() >= REQUIRED
        assert task["instance_id"] == directory.name
        assert task["image"] == f"swebench/sweb.eval.x86_64.{directory.name}:latest"
        assert (task["split"], task["datasets"]) == ("test", ["shop-tasks"])
        assert json.loads(task["metadata"]).keys() >= {"strength", "tier", "task_sha256"}
        tests = json.loads((directory / "tests.json").read_text())
        assert tests == {"FAIL_TO_PASS": list(tiny.F2P), "PASS_TO_PASS": list(tiny.P2P)}
        assert task["base_commit"] in (directory / "Dockerfile").read_text()


def test_the_script_grades_between_the_markers(cache: Cache, tmp_path: Path) -> None:
    for directory in task_directories(exported(cache, tmp_path / "shop-tasks")):
        script = (directory / "eval.sh").read_text()
        lines = script.splitlines()
        end = next(number for number, line in enumerate(lines) if ">>>>> End Test Output" in line)
        # SWE-bench takes the exit status of the line before the end.
        assert "_envsynth.runtime.testlog" in lines[end - 1]
        assert ">>>>> Start Test Output" in lines[end - 2]
        assert sum("Test Output" in line for line in lines) == 2
        assert lines.index('chmod 600 "$0" || exit 3') < next(n for n, line in enumerate(lines) if "hidden.zip" in line)
        files = brought(script)
        document = json.loads(files["task.json"])
        assert document["id"] == directory.name
        assert document["tests"]["fail_to_pass"] == list(tiny.F2P)
        assert document["controls"]
        assert any(b"discount=10" in content for name, content in files.items() if name != "task.json")


def test_the_image_is_made_of_nothing_hidden(cache: Cache, tmp_path: Path) -> None:
    for directory in task_directories(exported(cache, tmp_path / "shop-tasks")):
        assert (directory / ".dockerignore").read_text().split() == ["*", "!image"]
        dockerfile = (directory / "Dockerfile").read_text()
        copied = re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile, re.MULTILINE)
        assert {word for words in copied for word in words.split()} == {
            "image/runtime.zip", "image/contents.zip", "image/task.json"
        }  # fmt: skip
        assert "\nCOPY image/" not in dockerfile.rpartition("\nFROM ")[2]
        shown = [(directory / "image/task.json").read_bytes(), dockerfile.encode()]
        with zipfile.ZipFile(directory / "image/contents.zip") as archive:
            shown += [archive.read(name) for name in archive.namelist()]
        everything = b"\n".join(shown)
        assert tiny.BROKEN.encode() in everything
        for secret in (b"(100 - discount)", b"test_discount", b"fail_to_pass", b"controls", b"reference"):
            assert secret not in everything


def test_classic_rows_say_the_same(cache: Cache, tmp_path: Path) -> None:
    pack = exported(cache, tmp_path / "shop-tasks")
    lines = (pack / "shop-tasks-test.jsonl").read_bytes().splitlines()
    rows = [json.loads(line.decode("ascii")) for line in lines]
    assert [row["instance_id"] for row in rows] == [directory.name for directory in task_directories(pack)]
    for row, directory in zip(rows, task_directories(pack), strict=True):
        assert row.keys() >= CLASSIC | {"image", "log_parser", "eval_type", "eval_script", "metadata"}
        assert row["patch"] == (directory / "gold.patch").read_text()
        assert row["test_patch"] == (directory / "test.patch").read_text()
        assert row["eval_script"] == (directory / "eval.sh").read_text()
        assert json.loads(row["FAIL_TO_PASS"]) == list(tiny.F2P)
        assert (row["hints_text"], row["created_at"]) == ("", "")


def test_patches_are_gold_and_tests_alone(cache: Cache) -> None:
    trees = trees_of(tiny.make_task(cache), cache)
    assert re.findall(r"^diff --git a/(\S+)", trees.gold, re.MULTILINE) == ["shop/prices.py"]
    assert re.findall(r"^diff --git a/(\S+)", trees.tests, re.MULTILINE) == ["tests/test_prices.py"]
    assert "+    return sum(prices) * (100 - discount) / 100\n" in trees.gold
    assert "-    return sum(prices) * (100 - discount) / 100\n" in trees.bug
    assert set(trees.whole) == set(tiny.START)
    assert trees.whole["tests/test_prices.py"].content.decode() == tiny.HIDDEN["tests/test_prices.py"]
    assert trees.whole["shop/prices.py"].content.decode() == tiny.FIXED


def test_what_cannot_be_held_is_a_line(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="swebench cannot hold world tasks") as raised:
        Swebench().export([worlds.make_world_task(cache, worlds.TASKS[0])], cache, tmp_path / "a", {})
    assert "gymnasium or " in str(raised.value)
    task = tiny.make_task(cache)
    checks = (*tiny.CHECKS, Check(id="looked", sql="SELECT count(*) > 0 FROM trace"))
    verifier = task.candidate.verifier.model_copy(update={"checks": checks})
    asking = task.model_copy(update={"candidate": task.candidate.model_copy(update={"verifier": verifier})})
    with pytest.raises(ExportError, match="'looked' asks for an episode's calls, which swebench does not know"):
        Swebench().export([asking], cache, tmp_path / "b", {})
    untested = task.model_copy(update={"tests": TestLists(fail_to_pass=(), pass_to_pass=tiny.P2P)})
    with pytest.raises(ExportError, match="no test of the task has to pass"):
        Swebench().export([untested], cache, tmp_path / "c", {})
    with pytest.raises(ExportError, match="unknown option 'org'"):
        exported(cache, tmp_path / "d", org="a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "repository"),
    [
        ("https://example.org/acme/shop.git", "acme/shop"),
        ("https://example.org/group/acme/shop/", "acme/shop"),
        ("https://example.org/shop", "local/shop"),
        ("local:shop", "local/shop"),
    ],
)
def test_a_repository_has_an_owner(source: str, repository: str, cache: Cache) -> None:
    task = tiny.make_task(cache)
    provenance = task.candidate.provenance
    lead = provenance.lead.model_copy(update={"source": source})
    moved = task.candidate.model_copy(update={"provenance": provenance.model_copy(update={"lead": lead})})
    assert repository_of(task.model_copy(update={"candidate": moved})) == repository


def test_spelling_again_changes_nothing() -> None:
    for key in NASTY:
        assert spelled(spelled(key)) == spelled(key) != ""
    assert spelled("t.py::a[5m]") == spelled("t.py::a[6m]") == "t.py::a]"


def lines_after(outcome: float, *tests: tuple[str, str, str]) -> list[str]:
    grade = Grade(outcome, outcome, None, 1.0, {"controls": bool(outcome)}, {}, {}, {})
    lines = list(log_lines(grade, [ListedTest(name, kind, "failed", after) for name, kind, after in tests]))
    assert lines[0] == f"check controls: {'holds' if outcome else 'does not hold'}"
    return lines[1:]


def test_the_log_has_a_line_a_test() -> None:
    assert lines_after(0.0, ("a", "F2P", "failed"), ("b", "P2P", "passed"), ("c", "P2P", "absent")) == [
        "FAILED a", "PASSED b", "ERROR c",
    ]  # fmt: skip
    # Neither a skipped test nor one that was expected to fail has passed.
    assert lines_after(0.0, ("a", "F2P", "skipped"), ("b", "P2P", "xfailed")) == ["FAILED a", "FAILED b"]
    assert lines_after(1.0, ("a", "F2P", "passed"), ("b", "P2P", "passed")) == ["PASSED a", "PASSED b"]


def test_where_every_test_passed_without_being_right_the_log_says_failed() -> None:
    assert lines_after(0.0, ("a", "F2P", "passed"), ("b", "P2P", "passed")) == ["FAILED a", "PASSED b"]


def test_tests_that_are_spelled_alike_are_as_good_as_their_worst() -> None:
    assert lines_after(0.0, ("a[5m]", "F2P", "passed"), ("a[6m]", "F2P", "failed")) == ["FAILED a]"]


def graders_folder(pack: Path, folder: Path, cache: Cache) -> Path:
    """What the image and the evaluation script make of a task, but for namespaces of its own."""
    (directory, _) = task_directories(pack)
    (folder / "cache").mkdir(parents=True)
    (folder / "cache" / "environments").symlink_to(cache.root / "environments")
    (folder / CONTENTS).write_bytes((directory / "image" / CONTENTS).read_bytes())
    found = re.search(r"<<'END_OF_ARCHIVE'[^\n]*\n(.*)\nEND", (directory / "eval.sh").read_text(), re.DOTALL)
    assert found
    (folder / HIDDEN).write_bytes(base64.b64decode(found[1]))
    return folder


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.skipif(bool(tiny.no_bubblewrap()), reason=tiny.no_bubblewrap())
def test_what_the_script_brings_grades_a_folder(cache: Cache, tmp_path: Path) -> None:
    folder = graders_folder(exported(cache, tmp_path / "shop-tasks"), tmp_path / "grader", cache)
    forged = "import pytest\n\n@pytest.fixture(autouse=True)\ndef skip():\n    pytest.skip()\n"
    told = {}
    for label, changes in {
        "gold": {"shop/prices.py": tiny.FIXED}, "nop": {}, "reader": {"shop/prices.py": READER},
        "tests": {"tests/test_prices.py": "", "conftest.py": forged, "tests/conftest.py": forged},
    }.items():  # fmt: skip
        handed = tmp_path / label
        for path, text in {**tiny.START, **changes}.items():
            (handed / path).parent.mkdir(parents=True, exist_ok=True)
            (handed / path).write_text(text)
        logged = grade_logged(folder, handed, BubblewrapBackend())
        told[label] = list(log_lines(logged.grade, logged.tests))[len(tiny.CHECKS) :]
    passed = [f"PASSED {name}" for name in tiny.P2P]
    assert told.pop("gold") == sorted([*passed, f"PASSED {tiny.F2P[0]}"], key=lambda line: line[7:])
    for lines in told.values():
        assert lines == sorted([*passed, f"FAILED {tiny.F2P[0]}"], key=lambda line: line[7:])


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_grader_that_fails_prints_no_test(cache: Cache, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = graders_folder(exported(cache, tmp_path / "shop-tasks"), tmp_path / "grader", cache)
    assert main([str(folder), str(tmp_path / "none")]) != 0
    (folder / HIDDEN).write_bytes(b"no archive")
    (tmp_path / "handed").mkdir()
    assert main([str(folder), str(tmp_path / "handed")]) != 0
    said = capfd.readouterr()
    assert said.out == ""
    assert "nothing was handed in" in said.err
    assert "the contents cannot be read" in said.err


def attacked(cache: Cache) -> Task:
    """The task with attacks on every grader, and on this one."""
    task: Task = attacks.attacked(cache)
    more = tuple(
        Trajectory(
            label=label, outcome=0.0,
            calls=(
                ToolCall(tool="write_file", arguments={"path": "shop/prices.py", "content": content}),
                ToolCall(**tiny.SUBMIT),
            ),
        )
        for label, content in (("attack:reader", READER), ("attack:printer", PRINTER))
    )  # fmt: skip
    return task.model_copy(update={"panel": (*task.panel, *more)})


@pytest.fixture(scope="module")
def tried(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack to be evaluated by SWE-bench, which is installed where it is missing."""
    if os.geteuid() != 0:
        pytest.skip("namespaces of evaluations need root")
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    return Swebench().export([attacked(cache)], cache, tmp_path_factory.mktemp("swebench") / "shop-tasks", {})


def run(code: str, pack: Path) -> str:
    """Run Python in SWE-bench's environment, beside a pack."""
    done = subprocess.run(
        [str(interpreter_of("swebench")), "-c", code], cwd=pack, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.usefixtures("targets_kept")
def test_swebench_checks_it_and_resolves_gold_alone(tried: Path) -> None:
    code = (
        "import json\nfrom swebench.task.checks import check_task_repo\n"
        "from swebench.task.publish import compile_datasets\nfrom swebench.harness.utils import load_swebench_dataset\n"
        "from shop_tasks.through import TASKS, evaluated\n"
        "told = {'problems': [str(one) for one in check_task_repo('.')]}\n"
        "(row,) = compile_datasets('.')['shop-tasks']['test']\n"
        "(classic,) = load_swebench_dataset('shop-tasks-test.jsonl')\n"
        "told['columns'] = sorted(row.keys() ^ classic.keys())\n"
        "told['differ'] = sorted(name for name in row if row[name] != classic.get(name))\n"
        "(task,) = TASKS.iterdir()\n"
        "told['nop'] = evaluated(task.name, b'')\n"
        "told['gold'] = evaluated(task.name, (task / 'gold.patch').read_bytes())\n"
        "from shop_tasks._envsynth.errors import SandboxError\n"
        f"try:\n    evaluated(task.name, {INTO_GIT!r})\n    told['git'] = 'applied'\n"
        "except SandboxError as error:\n    told['git'] = error.what\n"
        "print(json.dumps(told))\n"
    )
    told = json.loads(run(code, tried).splitlines()[-1])
    assert told["git"] == "the patch cannot be applied"
    assert told["problems"] == []
    assert told["columns"] == []
    assert told["differ"] == ["FAIL_TO_PASS", "PASS_TO_PASS"]  # texts in classic rows
    assert told["gold"]["resolved"] is True
    assert told["gold"]["tests_status"]["FAIL_TO_PASS"] == {"success": list(tiny.F2P), "failure": []}
    assert told["gold"]["tests_status"]["PASS_TO_PASS"] == {"success": list(tiny.P2P), "failure": []}
    assert told["nop"]["resolved"] is False
    assert told["nop"]["tests_status"]["FAIL_TO_PASS"] == {"success": [], "failure": list(tiny.F2P)}
    assert told["nop"]["tests_status"]["PASS_TO_PASS"]["failure"] == []


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.usefixtures("targets_kept")
def test_swebenchs_parser_reads_what_the_log_means(tried: Path) -> None:
    grade = Grade(0.0, 0.0, None, 1.0, {"controls": False}, {}, {}, {})
    names = sorted({spelled(key) for key in NASTY})
    passing = [ListedTest(key, "P2P", "passed", "passed") for key in NASTY]
    broken = [ListedTest("x", "F2P", "failed", "failed"), *passing]
    failing = [ListedTest(key, "F2P", "failed", "failed") for key in NASTY]
    logs = ["\n".join(["+ : x", *log_lines(grade, tests), ""]) for tests in (broken, failing)]
    code = (
        "import json, sys\nfrom swebench.harness.grading import get_eval_tests_report\n"
        "from swebench.harness.log_parsers import PARSER_REGISTRY\n"
        f"names, logs = json.loads({json.dumps(json.dumps([names, logs]))})\n"
        "found = [PARSER_REGISTRY['parse_log_pytest_v2'](log, None) for log in logs]\n"
        "reports = [get_eval_tests_report(one, {'FAIL_TO_PASS': names, 'PASS_TO_PASS': []}) for one in found]\n"
        "print(json.dumps([one['FAIL_TO_PASS'] for one in reports]))\n"
    )
    passed, failed = json.loads(run(code, tried).splitlines()[-1])
    assert (sorted(passed["success"]), passed["failure"]) == (names, [])
    assert (failed["success"], sorted(failed["failure"])) == ([], names)


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.sandbox
@pytest.mark.usefixtures("targets_kept")
def test_the_panel_earns_the_same_from_swebenchs_grading_and_no_attack_anything(tried: Path) -> None:
    report = replay(tried, target="swebench")
    assert report.trouble == ""
    assert [line for line in report.lines if line.verdict != "same" or line.error] == []
    got = {line.label: line.got for line in report.lines}
    assert got.keys() >= {"reference", "idle", "alternative", "attack:reader", "attack:printer", *attacks.FORGERY}
    assert {label for label, reward in got.items() if reward} == {"reference", "alternative"}
