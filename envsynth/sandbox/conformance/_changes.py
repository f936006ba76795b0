"""What `changes` and `read_changed` say, whatever the command did to the tree."""

from __future__ import annotations

import os
import time

import pytest

from ...runtime.contract import Change, Sandbox
from ._support import ConformanceFixtures, limits, python, shell


class ChangeConformance(ConformanceFixtures):
    """`changes` and `read_changed`."""

    def test_nothing(self, sandbox: Sandbox) -> None:
        shell(sandbox, "cat both; ls -R; mkdir empty")
        assert sandbox.changes() == []

    @pytest.mark.parametrize(
        ("script", "expected"),
        [
            ("echo x > new", ["+new"]),
            ("echo x > keep", ["+keep"]),
            ("rm keep", ["-keep"]),
            ("chmod +x keep", ["+keep"]),
            ("mv keep folder/", ["+folder/keep", "-keep"]),
            ("rm -r folder", ["-folder/deep/two", "-folder/one"]),
            ("rm -r folder; mkdir -p folder/deep; echo 3 > folder/deep/two", ["+folder/deep/two", "-folder/one"]),
            ("rm -r folder; mkdir folder; echo 3 > folder/new", ["-folder/deep/two", "+folder/new", "-folder/one"]),
            ("rm -r folder; echo x > folder", ["+folder", "-folder/deep/two", "-folder/one"]),
            ("rm -r folder; ln -s keep folder", ["+folder", "-folder/deep/two", "-folder/one"]),
            ("rm keep; mkdir keep; echo x > keep/in", ["-keep", "+keep/in"]),
            ("rm keep; mkdir keep", ["-keep"]),
            ("rm link; ln -s both link", ["+link"]),
            ("rm keep; ln -s both keep", ["+keep"]),
            ("rm both; echo x > both", ["+both"]),
            ("rm both", ["-both"]),
            ("mv folder moved", ["-folder/deep/two", "-folder/one", "+moved/deep/two", "+moved/one"]),
            ("mkfifo fifo", ["+fifo"]),
        ],
    )
    def test_kinds(self, sandbox: Sandbox, script: str, expected: list[str]) -> None:
        assert shell(sandbox, script).exit_code == 0
        assert _short(sandbox.changes()) == expected

    def test_same_content_again(self, sandbox: Sandbox) -> None:
        assert shell(sandbox, "printf keep > keep; touch both").exit_code == 0
        assert {change.path for change in sandbox.changes()} <= {"keep", "both"}

    def test_restored_and_removed_again(self, sandbox: Sandbox) -> None:
        shell(sandbox, "rm -r folder")
        shell(sandbox, "mkdir folder; echo 1 > folder/one")
        shell(sandbox, "rm folder/one; mkdir folder/one; echo x > folder/one/in")
        assert _short(sandbox.changes()) == ["-folder/deep/two", "-folder/one", "+folder/one/in"]

    @pytest.mark.parametrize("mode", ["000", "111", "222", "444", "555"])
    def test_closed_modes_hide_nothing(self, sandbox: Sandbox, mode: str) -> None:
        script = (
            "echo x > keep; mkdir -p made/inner; echo y > made/inner/file; rm folder/one; rm -r folder/deep; "
            f"mkdir folder/deep; chmod {mode} keep made/inner/file folder/deep made/inner made folder"
        )
        assert shell(sandbox, script).exit_code == 0
        expected = ["-folder/deep/two", "-folder/one", "+keep", "+made/inner/file"]
        for _ in range(2):
            assert _short(sandbox.changes()) == expected
            assert sandbox.read_changed("made/inner/file")[0] == b"y\n"
            assert sandbox.read_changed("keep")[0] == b"x\n"
        assert shell(sandbox, "stat -c %a made keep folder").stdout.split() == [str(int(mode)).encode()] * 3
        fork = sandbox.fork()
        try:
            assert _short(fork.changes()) == expected
            assert shell(fork, "stat -c %a made keep folder").stdout.split() == [str(int(mode)).encode()] * 3
        finally:
            fork.close()

    def test_closed_workspace(self, sandbox: Sandbox) -> None:
        assert shell(sandbox, "echo x > new; chmod 000 .").exit_code == 0
        assert _short(sandbox.changes()) == ["+new"]
        assert sandbox.read_changed("new") == (b"x\n", "file")

    def test_special_files(self, sandbox: Sandbox) -> None:
        code = (
            "import os, socket\n"
            "os.mkfifo('fifo')\n"
            "socket.socket(socket.AF_UNIX).bind('socket')\n"
            "open('attribute', 'w').close()\n"
            "for name in ('user.overlay.whiteout', 'user.overlay.opaque'):\n"
            "    for place in ('attribute', 'folder'):\n"
            "        try: os.setxattr(place, name, b'y')\n"
            "        except OSError: pass\n"
        )
        assert python(sandbox, code).exit_code == 0
        assert _short(sandbox.changes()) == ["+attribute", "+fifo", "+socket"]
        for path in ("fifo", "socket"):
            with pytest.raises(ValueError, match="regular"):
                sandbox.read_changed(path)
        assert shell(sandbox, "cat folder/one").stdout == b"1"

    def test_read_changed(self, sandbox: Sandbox) -> None:
        shell(sandbox, "printf '#!' > run; chmod +x run; ln -s ../../etc/passwd out")
        shell(sandbox, "ln -s folder way; echo x > folder/new")
        assert sandbox.read_changed("run") == (b"#!", "executable")
        assert sandbox.read_changed("out") == (b"../../etc/passwd", "symlink")
        assert sandbox.read_changed("folder/new") == (b"x\n", "file")
        for path in ("way/new", "nowhere", "../secret", "/etc/passwd", "", ".", "folder/../run", "run/below"):
            with pytest.raises(FileNotFoundError):
                sandbox.read_changed(path)
        with pytest.raises(ValueError, match="larger"):
            sandbox.read_changed("run", max_bytes=1)

    def test_removed_is_gone(self, sandbox: Sandbox) -> None:
        shell(sandbox, "rm keep")
        with pytest.raises(FileNotFoundError):
            sandbox.read_changed("keep")

    def test_sparse_files_stay_sparse(self, sandbox: Sandbox) -> None:
        assert shell(sandbox, "truncate -s 60000000 holes; printf end >> holes").exit_code == 0
        fork = sandbox.fork()
        try:
            assert int(shell(fork, "stat -c %b holes").stdout) * 512 < 10**6
            assert shell(fork, "tail -c 3 holes; wc -c < holes").stdout == b"end60000003\n"
        finally:
            fork.close()

    def test_names_that_are_not_text(self, sandbox: Sandbox) -> None:
        assert python(sandbox, r"open(b'caf\xe9', 'w').close()").exit_code == 0
        assert sandbox.changes() == [Change(os.fsdecode(b"caf\xe9"), "present")]
        assert sandbox.read_changed(os.fsdecode(b"caf\xe9")) == (b"", "file")

    @pytest.mark.slow
    def test_hundred_thousand_files(self, sandbox: Sandbox) -> None:
        code = (
            "import os\n"
            "for a in range(100):\n"
            "    os.mkdir(f'm{a}')\n"
            "    for b in range(1000): open(f'm{a}/{b}', 'w').close()"
        )
        assert python(sandbox, code, limits=limits(wall_s=120, disk_bytes=2**31)).exit_code == 0
        started = time.monotonic()
        assert len(sandbox.changes()) == 100_000
        assert time.monotonic() - started < 20


def _short(changes: list[Change]) -> list[str]:
    return [("+" if kind == "present" else "-") + path for path, kind in changes]
