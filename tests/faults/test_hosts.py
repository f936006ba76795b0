"""Registries and git hosts that hang, drip, break off or lie: finite times, a named cause, leads owed and not lost."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from envsynth.errors import SandboxError
from envsynth.languages.python import uv

pytestmark = pytest.mark.slow

Answer = Callable[[BaseHTTPRequestHandler], None]
Serve = Callable[[Answer], str]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answer: Answer
    over: threading.Event


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        try:
            self.server.answer(self)
        except OSError:
            self.close_connection = True

    do_HEAD = do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a server on the loopback that answers so, and returns its address."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    servers: list[_Server] = []

    def start(answer: Answer) -> str:
        server = _Server(("127.0.0.1", 0), _Handler)
        server.answer, server.over = answer, threading.Event()
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.over.set()
        server.shutdown()
        server.server_close()


def send(handler: BaseHTTPRequestHandler, body: bytes, kind: str = "text/html", code: int = 200) -> None:
    handler.send_response(code)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def hang(handler: Any) -> None:
    handler.server.over.wait(300)
    handler.close_connection = True


def drip(handler: Any) -> None:
    """One byte at a time, fast enough that each is news, and never an end."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not handler.server.over.wait(0.2):
        handler.wfile.write(b"<")


def broken(handler: Any) -> None:
    send(handler, b"it broke", code=500)


def close(handler: Any) -> None:
    """Break off in the middle of the answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.wfile.write(b"<html>")
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def login(handler: Any) -> None:
    send(handler, b"<html><form>Sign in to the network</form></html>")


def garbage(handler: Any) -> None:
    send(
        handler,
        b"001e# service=git-upload-pack\n0000zzzz\x00\x01garbage",
        "application/x-git-upload-pack-advertisement",
    )


# --- git hosts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (hang, "the host does not answer"), (drip, "the host does not answer"), (broken, "the host cannot be reached"),
        (close, "the host cannot be reached"), (login, "names no branch and no tag"),
        (garbage, "does not answer as git"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_a_git_host(lab: Any, serve: Serve, tmp_path: Path, answer: Answer, words: str) -> None:
    began = time.monotonic()
    ended = lab.build(tmp_path, source=f"{serve(answer)}/owner/name trusted=yes timeout=2", timeout=60)
    assert words in ended.line
    assert "/owner/name" in ended.line
    assert "Next: " in ended.line
    assert ended.code == (2 if answer is login else 3), ended
    assert time.monotonic() - began < 30
    assert lab.statuses(tmp_path) == {}


@pytest.fixture
def smart(lab: Any, tmp_path: Path) -> Callable[[Answer], Answer]:
    """A git host that lists its refs as it should, and then answers the request for objects so."""
    bare = tmp_path / "served.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(lab.repository), str(bare)], check=True)

    def make(answer: Answer) -> Answer:
        def reply(handler: Any) -> None:
            if handler.command == "POST":
                handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
                answer(handler)
                return
            refs = subprocess.run(
                ["git", "upload-pack", "--http-backend-info-refs", str(bare)], capture_output=True, check=True,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            ).stdout  # fmt: skip
            advertised = b"001e# service=git-upload-pack\n0000" + refs
            send(handler, advertised, "application/x-git-upload-pack-advertisement")

        return reply

    return make


def pack_garbage(handler: Any) -> None:
    send(handler, b"0008NAK\nPACK\x00\x00\x00\x02\x00\x00\x00\x05 not a pack", "application/x-git-upload-pack-result")


@pytest.mark.parametrize("answer", [hang, drip, broken, close, pack_garbage], ids=lambda value: value.__name__)
def test_a_git_host_that_fails_in_the_middle(
    lab: Any, serve: Serve, smart: Callable[[Answer], Answer], tmp_path: Path, answer: Answer
) -> None:
    began = time.monotonic()
    address = serve(smart(answer))
    ended = lab.build(tmp_path, source=f"{address}/owner/name trusted=yes timeout=2", timeout=90)
    assert ended.code == 3, ended
    assert f"{address}/owner/name" in ended.line
    assert "Next: " in ended.line
    assert time.monotonic() - began < 45
    assert list((tmp_path / "cache/clones").iterdir()) == []


# --- registries ----------------------------------------------------------------------------------------------


WHEEL = "iniconfig-1.0-py3-none-any.whl"


def wheel(name: str = "iniconfig") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{name}.py", "x = 1\n" * 1000)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return packed.getvalue()


def registry(download: Answer, *, digest: str = "") -> Answer:
    """A registry with one distribution, that answers its download so."""

    def answer(handler: Any) -> None:
        if handler.path.rstrip("/").endswith("iniconfig"):
            file = {
                "filename": WHEEL, "url": f"/{WHEEL}", "hashes": {"sha256": digest} if digest else {},
                "upload-time": "2020-01-01T00:00:00Z",
            }  # fmt: skip
            page = {"meta": {"api-version": "1.1"}, "name": "iniconfig", "versions": ["1.0"], "files": [file]}
            send(handler, json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json")
        elif handler.path.endswith(".metadata"):
            send(handler, b"", code=404)
        elif handler.path.endswith(".whl"):
            download(handler)
        else:
            send(handler, b"", code=404)

    return answer


def good_wheel(handler: Any) -> None:
    send(handler, wheel(), "application/octet-stream")


def damaged_wheel(handler: Any) -> None:
    content = bytearray(wheel())
    content[60:90] = b"\xff" * 30
    send(handler, bytes(content), "application/octet-stream")


WRONG = hashlib.sha256(b"something else").hexdigest()


@pytest.mark.parametrize(
    "answer",
    [
        hang, login, registry(hang), registry(broken), registry(close), registry(damaged_wheel),
        registry(good_wheel, digest=WRONG),
    ],
    ids=["hang", "login", "w-hang", "w-broken", "w-close", "w-damaged", "w-hash"],
)  # fmt: skip
def test_a_registry(
    lab: Any, serve: Serve, make_project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    """Its leads are owed, and become tasks once it answers."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "2")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    setup = "[metadata]\nname = calc\n[options]\ninstall_requires = iniconfig\n"
    project = make_project(tmp_path / "project", 1, extra={"setup.cfg": setup})
    source = f"{project} trusted=yes"
    began = time.monotonic()
    ended = lab.build(tmp_path, source=source, UV_DEFAULT_INDEX=serve(answer) + "/simple", timeout=200)
    assert ended.code == 3, ended
    assert ended.report["statuses"] == {"dropped": 1, "owed": 1}, ended.report["funnel"]
    (error,) = ended.told("error")
    assert "registry" in error or "iniconfig" in error
    assert time.monotonic() - began < 120
    again = lab.build(tmp_path, source=source, UV_DEFAULT_INDEX=serve(registry(good_wheel)) + "/simple")
    assert again.report["statuses"] == {"admitted": 1, "dropped": 1}, again


