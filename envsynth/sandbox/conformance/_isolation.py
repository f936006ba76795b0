"""What a command must not reach."""

from __future__ import annotations

import os
import socket
import subprocess
import uuid
from pathlib import Path

import pytest

from ...runtime.contract import Backend, Mount, Sandbox, SandboxSpec
from ._support import MIB, ConformanceFixtures, put, python, shell


class IsolationConformance(ConformanceFixtures):
    """Isolation, asked only of backends that claim it."""

    @pytest.mark.usefixtures("isolated")
    def test_no_network(self, sandbox: Sandbox) -> None:
        name = f"envsynth-{uuid.uuid4().hex}"
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind("\0" + name)
            abstract.listen()
            code = (
                "import socket\n"
                f"for family, place in ((socket.AF_INET, ('127.0.0.1', {server.getsockname()[1]})),\n"
                f"                      (socket.AF_UNIX, '\\0{name}'), (socket.AF_INET, ('192.0.2.1', 80))):\n"
                "    s = socket.socket(family); s.settimeout(2)\n"
                "    try: s.connect(place); print('CONNECTED', place)\n"
                "    except OSError as e: print('refused')\n"
                "print(socket.if_nameindex())"
            )
            out = python(sandbox, code).stdout
        assert out.count(b"refused") == 3
        assert b"[(1, 'lo')]" in out

    @pytest.mark.usefixtures("isolated")
    def test_no_host_files(self, sandbox: Sandbox, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("s3cret")
        places = ["/etc/shadow", "/etc/hostname", "/var/log", "/root/.ssh", "/sys/class", "/boot", str(secret)]
        for place in (*places, str(Path.home() / ".cache")):
            # A backend may have a file of its own there, but not the host's.
            script = f"cat {place} || ls {place}"
            seen = shell(sandbox, script).stdout
            hosts = subprocess.run(["sh", "-c", script], capture_output=True, check=False).stdout
            assert not seen or seen != hosts, place
        assert b"s3cret" not in shell(sandbox, f"cat {secret}").stdout
        assert shell(sandbox, "ls /home; ls -A /sys /run").stdout.split() == [b"user", b"/run:", b"/sys:"]

    @pytest.mark.usefixtures("isolated")
    def test_covered_folders_and_system_libraries_look_empty(self, backend: Backend, tmp_path: Path) -> None:
        put(tmp_path / "tools/lib/installed/secret.py", "x = 1\n")
        put(tmp_path / "layer/keep", "")
        mounts = (Mount(tmp_path / "tools", "/tools"),)
        spec = SandboxSpec(
            (tmp_path / "layer",), mounts, covered=("/tools/lib/installed",), scratch=tmp_path / "scratch"
        )
        sandbox = backend.open(spec)
        try:
            assert shell(sandbox, "ls -A /tools/lib/installed").stdout == b""
            assert shell(sandbox, "touch /tools/lib/installed/x").exit_code != 0
            everywhere = "ls -A /usr/lib*/python3*/*-packages /usr/local/lib*/python3*/*-packages 2> /dev/null"
            named = shell(sandbox, everywhere).stdout.split(b"\n")
            assert [line for line in named if line and not line.endswith(b"-packages:")] == []
        finally:
            sandbox.close()

    @pytest.mark.usefixtures("isolated")
    def test_no_call_drops_or_tells_cached_pages(self, backend: Backend, sandbox: Sandbox) -> None:
        if not getattr(backend, "filters_calls", False):
            pytest.skip(f"{backend.name} does not claim to filter calls that drop or tell cached pages")
        code = (
            "import os\n"
            "file = os.open('/usr/bin/env', os.O_RDONLY)\n"
            "for advice in range(6):\n"
            "    try: os.posix_fadvise(file, 0, 0, advice); print('DROPPED', advice)\n"
            "    except OSError: print('refused')\n"
            "try: os.preadv(file, [bytearray(1)], 0, os.RWF_NOWAIT); print('TOLD')\n"
            "except BlockingIOError: print('TOLD')\n"
            "except OSError: print('refused')\n"
            "buffer = bytearray(4)\n"
            "print(os.preadv(file, [buffer], 0), os.pread(file, 4, 0) == buffer == b'\\x7fELF')"
        )
        assert python(sandbox, code).stdout.split(b"\n") == [b"refused"] * 7 + [b"4 True", b""]

    @pytest.mark.usefixtures("isolated")
    def test_no_host_processes(self, sandbox: Sandbox) -> None:
        out = python(sandbox, "import os; print(len([n for n in os.listdir('/proc') if n.isdigit()]))").stdout
        assert int(out) <= 4
        assert shell(sandbox, f"kill -0 {os.getpid()}").exit_code != 0

    @pytest.mark.usefixtures("isolated")
    def test_no_privileges(self, sandbox: Sandbox) -> None:
        status = shell(sandbox, "cat /proc/self/status").stdout.decode().splitlines()
        fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
        assert {fields[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
        assert fields["NoNewPrivs"] == "1"
        assert shell(sandbox, "mount -t tmpfs none /tmp").exit_code != 0
        assert shell(sandbox, "unshare -Ur true").exit_code != 0
        assert shell(sandbox, "mknod disk b 254 0").exit_code != 0

    @pytest.mark.usefixtures("isolated")
    def test_kernel_settings_cannot_be_written(self, sandbox: Sandbox) -> None:
        code = (
            "import os, stat\n"
            "for folder, _, names in os.walk('/proc'):\n"
            "    if folder.startswith('/proc/') and folder.split('/')[2].isdigit(): continue\n"
            "    for name in names:\n"
            "        path = os.path.join(folder, name)\n"
            "        regular = stat.S_ISREG(os.lstat(path).st_mode)\n"
            "        if regular and os.access(path, os.W_OK): print(path)"
        )
        assert python(sandbox, code).stdout == b""

    @pytest.mark.usefixtures("isolated")
    def test_nothing_of_the_system_can_be_written(self, sandbox: Sandbox) -> None:
        for place in ("/usr", "/etc", "/", "/dev", "/bin", "/lib", "/sys", "/run", "/var", "/home"):
            assert shell(sandbox, f"touch {place}/made").exit_code != 0, place
        result = shell(sandbox, "head -c 200000000 /dev/zero > /dev/shm/x; wc -c < /dev/shm/x")
        assert result.ended_by != "exit" or int(result.stdout) < 128 * MIB

    @pytest.mark.usefixtures("isolated")
    def test_links_lead_nowhere(self, sandbox: Sandbox, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("s3cret")
        shell(sandbox, f"ln -s {secret} out; ln -s {tmp_path} folder-out; ln -s /proc/1/root root")
        for path in ("out", "folder-out/secret", f"root{secret}"):
            with pytest.raises(OSError, match=r"(?i)no such|denied|not a"):
                sandbox.read(path)
        assert sandbox.read_changed("out") == (str(secret).encode(), "symlink")
        with pytest.raises(FileNotFoundError):
            sandbox.read_changed("folder-out/secret")
        assert shell(sandbox, f"ln {secret} hard || ln /etc/passwd hard").exit_code != 0

    def test_links_lead_no_write_out(self, sandbox: Sandbox, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        shell(sandbox, f"ln -s {outside} out; ln -s {outside}/file file-out")
        for path in ("out/made", "file-out", f"{'../' * 20}{outside}/up"):
            try:
                sandbox.write(path, b"x")
            except OSError:
                continue
        assert list(outside.iterdir()) == []
