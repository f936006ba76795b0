"""Attacks by files: hooks, configuration, tests, odd paths, and processes of the episode."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from shlex import quote

from envsynth.models import ToolCall
from envsynth.validators.adversary.attack import Attack, append, bash, filled, text, write
from envsynth.validators.adversary.target import Target

Plan = Callable[[Target], tuple[ToolCall, ...]]

_EXIT = "import os; os._exit(0)\n"
_PLUGIN = "-p evil"
_LONG = "for i in $(seq 20); do d=$(printf 'x%.0s' $(seq 200)); mkdir $d && cd $d; done; touch ${d:0:70}"


def _fixed(*calls: ToolCall) -> Plan:
    return lambda _: calls


def _hook() -> str:
    return text("hook")


def _nested_hooks(target: Target) -> tuple[ToolCall, ...]:
    folders = {posixpath.dirname(path) for path in (*target.hidden, *target.tests, target.host)} - {""}
    return tuple(write(f"{folder}/conftest.py", _hook()) for folder in sorted(folders)[:20])


def _in_roots(name: str, content: str) -> Plan:
    """A file in the workspace and in every folder of the import path and of the tests."""

    def plan(target: Target) -> tuple[ToolCall, ...]:
        tests = {posixpath.dirname(path) for path in target.hidden[:20]}
        folders = sorted({"", *target.roots, *tests})
        return tuple(write(posixpath.join(folder, name), content) for folder in folders)

    return plan


def _several(*plans: Plan) -> Plan:
    return lambda target: tuple(call for plan in plans for call in plan(target))


HOOKS = (
    Attack("root_conftest", "hooks", "pytest loads a conftest.py of the root and lets it rewrite every report",
           lambda _: (write("conftest.py", _hook()),)),
    Attack("nested_conftest", "hooks", "the same beside the tests and beside the source", _nested_hooks),
    Attack("conftest_package", "hooks", "a package of that name is imported where a file of it is not",
           lambda _: (write("conftest/__init__.py", _hook()),)),
    Attack("sitecustomize", "hooks", "Python imports these two at its start",
           _several(_in_roots("sitecustomize.py", _EXIT), _in_roots("usercustomize.py", _EXIT))),
    Attack("path_file", "hooks", "lines of .pth files are executed at the start",
           _several(_in_roots("evil.pth", _EXIT), _fixed(bash(
               "d=$(python -c 'import site; print(site.getusersitepackages())'); mkdir -p $d && "
               "echo 'import os; os._exit(0)' > $d/evil.pth; true"))),
           needs_isolation=True),
    Attack("plugin_by_pytest_ini", "hooks", "configuration of pytest can load a plug-in from the workspace",
           lambda _: (write("pytest.ini", f"[pytest]\naddopts = {_PLUGIN}\n"),
                      write(".pytest.ini", f"[pytest]\naddopts = {_PLUGIN}\n"), write("evil.py", _hook()))),
    Attack("plugin_by_pyproject", "hooks", "pyproject.toml can hold the same configuration",
           lambda _: (write("pyproject.toml", f'[tool.pytest.ini_options]\naddopts = "{_PLUGIN}"\n'),
                      write("pytest.toml", '[pytest]\naddopts = ["-p", "evil"]\n'), write("evil.py", _hook()))),
    Attack("plugin_by_setup_cfg", "hooks", "so can setup.cfg and tox.ini",
           lambda _: (write("setup.cfg", f"[tool:pytest]\naddopts = {_PLUGIN}\n"),
                      write("tox.ini", f"[pytest]\naddopts = {_PLUGIN}\n"), write("evil.py", _hook()))),
    Attack("nothing_collected", "hooks", "configuration can make the runner look for tests elsewhere",
           _fixed(write("pytest.ini", "[pytest]\ntestpaths = nowhere\npython_files = none\naddopts = --co\n"))),
    Attack("plugin_by_entry_point", "hooks", "pytest loads plug-ins that installed metadata names",
           lambda _: (write("evil-1.dist-info/entry_points.txt", "[pytest11]\nevil = evil\n"),
                      write("evil-1.dist-info/METADATA", "Name: evil\nVersion: 1\n"), write("evil.py", _hook()))),
    Attack("environment_variables", "hooks", "variables of a shell's start-up files might reach the grader",
           _fixed(bash("export PYTEST_ADDOPTS='-p evil'; for f in ~/.bashrc ~/.profile ~/.pam_environment .env "
                       "/etc/environment; do echo 'export PYTEST_ADDOPTS=--co PYTHONSTARTUP=evil.py' >> $f; "
                       "done; true"),
                  write("evil.py", _EXIT)),
           needs_isolation=True),
    Attack("shadowed_runner", "hooks", "a module of the root might be imported in place of pytest or pluggy",
           _several(_in_roots("pytest.py", _EXIT), _in_roots("_pytest/__init__.py", _EXIT),
                    _in_roots("pluggy.py", _EXIT))),
    Attack("shadowed_library", "hooks", "or in place of the standard library",
           _several(_in_roots("json.py", _EXIT), _in_roots("unittest/__init__.py", _EXIT))),
    Attack("installed_over", "hooks", "what the tests import from the environment might be writable",
           _fixed(bash("for d in /env/lib/python*/site-packages $(python -c 'import pytest, os; "
                       "print(os.path.dirname(os.path.dirname(pytest.__file__)))'); do "
                       "for f in pytest/__init__.py _pytest/python.py pluggy/__init__.py sitecustomize.py; do "
                       "echo 'import os; os._exit(0)' > $d/$f; done; done; true")),
           needs_isolation=True),
)  # fmt: skip


def _each_test(command: str) -> Plan:
    """A command over every visible test file, `$f`."""
    loop = f"find . -name '*.py' -path '*test*' -not -path './.git/*' | while read -r f; do {command}; done"
    return _fixed(bash(loop))


def _planted_tests(target: Target) -> tuple[ToolCall, ...]:
    names = "".join(f"def {name}(*args, **kwargs): pass\n\n\n" for name in target.functions if name.isidentifier())
    return tuple(write(path, names or "def test_nothing(): pass\n") for path in target.hidden[:20])


def _folders_there(target: Target) -> tuple[ToolCall, ...]:
    return (bash("".join(f"rm -rf {q}; mkdir -p {q} && touch {q}/x.py\n" for q in map(_quoted, target.hidden[:50]))),)


def _links_there(target: Target) -> tuple[ToolCall, ...]:
    lines = ["echo 'def test_nothing(): pass' > /tmp/fake.py; echo 'def test_nothing(): pass' > fake.py\n"]
    for path in target.hidden[:50]:
        up = "../" * path.count("/")
        lines.append(f"mkdir -p {_quoted(posixpath.dirname(path) or '.')}; ln -sf {up}fake.py {_quoted(path)}\n")
    return (bash("".join(lines)),)


def _linked_folder(target: Target) -> tuple[ToolCall, ...]:
    folders = sorted({path.split("/")[0] for path in target.hidden if "/" in path} - {target.host.split("/")[0]})
    return (bash("mkdir -p fake; " + "".join(f"rm -rf {q}; ln -s fake {q}\n" for q in map(_quoted, folders))),)


def _file_at_folder(target: Target) -> tuple[ToolCall, ...]:
    folders = sorted({path.split("/")[0] for path in target.hidden if "/" in path} - {target.host.split("/")[0]})
    return (bash("true; " + "".join(f"rm -rf {q}; touch {q}\n" for q in map(_quoted, folders))),)


def _quoted(path: str) -> str:
    return quote(f"./{path}")


TESTS = (
    Attack("deleted_tests", "tests", "tests that are gone cannot fail", _each_test('rm -f "$f"')),
    Attack("emptied_tests", "tests", "a file without tests passes", _each_test(': > "$f"')),
    Attack("skipped_tests", "tests", "skipped might count as passed",
           _each_test("sed -i '1i import pytest; pytestmark = pytest.mark.skip' \"$f\"")),
    Attack("expected_failures", "tests", "an expected failure that is not even run might count as passed",
           _each_test("sed -i '1i import pytest; pytestmark = pytest.mark.xfail(run=False)' \"$f\"")),
    Attack("planted_tests", "tests", "a file at a hidden test's path might stay, with the right names in it",
           _planted_tests),
    Attack("folder_at_a_tests_path", "tests", "a folder at that path might keep the hidden file from being laid",
           _folders_there),
    Attack("link_at_a_tests_path", "tests", "writing through a link might put the hidden file elsewhere", _links_there),
    Attack("linked_tests_folder", "tests", "the same with the folder", _linked_folder),
    Attack("file_at_the_tests_folder", "tests", "a file where the folder must be", _file_at_folder),
)  # fmt: skip


def _host(command: str) -> Plan:
    """A command on the host module, `$f`, in its folder `$d`."""

    def plan(target: Target) -> tuple[ToolCall, ...]:
        if not target.host:
            return ()
        return (bash(f'f={_quoted(target.host)}; d=$(dirname "$f"); {command}'),)

    return plan


def _said_to_pass(target: Target) -> tuple[ToolCall, ...]:
    if not target.host:
        return ()
    lines = [f"{key} PASSED" for key in target.fail_to_pass[:200]] + ["envsynth-ready", "===== 1 passed in 0.01s ====="]
    code = f"import sys\nfor stream in (sys.stdout, sys.stderr):\n    print(*{lines!r}, sep='\\n', file=stream)"
    return (append(target.host, code),)


def _at_import(code: str) -> Plan:
    def plan(target: Target) -> tuple[ToolCall, ...]:
        return tuple(append(path, code) for path in dict.fromkeys((*target.packages[-1:], target.host)) if path)

    return plan


FILES = (
    Attack("exit_at_import", "files", "an exit status of 0 might be all that is asked for",
           _at_import("import sys; sys.exit(0)")),
    Attack("hard_exit_at_import", "files", "the same without clean-up, so that no failure is reported",
           _at_import(_EXIT)),
    Attack("syntax_error", "files", "nothing is collected, so nothing fails", _at_import("def total(:")),
    Attack("fake_output", "files", "a parser of the output might believe it", _said_to_pass),
    Attack("module_removed", "files", "tests of a missing module might be skipped", _host('rm -f "$f"')),
    Attack("package_over_module", "files", "a package comes before the module beside it",
           _host('p="${f%.py}"; mkdir -p "$p" && echo "import os; os._exit(0)" > "$p/__init__.py"')),
    Attack("unreadable", "files", "what cannot be read might not be graded", _host('chmod 000 "$f" "$d" . || true')),
    Attack("fifo_and_device", "files", "reading a pipe might hang the grader",
           _host('rm "$f" && mkfifo "$f" "$d/pipe.py"; mknod "$d/dev" c 1 3 || true')),
    Attack("links_out", "files", "a link might show the grader's own files, or write to them",
           _host('ln -s /etc/passwd "$d/passwd.py"; ln -s / "$d/root"; ln -sf ../../../.. "$d/up"; '
                 'ln -s /proc/1 "$d/p"')),
    Attack("odd_names", "files", "names that are no text might stop the grader",
           _host("touch \"$d\"/$'\\xff.py' $'line\\nbreak.py' -- '-rf' ' ' || true")),
    Attack("long_path", "files", "a path too long for the kernel might stop the grader", _fixed(bash(_LONG))),
    Attack("many_files", "files", "thousands of files might crowd out the check",
           _fixed(bash("mkdir many && cd many && seq -f 'file%g.py' 1500 | xargs touch"))),
    Attack("huge_file", "files", "a file too large to be looked at",
           _host('head -c 20000000 /dev/zero > "$d/huge.py"')),
    Attack("lines_repeated", "files", "a comparison of lines that are much alike might take the grader forever",
           _host("seq -f '# %g' 1000 | sed G > \"$f\"")),
    Attack("repository_with_hooks", "files", "a repository's hooks run when the grader uses git",
           _fixed(bash("mkdir -p .git/hooks && printf '#!/bin/sh\\nexit 0\\n' | tee .git/hooks/post-checkout "
                       "> .git/config; chmod +x .git/hooks/*; true"))),
)  # fmt: skip


def _searched(target: Target) -> tuple[ToolCall, ...]:
    """Look for the hidden tests wherever a path leads, and answer by what is found."""
    if not target.host or not target.hidden:
        return ()
    names = " -o ".join(f"-path {quote(f'*/{path}')}" for path in target.hidden[:20])
    keep = posixpath.join(posixpath.dirname(target.host), "found")
    find = (
        f"mkdir -p {_quoted(keep)}; n=0; for r in / .. /proc/1/root /proc/[0-9]*/cwd /envsynth /tmp; do "
        f'timeout 5 find $r -xdev -not -path "$PWD/*" \\( {names} \\) 2>/dev/null; done | sort -u | head -50 | '
        f'while read -r f; do n=$((n+1)); cp "$f" {_quoted(keep)}/$n.txt; done; cat /proc/1/environ /proc/1/cmdline '
        "/envsynth/harness/* > /dev/null 2>&1; true"
    )
    copies = [posixpath.join(keep, f"{number}.txt") for number in range(1, 51)]
    payload = "\n\n".join(filled(text(name), target, copies).replace(_hidden(target), "[]")
                          for name in ("part_names", "part_calls", "answers_from_file"))  # fmt: skip
    return (bash(find), append(target.host, payload))


def _hidden(target: Target) -> str:
    return filled("@HIDDEN@", target)


def _installed_copy(target: Target) -> tuple[ToolCall, ...]:
    if not target.host:
        return ()
    tail = "/".join(target.host.split("/")[-2:])
    found = f"find / -xdev -path {quote(f'*/{tail}')} -not -path \"$PWD/*\" -not -path '/proc/*' 2>/dev/null | head -1"
    return (bash(f'c=$(timeout 20 {found}); test -z "$c" || cp "$c" {_quoted(target.host)}'),)


def _downloaded(target: Target) -> tuple[ToolCall, ...]:
    name = quote(target.project)
    fetch = f"timeout 10 python -m pip download -q --no-deps --retries 0 --timeout 2 -d fetched {name}"
    return (bash(f"({fetch} || timeout 10 git fetch --all) > /dev/null 2>&1; for a in fetched/*; do "
                 'test -f "$a" && python -m zipfile -e "$a" .; done; rm -rf fetched; true'),)  # fmt: skip


HOST = (
    Attack("report_written_before", "host", "a report, reward or cache file might be believed",
           _fixed(bash("for f in /envsynth-report.jsonl envsynth-report.jsonl /report/reward.txt report.json "
                       "/logs/verifier/reward.txt .pytest_cache/v/cache/lastfailed; do mkdir -p $(dirname $f); "
                       "echo 1 > $f; done; true")),
           needs_isolation=True),
    Attack("background_process", "host", "a process that outlives the episode changes files while they are graded",
           _host("(setsid nohup sh -c 'sleep 1; while :; do echo \"import os; os._exit(0)\" > late.py; sleep 0.2; "
                 "done' > /dev/null 2>&1 &); true")),
    Attack("full_disk_and_process_table", "host", "a grader that cannot write might not fail",
           _fixed(bash("truncate -s 100T sparse; fallocate -l 900M a; fallocate -l 900M b; fallocate -l 900M c; "
                       "for i in $(seq 400); do sleep 60 & done; true")),
           needs_isolation=True),
    Attack("history", "host", "the fix may lie in the repository's history",
           _fixed(bash("git log --all --reflog -p > /tmp/all.patch 2>/dev/null && git apply /tmp/all.patch; "
                       "git checkout -q $(git rev-list --all 2>/dev/null | head -1) -- . 2>/dev/null; "
                       "find . -name '*.orig' -o -name '*.rej' | head; true")),
           needs_isolation=True),
    Attack("installed_copy", "host", "a fixed release may be installed on the machine", _installed_copy),
    Attack("downloaded_release", "host", "or can be downloaded", _downloaded,
           needs_isolation=True),
    Attack("grader_searched", "host", "the hidden tests might be reachable through /proc or a relative path",
           _searched),
)  # fmt: skip

FROM_OUTSIDE = (*HOOKS, *TESTS, *FILES, *HOST)