def test_a_registry_that_drips(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte is news to the installer, so that only the limit of the whole call ends it."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", serve(drip) + "/simple")
    monkeypatch.setattr(uv, "RESOLVE_SECONDS", 3.0)
    with pytest.raises(SandboxError, match=r"not resolved \(no end after 3 s\). Next: check the connection") as caught:
        uv.resolve(["iniconfig"], Path(sys.executable), "")
    assert caught.value.retryable


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_equal_errors_stop_the_build(lab: Any, make_project: Any, tmp_path: Path, jobs: str) -> None:
    """Nobody answers at the registry's address: five leads are asked for it, those begun by then, and not all."""
    setup = "[metadata]\nname = calc\n[options]\ninstall_requires = iniconfig\n"
    project = make_project(tmp_path / "project", 9, extra={"setup.cfg": setup})
    ended = lab.build(
        tmp_path, "--jobs", jobs, source=f"{project} trusted=yes", UV_DEFAULT_INDEX="http://127.0.0.1:9/simple",
        UV_CACHE_DIR=str(tmp_path / "uv"), UV_HTTP_RETRIES="0", no_proxy="127.0.0.1",
    )  # fmt: skip
    assert ended.code == 3
    assert "stopped after 5 equal infrastructure errors in a row (package registry: " in ended.line
    assert "cannot be reached" in ended.line
    assert len(ended.told("error")) == 1
    assert 5 <= list(lab.statuses(tmp_path).values()).count("owed") < 5 + int(jobs)
    assert lab.survivors(tmp_path) == []
