"""Commands and their limits."""

from __future__ import annotations

import os

import pytest

from ...runtime.contract import Sandbox
from ._attacks import (
    BIG_FILES,
    DAEMON,
    DESCRIPTORS,
    FORK_BOMB,
    MANY_FILES,
    MEMORY_HOG,
    MEMORY_HOGS,
    REMOVED_BUT_OPEN,
    SHARED_MEMORY,
    TWO_WORKERS,
)
from ._support import LIMITS, MIB, ConformanceFixtures, limits, mark, python, resident, running, shell


class CommandConformance(ConformanceFixtures):
    """Running commands."""

    def test_streams_and_code(self, sandbox: Sandbox) -> None:
        result = sandbox.exec(["sh", "-c", "cat; echo err >&2; exit 7"], limits=LIMITS, stdin=b"in")
        assert (result.exit_code, result.stdout, result.stderr, result.ended_by) == (7, b"in", b"err\n", "exit")

    def test_large_input(self, sandbox: Sandbox) -> None:
        result = sandbox.exec(["sh", "-c", "wc -c"], limits=LIMITS, stdin=bytes(3 * MIB))
        assert result.stdout.split() == [str(3 * MIB).encode()]
        assert sandbox.exec(["true"], limits=LIMITS, stdin=bytes(3 * MIB)).exit_code == 0

    def test_words_stay_words(self, sandbox: Sandbox) -> None:
        words = ["-n", "", "a b", "$HOME", "*", "'\"\\", "new\nline", "ü", "\udcff"]
        result = sandbox.exec(["printf", "%s\\0", *words], limits=LIMITS)
        assert result.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)

    def test_missing_command(self, sandbox: Sandbox) -> None:
        assert sandbox.exec(["no-such-command"], limits=LIMITS).exit_code == 127
        assert sandbox.exec(["/no/such/command"], limits=LIMITS).exit_code == 127

    def test_not_executable(self, sandbox: Sandbox) -> None:
        assert sandbox.exec(["./keep"], limits=LIMITS).exit_code == 126

    def test_missing_folder_is_no_fault_of_the_environment(self, sandbox: Sandbox) -> None:
        assert sandbox.exec(["true"], limits=LIMITS, cwd="nowhere").exit_code == 126

    def test_killed_by_signal(self, sandbox: Sandbox) -> None:
        result = sandbox.exec(["sh", "-c", "kill -SEGV $$"], limits=LIMITS)
        assert (result.exit_code, result.stderr, result.ended_by) == (139, b"", "exit")

    def test_exit_codes_are_the_commands_own(self, sandbox: Sandbox) -> None:
        assert [shell(sandbox, f"exit {code}").exit_code for code in (0, 1, 2, 124, 126, 127, 255)] == [
            0, 1, 2, 124, 126, 127, 255,
        ]  # fmt: skip

    def test_builtin_names_are_programs(self, sandbox: Sandbox) -> None:
        assert sandbox.exec(["exit", "3"], limits=LIMITS).exit_code == 127
        assert sandbox.exec(["echo", "-e", "x"], limits=LIMITS).exit_code == 0

    def test_working_folder_and_variables(self, sandbox: Sandbox) -> None:
        result = sandbox.exec(
            ["sh", "-c", "pwd; echo $GIVEN $MORE"], limits=LIMITS, cwd="folder/deep", variables={"MORE": "a b"}
        )
        assert result.stdout.decode() == f"{sandbox.path('folder/deep')}\nyes a b\n"

    def test_host_environment_stays_out(self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOST_SECRET", "s3cret")
        assert b"s3cret" not in shell(sandbox, "env").stdout

    def test_descriptors_of_ours_stay_out(self, sandbox: Sandbox) -> None:
        assert python(sandbox, DESCRIPTORS).stdout == b"[]\n"

    def test_private_home_and_temporary_folder_last(self, sandbox: Sandbox) -> None:
        assert shell(sandbox, 'echo h > "$HOME/x"; echo t > "${TMPDIR:-/tmp}/x"').exit_code == 0
        assert shell(sandbox, 'cat "$HOME/x" "${TMPDIR:-/tmp}/x"').stdout == b"h\nt\n"
        assert sandbox.changes() == []

    def test_processor_time_of_the_tree(self, sandbox: Sandbox) -> None:
        result = python(sandbox, TWO_WORKERS)
        assert 0.1 < result.cpu_s < 20
        assert result.wall_s >= result.cpu_s / (os.cpu_count() or 1) / 2

    def test_bad_commands(self, sandbox: Sandbox) -> None:
        for command in ([], ["a\0b"]):
            with pytest.raises(ValueError, match=r"empty|NUL"):
                sandbox.exec(command, limits=LIMITS)


class LimitConformance(ConformanceFixtures):
    """Ending commands that take too much."""

    def test_timeout_kills_the_tree(self, sandbox: Sandbox) -> None:
        token = mark()
        result = python(sandbox, DAEMON, token, "60", limits=limits(wall_s=1.0))
        assert (result.exit_code, result.ended_by) == (124, "wall")
        assert 0.9 < result.wall_s < 10
        assert not running(token)

    def test_daemons_die_with_the_command(self, sandbox: Sandbox) -> None:
        token = mark()
        result = python(sandbox, DAEMON, token, "0")
        assert (result.exit_code, result.ended_by) == (0, "exit")
        assert not running(token)

    def test_background_process_does_not_hold_the_result(self, sandbox: Sandbox) -> None:
        token = mark()
        result = shell(sandbox, f"sleep {token} & echo started")
        assert result.stdout == b"started\n"
        assert result.wall_s < 10
        assert not running(token)

    def test_fork_bomb(self, sandbox: Sandbox) -> None:
        result = python(sandbox, FORK_BOMB, limits=limits(wall_s=15.0))
        assert (result.exit_code, result.ended_by) == (124, "processes")
        assert shell(sandbox, "echo fine").stdout == b"fine\n"

    def test_many_threads(self, sandbox: Sandbox) -> None:
        code = "import threading, time\nfor _ in range(5000):\n threading.Thread(target=time.sleep, args=(60,)).start()"
        result = python(sandbox, code, limits=limits(wall_s=15.0))
        assert result.exit_code != 0
        assert result.wall_s < 15

    @pytest.mark.parametrize("hog", [pytest.param(MEMORY_HOG, id="one"), pytest.param(MEMORY_HOGS, id="several")])
    def test_memory_hog(self, sandbox: Sandbox, hog: str) -> None:
        result = python(sandbox, hog)
        assert (result.exit_code, result.ended_by) == (124, "memory")

    def test_shared_memory_counts_once(self, sandbox: Sandbox) -> None:
        assert python(sandbox, SHARED_MEMORY).ended_by == "exit"

    def test_reserved_memory_is_free(self, sandbox: Sandbox) -> None:
        code = "import mmap\nmmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)"
        assert python(sandbox, code).exit_code == 0

    @pytest.mark.parametrize("place", ["workspace", "temporary"])
    @pytest.mark.parametrize(
        "filler",
        [pytest.param(BIG_FILES, id="big"), pytest.param(MANY_FILES, id="many", marks=pytest.mark.slow)],
    )
    def test_disk_filler(self, sandbox: Sandbox, filler: str, place: str) -> None:
        folder = "." if place == "workspace" else shell(sandbox, 'printf %s "${TMPDIR:-/tmp}"').stdout.decode()
        result = python(sandbox, filler, folder, limits=limits(disk_bytes=(128 if filler == BIG_FILES else 12) * MIB))
        assert (result.exit_code, result.ended_by) == (124, "disk")
        assert shell(sandbox, f"rm -rf {folder}/*").exit_code == 0
        assert shell(sandbox, f"ls {folder}").stdout == b""

    def test_removed_files_count(self, sandbox: Sandbox) -> None:
        assert python(sandbox, REMOVED_BUT_OPEN).ended_by == "disk"

    def test_file_size(self, sandbox: Sandbox) -> None:
        result = shell(sandbox, "head -c 2000000 /dev/zero > big; wc -c < big", limits=limits(file_bytes=MIB))
        assert result.stdout.split() == [str(MIB).encode()]

    def test_endless_output(self, sandbox: Sandbox) -> None:
        before = resident()
        allowed = limits(wall_s=60, output_bytes=MIB)
        result = shell(sandbox, "head -c 1073741824 /dev/zero; echo end >&2", limits=allowed)
        assert (result.exit_code, result.ended_by) == (0, "exit")
        assert len(result.stdout) + len(result.stderr) == MIB
        assert result.output_bytes == 2**30 + 4
        assert resident() - before < 64 * MIB
