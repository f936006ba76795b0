"""Layers, mounts and specifications."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...errors import SandboxError
from ...runtime.contract import Backend, Change, Mount, Sandbox, SandboxSpec
from ._support import MIB, ConformanceFixtures, content, limits, put, shell


class LayerConformance(ConformanceFixtures):
    """What a sandbox is made of."""

    def test_layers_are_merged_and_never_changed(self, sandbox: Sandbox, layers: tuple[Path, ...]) -> None:
        before = [content(layer) for layer in layers]
        assert shell(sandbox, "cat both keep folder/one link; ./tool").stdout == b"topkeep1keepran\n"
        assert shell(sandbox, "echo x >> keep; chmod 777 tool; rm -r folder; mv both moved").exit_code == 0
        assert shell(sandbox, "ln keep hard; echo y > hard; touch -d @0 link").exit_code == 0
        sandbox.write("tool", b"new")
        assert [content(layer) for layer in layers] == before

    def test_many_layers(self, backend: Backend, tmp_path: Path) -> None:
        layers = [tmp_path / ("layer-" + "x" * 60 + str(number)) for number in range(130)]
        for number, layer in enumerate(layers):
            put(layer / "top", str(number))
            put(layer / str(number), "")
        sandbox = backend.open(SandboxSpec(tuple(layers), scratch=tmp_path / "scratch"))
        try:
            assert shell(sandbox, "cat top; rm 0 129; ls | wc -l").stdout.split() == [b"129129"]
            assert sandbox.changes() == [Change("0", "removed"), Change("129", "removed")]
        finally:
            sandbox.close()

    def test_no_layers(self, backend: Backend, tmp_path: Path) -> None:
        sandbox = backend.open(SandboxSpec((), scratch=tmp_path / "scratch"))
        try:
            assert shell(sandbox, "ls -A; echo x > made; cat made").stdout == b"x\n"
        finally:
            sandbox.close()

    def test_mounts(self, backend: Backend, tmp_path: Path, layers: tuple[Path, ...]) -> None:
        fixed, report = tmp_path / "fixed", tmp_path / "report"
        put(fixed / "in", "fixed")
        report.mkdir()
        read_only = (Mount(fixed, "/opt/fixed"), Mount(fixed / "in", "/opt/one"))
        mounts = (*read_only, Mount(report, "/opt/report", writable=True))
        sandbox = backend.open(SandboxSpec(layers, mounts, scratch=tmp_path / "scratch"))
        try:
            fixed_in, one, out = (sandbox.path(f"/opt/{name}") for name in ("fixed/in", "one", "report/out"))
            assert shell(sandbox, f"cat {fixed_in} {one} > {out}").exit_code == 0
            assert (report / "out").read_text() == "fixedfixed"
            if backend.isolates:
                assert shell(sandbox, "touch /opt/fixed/made").exit_code != 0
        finally:
            sandbox.close()

    def test_a_mounted_file_has_a_size(self, backend: Backend, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.touch()
        mounts = (Mount(log, "/opt/log", writable=True, max_bytes=MIB),)
        sandbox = backend.open(SandboxSpec((), mounts, scratch=tmp_path / "scratch"))
        try:
            place = sandbox.path("/opt/log")
            assert shell(sandbox, f"head -c {MIB} /dev/zero >> {place}").ended_by == "exit"
            assert shell(sandbox, f"echo x >> {place}").ended_by == "disk"
            log.write_bytes(b"")
            result = shell(sandbox, f"while sleep 0.01; do head -c 100000 /dev/zero >> {place}; done")
            assert (result.exit_code, result.ended_by) == (124, "disk")
            assert MIB < log.stat().st_size < 32 * MIB
        finally:
            sandbox.close()

    @pytest.mark.usefixtures("isolated")
    def test_a_mounted_file_is_charged(self, backend: Backend, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_bytes(bytes(MIB))
        sandbox = backend.open(SandboxSpec((), (Mount(log, "/opt/log", writable=True),), scratch=tmp_path / "scratch"))
        try:
            allowed = limits(disk_bytes=16 * MIB)
            assert shell(sandbox, f"head -c {8 * MIB} /dev/zero >> /opt/log", limits=allowed).ended_by == "exit"
            assert shell(sandbox, f"head -c {24 * MIB} /dev/zero >> /opt/log", limits=allowed).ended_by == "disk"
        finally:
            sandbox.close()

    def test_bad_specifications(self, backend: Backend, tmp_path: Path) -> None:
        with pytest.raises(SandboxError):
            backend.open(SandboxSpec((tmp_path / "nowhere",), scratch=tmp_path / "scratch"))
        with pytest.raises(SandboxError):
            backend.open(SandboxSpec((), (Mount(tmp_path / "nowhere", "/x"),), scratch=tmp_path / "scratch"))
