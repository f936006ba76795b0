"""What is planted in an environment is found from inside an episode; an environment without it passes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envsynth.cache import Cache
from envsynth.context import BuildContext
from envsynth.models import Candidate, Recipe, Role, RoleRule, Source, TestLists, Verdict, VerdictStatus
from envsynth.validators.leakage import Leakage
from envsynth.validators.leakage.probe import _links, _mounts

BEFORE = "def mean(values):\n    total = sum(values)\n    count = len(values)\n    return total / count\n"
AFTER = BEFORE.replace("    return", "    if not count and hasattr(values, 'fallback'):\n        return 0\n    return")
LATER = AFTER + "\n\ndef later(values):\n    return sorted(values)[-1]\n"
Judge = Callable[..., Verdict]


@pytest.fixture
def judge(candidate: Candidate, source: Source, tree: Callable[..., str], tmp_path: Path) -> Judge:
    """The verdict on a candidate whose environment holds further files."""
    context = BuildContext(tmp_path)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    recipe = Recipe(language="python", interpreter=version, requirements=(), newest="2026-01-01")
    reference = candidate.reference.model_copy(update={"changes": tree({"calc.py": AFTER.encode()})})
    earlier = Verdict(
        validator="execution", version="1", status=VerdictStatus.PASS,
        tests=TestLists(fail_to_pass=("tests/test_new.py::test_it",), pass_to_pass=()),
    )  # fmt: skip

    def verdict(site: dict[str, bytes]) -> Verdict:
        workspace = candidate.environment.model_copy(
            update={
                "tree": tree({"calc.py": BEFORE.encode(), "LICENSE": b"MIT"}),
                "recipe": recipe.model_copy(update={"site": tree(site) if site else None}),
                "roles": (RoleRule(pattern="^tests/", role=Role.TEST), RoleRule(pattern=r"\.py$", role=Role.SOURCE)),
            }
        )
        made = candidate.model_copy(update={"environment": workspace, "reference": reference})
        return Leakage().validate(made, source, context, [earlier])

    return verdict


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize(
    ("site", "rule"),
    [
        ({}, "pass"),
        ({"calc.py": BEFORE.encode()}, "pass"),
        ({"calc.py": AFTER.encode()}, "fixed_file_visible"),
        ({"calc.py": LATER.encode()}, "fix_in_environment"),
        ({"calc_release/core.txt": LATER.encode()}, "fix_in_environment"),
        ({"calc.pyc": b"\0\0any"}, "byte_code_of_fix"),
        ({"calc.pth": b"/srv/calc/src\n"}, "editable_link"),
        ({"__editable___calc_finder.py": b"MAPPING = {}\n"}, "editable_link"),
        ({"calc-1.dist-info/direct_url.json": b'{"url": "file:///srv/calc", "dir_info": {}}'}, "editable_link"),
    ],
    ids=["clean", "start-version", "fixed-file", "later-release", "copy", "byte-code", "pth", "editable", "direct-url"],
)
def test_environments(judge: Judge, site: dict[str, bytes], rule: str) -> None:
    verdict = judge(site)
    assert verdict.reason == rule
    assert verdict.status is (VerdictStatus.PASS if rule == "pass" else VerdictStatus.FAIL)
    if rule == "pass":
        assert verdict.evidence["probe_s"] > 0
        assert len(verdict.evidence["fingerprint"]["sketch"]) == 64


def test_mounts_that_no_task_needs(tmp_path: Path, cache: Cache) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").write_text("")
    targets = ["/", "/usr", "/proc/irq", "/workspace", "/env", "/home/me/projects", "/etcetera"]
    assert [finding.where for finding in _mounts(targets, tmp_path)] == ["/home/me/projects", "/etcetera"]


@pytest.mark.parametrize(
    ("line", "leads"),
    [
        ("/env/lib/site-packages/a.pth:/srv/code", True),
        ("/env/lib/site-packages/a.pth:../../../code", True),
        ("/env/lib/site-packages/a.pth:import __editable___a; a.install()", True),
        ("/env/lib/site-packages/a.egg-link:/srv/code", True),
        ("/env/lib/site-packages/__editable__.a-1.pth", True),
        ("/env/lib/site-packages/a.pth:import _virtualenv", False),
        ("/env/lib/site-packages/a.pth:", False),
        ('/env/lib/site-packages/a.dist-info/direct_url.json:{"url": "https://host/a.zip"}', False),
    ],
)
def test_links_of_an_environment(line: str, leads: bool) -> None:
    assert bool(_links([line])) is leads
