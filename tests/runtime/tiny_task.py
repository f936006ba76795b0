"""A small project with one bug, as an admitted task, and an environment made of the running interpreter."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from envsynth.cache import Cache
from envsynth.models import (
    Budget,
    Candidate,
    Check,
    Control,
    Criterion,
    FileMode,
    Lead,
    Provenance,
    Recipe,
    Reference,
    RoleRule,
    Task,
    TestCommand,
    TestLists,
    Tier,
    ToolCall,
    Trajectory,
    Tree,
    TreeEntry,
    Verifier,
    Workspace,
)

BROKEN = (
    'def total(prices, discount=0):\n    """Sum after a discount in percent."""\n    return sum(prices) - discount\n'
)
FIXED = BROKEN.replace("sum(prices) - discount", "sum(prices) * (100 - discount) / 100")

START = {
    "LICENSE": "Do as you like.\n",
    "README.md": "# shop\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
    "shop/__init__.py": "from shop.prices import total\n",
    "shop/basket.py": "from shop.prices import total\n\n\ndef pay(prices):\n    return total(prices)\n",
    "shop/prices.py": BROKEN,
    "tests/test_basket.py": "from shop.basket import pay\n\n\ndef test_pay():\n    assert pay([1, 2]) == 3\n",
    "tests/test_prices.py": "from shop import total\n\n\ndef test_plain():\n    assert total([4]) == 4\n",
}
HIDDEN = {
    "pyproject.toml": START["pyproject.toml"],
    "tests/test_basket.py": START["tests/test_basket.py"],
    "tests/test_prices.py": START["tests/test_prices.py"]
    + "\n\ndef test_discount():\n    assert total([50, 150], discount=10) == 180\n",
}
F2P = ("tests/test_prices.py::test_discount",)
P2P = ("tests/test_basket.py::test_pay", "tests/test_prices.py::test_plain")
ROLES = (
    RoleRule(pattern=r"(^|/)(conftest\.py|pyproject\.toml|pytest\.ini|setup\.cfg|tox\.ini)$", role="config"),
    RoleRule(pattern=r"(^|/)tests/", role="test"),
    RoleRule(pattern=r"(^|/)test_[^/]*\.py$", role="test"),
    RoleRule(pattern=r"\.py$", role="source"),
)
CHECKS = (
    Check(id="fail_to_pass", sql="SELECT count(*) > 0 AND min(after = 'passed') FROM tests WHERE list = 'F2P'"),
    Check(id="pass_to_pass", sql="SELECT coalesce(min(after = 'passed'), 1) FROM tests WHERE list = 'P2P'"),
    Check(
        id="controls",
        sql="SELECT count(*) > 0 AND min(CASE expected WHEN 'passed' THEN after = 'passed' "
        "ELSE after IN ('failed', 'error') END) FROM controls",
    ),
    Check(id="no_tampering", sql="SELECT count(*) = 0 FROM suspicions WHERE class = 'framework'"),
)
_CONTROLLED = "def test_discount():\n    assert total([50, 150], discount=10) == {}\n"
CONTROLS = tuple(
    Control(
        path="tests/test_prices.py",
        function=F2P[0],
        first=8,
        last=9,
        text=_CONTROLLED.format(number),
        kind="literal",
        keys=F2P,
    )
    for number in (183, 178)
)
_EDITS = "tool IN ('edit_file', 'write_file') AND ok"
RUBRIC = (
    Criterion(
        id="reproduced_before_editing", **{"class": "important"}, text="Saw the failure first.", evidence="SELECT 1",
        sql="SELECT EXISTS(SELECT 1 FROM trace WHERE tool = 'bash' AND json_extract(result, '$.exit_code') <> 0 "
        f"AND turn < (SELECT min(turn) FROM trace WHERE {_EDITS}))",
    ),
    Criterion(
        id="tested_after_last_edit", **{"class": "essential"}, text="Ran tests at the end.", evidence="SELECT 1",
        sql="SELECT EXISTS(SELECT 1 FROM trace WHERE tool = 'bash' AND json_extract(result, '$.exit_code') = 0 "
        "AND json_extract(arguments, '$.command') GLOB '*test*' "
        f"AND turn > (SELECT max(turn) FROM trace WHERE {_EDITS}))",
    ),
    Criterion(
        id="edited_a_test", **{"class": "pitfall"}, text="Edited a test.", evidence="SELECT 1",
        sql="SELECT count(*) > 0 FROM files WHERE role IN ('test', 'config')",
    ),
    Criterion(
        id="left_debris", **{"class": "pitfall"}, text="Left debris.", evidence="SELECT 1",
        sql="SELECT count(*) > 0 FROM files WHERE status = 'added' AND role = 'other'",
    ),
    Criterion(
        id="bounded_change", **{"class": "optional"}, text="A change of bounded size.", evidence="SELECT 1",
        sql="SELECT coalesce(sum(added + removed), 0) <= 20 + 3 * (SELECT sum(added + removed) FROM reference_files "
        "WHERE role = 'source') FROM files WHERE role = 'source'",
    ),
)  # fmt: skip
SOLVE = {"tool": "write_file", "arguments": {"path": "shop/prices.py", "content": FIXED}}
SUBMIT = {"tool": "submit", "arguments": {}}
REPRODUCE = {"tool": "bash", "arguments": {"command": "python -c 'import shop; assert shop.total([9], 10) == 8.1'"}}
RETEST = {"tool": "bash", "arguments": {"command": "python -m pytest -q tests"}}


def tree_of(cache: Cache, files: Mapping[str, str]) -> str:
    entries = []
    for path, text in files.items():
        content = text.encode()
        entries.append(TreeEntry(path=path, mode=FileMode.FILE, blob=cache.put(content), size=len(content)))
    return cache.put_tree(Tree(entries=tuple(entries)))


def make_task(
    cache: Cache,
    *,
    start: Mapping[str, str] = START,
    hidden: Mapping[str, str] = HIDDEN,
    allowed: tuple[str, ...] = (),
    turns: int = 20,
    ref: str = "abcdef0123",
) -> Task:
    lead = Lead(
        generator="repository", generator_version="1", source="https://example.org/shop", name="shop",
        revision="1" * 40, strategy="history", ref=ref, index=0,
    )  # fmt: skip
    candidate = Candidate(
        instruction="`total` takes the discount off as an amount. It must be a percentage.",
        environment=Workspace(
            tree=tree_of(cache, start), hidden=tree_of(cache, hidden), recipe=recipe(), roles=ROLES, allowed=allowed,
            command=TestCommand(runner="pytest", targets=("tests",), timeout_s=20, memory_bytes=2**30),
        ),
        verifier=Verifier(checks=CHECKS, rubric=RUBRIC),
        reference=Reference(changes=tree_of(cache, {"shop/prices.py": FIXED}), patch=cache.put(b"--- a\n+++ b\n")),
        budget=Budget(turns=turns, command_s=15),
        provenance=Provenance(lead=lead, licence_files=("LICENSE",)),
    )  # fmt: skip
    calls = tuple(ToolCall(**call) for call in (SOLVE, SUBMIT))
    return Task(
        candidate=candidate,
        tests=TestLists(fail_to_pass=F2P, pass_to_pass=P2P),
        controls=CONTROLS,
        panel=(
            Trajectory(label="reference", calls=calls, outcome=1.0),
            Trajectory(label="idle", calls=calls[1:], outcome=0.0),
        ),
        tier=Tier.VERIFIED,
        verdicts=(),
    )


def recipe() -> Recipe:
    return Recipe(
        language="python", interpreter=f"{sys.version_info[0]}.{sys.version_info[1]}", requirements=(),
        newest="2026-01-01",
    )  # fmt: skip


def make_environment(folder: Path) -> Path:
    """An environment of the running interpreter with its own pytest, files linked where the file system allows."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            if file.parts[0] != ".." and file.suffix != ".pyc":
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                source = Path(str(distribution.locate_file(file)))
                _link(source, target)
                compiled = Path(importlib.util.cache_from_source(str(source)))
                if file.suffix == ".py" and compiled.is_file():
                    target.parent.joinpath("__pycache__").mkdir(exist_ok=True)
                    _link(compiled, target.parent / "__pycache__" / compiled.name)
    return folder


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@functools.cache
def no_bubblewrap() -> str:
    """Why bubblewrap cannot be used here; empty when it can."""
    from envsynth.sandbox.bubblewrap import BubblewrapBackend

    return BubblewrapBackend().unavailable() or ""
