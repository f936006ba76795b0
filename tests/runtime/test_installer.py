"""Whose fault a failed installation is: the distribution's, or the registry's that does not answer as one."""

from __future__ import annotations

import importlib.util
import io
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from envsynth.context import BuildContext
from envsynth.errors import SandboxError, SourceError
from envsynth.languages.python import Python
from envsynth.languages.python.uv import resolve
from envsynth.models import FileMode, Origin, Source, SourceKind, SourceOptions, Tree, TreeEntry
from envsynth.runtime import installer

WHEEL = "iniconfig-1.0-py3-none-any.whl"
Answer = tuple[int, bytes]


def wheel() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("iniconfig.py", "")
        archive.writestr("iniconfig-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: iniconfig\nVersion: 1.0\n")
        archive.writestr("iniconfig-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("iniconfig-1.0.dist-info/RECORD", "")
    return buffer.getvalue()


def login_page(path: str) -> Answer:
    return 200, b"<html>hello</html>"


def small_registry(path: str) -> Answer:
    """A registry with one distribution."""
    if path.endswith(WHEEL):
        return 200, wheel()
    if path.rstrip("/").endswith("/iniconfig"):
        return 200, f'<html><body><a href="/files/{WHEEL}">{WHEEL}</a></body></html>'.encode()
    return 404, b""


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[str], Answer]], None]]:
    """Answers in the registry's place, on the own machine; what answers can be exchanged."""
    answers: list[Callable[[str], Answer]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers[-1](self.path)
            self.send_response(status)
            kind = "application/octet-stream" if self.path.endswith(".whl") else "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Cache-Control", "max-age=3600")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("UV_INDEX_URL", "UV_FIND_LINKS", "UV_EXTRA_INDEX_URL", "UV_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    address = f"http://127.0.0.1:{server.server_port}/simple"
    for name in ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, address)
    variables = {"UV_NO_CACHE": "1", "UV_HTTP_RETRIES": "0", "PIP_CONFIG_FILE": "/dev/null", "PIP_RETRIES": "0"}
    for name, value in (variables | {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(installer, "_proved", {})
    yield answers.append
    server.shutdown()
    server.server_close()


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    installer.make_venv(Path(sys.executable), tmp_path / "venv")
    return tmp_path / "venv"


@pytest.mark.parametrize("status", [200, 401, 403, 404, 429, 500])
def test_no_registry_is_never_the_distributions_fault(serve, venv, status) -> None:
    serve(lambda _: (status, b"<html>hello</html>"))
    with pytest.raises(SandboxError, match="package registry: the pinned distributions were not installed") as caught:
        installer.install_wheels(venv, ["no-such-distribution==1.0"])
    assert caught.value.retryable


def test_a_registry_without_the_distribution(serve, venv) -> None:
    serve(small_registry)
    with pytest.raises(SandboxError, match="no-such-distribution was not found") as caught:
        installer.install_wheels(venv, ["no-such-distribution==1.0"])
    assert not caught.value.retryable
    with pytest.raises(SandboxError, match="no version of iniconfig==7") as caught:
        installer.install_wheels(venv, ["iniconfig==7"])
    assert not caught.value.retryable
    installer.install_wheels(venv, ["iniconfig==1.0"])


def test_installed_files_are_not_those_of_the_cache(serve, venv, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("UV_NO_CACHE")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    serve(small_registry)
    for _ in range(2):
        installer.install_wheels(venv, ["iniconfig==1.0"])
        (found,) = venv.glob("lib/python3*/site-packages/iniconfig-1.0.dist-info/METADATA")
        assert found.read_text().startswith("Metadata-Version")
        found.write_text("")
        shutil.rmtree(venv)
        installer.make_venv(Path(sys.executable), venv)


def test_a_good_answer_does_not_stand_for_ever(serve, monkeypatch) -> None:
    serve(small_registry)
    assert installer.registry_answers()
    serve(login_page)
    assert installer.registry_answers()
    monkeypatch.setattr(installer, "_PROBE_HOLDS", 0.0)
    assert not installer.registry_answers()


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this interpreter has no pip")
def test_the_same_without_uv(serve, venv, monkeypatch) -> None:
    monkeypatch.setattr(installer, "find_uv", lambda: None)
    for answer, retryable in ((login_page, True), (small_registry, False)):
        serve(answer)
        with pytest.raises(SandboxError, match="no-such-distribution") as caught:
            installer.install_wheels(venv, ["no-such-distribution==1.0"])
        assert caught.value.retryable is retryable


def test_a_login_page_that_uv_has_kept_is_asked_again(serve, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("UV_NO_CACHE")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path))
    serve(login_page)
    with pytest.raises(SandboxError, match="login page"):
        resolve(["iniconfig"], Path(sys.executable), "")
    serve(small_registry)
    assert resolve(["iniconfig"], Path(sys.executable), "") == ("iniconfig==1.0",)


def test_a_login_page_is_not_remembered_as_the_projects_fault(serve, tmp_path) -> None:
    context = BuildContext(tmp_path / "cache", sandbox="local")
    files = {"test_a.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"}
    files["setup.cfg"] = "[metadata]\nname = a\n[options]\ninstall_requires = no-such-distribution\n"
    entries = [
        TreeEntry(path=path, mode=FileMode.FILE, blob=context.blobs.put(text.encode()), size=len(text))
        for path, text in sorted(files.items())
    ]
    source = Source(
        uri="file:///project", kind=SourceKind.GIT, location="/project", options=SourceOptions(trusted=True),
        origin=Origin(file="list.txt", line=1),
    )  # fmt: skip

    def prepare() -> None:
        tree = Tree(entries=tuple(entries))
        Python().prepare(tree, newest="2024-05-20", version_hint="1", source=source, context=context)

    serve(login_page)
    with pytest.raises(SandboxError, match="login page") as caught:
        prepare()
    assert caught.value.retryable
    serve(small_registry)
    with pytest.raises(SourceError, match=r"no test of this project can be collected .*No solution found"):
        prepare()


@pytest.mark.parametrize(
    ("said", "retryable", "word"),
    [
        ("error: Request failed\n cause: dns error: failed to lookup address information", True, "cannot be reached"),
        ("Failed to fetch: tcp connect error: Connection refused (os error 111)", True, "cannot be reached"),
        ("invalid peer certificate: UnknownIssuer", True, "cannot be reached"),
        ("hint: An index URL could not be queried (401 Unauthorized)\nNo solution found", True, "cannot be reached"),
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError: Connection refused'\n"
            "ERROR: No matching distribution found for a==1", True, "cannot be reached",
        ),
        ("Failed to read metadata: unexpected header", True, "unexpected header"),
        ("", True, "gave no reason"),
        ("No solution found when resolving dependencies: nosuch was not found", False, "nosuch was not found"),
        ("Because there is no version of lazy-object-proxy==9, unsatisfiable: No solution found", False, "proxy==9"),
        ("Because all versions of docopt have no usable wheels", False, "no usable wheels"),
        ("The build backend returned an error\nCall to `a.build_wheel` failed (exit status: 1)", False, "exit status"),
        ("failed to write: No space left on device (os error 28)", False, "no space left"),
        ("No solution found: a==1 has an invalid package format", False, "invalid package format"),
    ],
)  # fmt: skip
def test_what_installers_say_is_classified(said, retryable, word, monkeypatch) -> None:
    monkeypatch.setattr(installer, "registry_answers", lambda **_: True)
    error = installer.failure("it was not installed", said)
    assert error.retryable is retryable
    assert word in str(error)
    assert "\n" not in str(error)
