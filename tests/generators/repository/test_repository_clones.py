"""Locations of every kind, and what is wrong with them in one line."""

from __future__ import annotations

import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from envsynth.errors import EnvsynthError, SandboxError, SourceError
from envsynth.generators.repository.clones import Clones, explain, without_password


@pytest.fixture
def clones(tmp_path: Path) -> Clones:
    return Clones(tmp_path / "cache", timeout=20, offline=False)


def message(clones: Clones, location: object, revision: str | None = None) -> EnvsynthError:
    with pytest.raises(EnvsynthError) as caught:
        clones.open(str(location), revision, refresh=True)
    assert "\n" not in str(caught.value)
    assert caught.value.next_step or caught.value.cause
    return caught.value


def test_paths_file_urls_and_bundles_give_the_same_commit(clones, fixed_repo, tmp_path):
    head = fixed_repo.git("rev-parse", "HEAD").decode().strip()
    bundle = tmp_path / "x.bundle"
    fixed_repo.git("bundle", "create", str(bundle), "HEAD", "main")
    for location in (fixed_repo.path, f"file://{fixed_repo.path}", bundle):
        clone, found = clones.open(str(location), None, refresh=True)
        assert found == head
        assert clone.run("rev-list", "--count", "HEAD").strip() == b"2"
        assert clone.run("rev-parse", "--is-bare-repository").strip() == b"true"


def test_a_bundle_without_head_still_has_a_default_branch(clones, fixed_repo, tmp_path):
    bundle = tmp_path / "y.bundle"
    fixed_repo.git("bundle", "create", str(bundle), "main")
    assert clones.open(str(bundle), None, refresh=True)[1] == fixed_repo.git("rev-parse", "HEAD").decode().strip()


def test_branches_tags_and_hashes_are_revisions(clones, fixed_repo):
    first = fixed_repo.git("rev-parse", "HEAD~1").decode().strip()
    for revision in ("v1.0", first, first[:10], "main~1"):
        assert clones.open(str(fixed_repo.path), revision, refresh=True)[1] == first


def test_a_commit_that_only_a_pull_ref_reaches(clones, fixed_repo):
    fixed_repo.git("checkout", "-q", "--detach")
    lone = fixed_repo.commit("lone", {"a": "b"})
    fixed_repo.git("update-ref", "refs/pull/1/head", lone)
    fixed_repo.git("checkout", "-q", "main")
    assert clones.open(str(fixed_repo.path), "refs/pull/1/head", refresh=True)[1] == lone


def test_news_are_fetched_only_when_asked(clones, fixed_repo):
    old = clones.open(str(fixed_repo.path), None, refresh=True)[1]
    new = fixed_repo.commit("more", {"pkg/maths.py": "x = 1\n"})
    assert clones.open(str(fixed_repo.path), None, refresh=False)[1] == old
    assert clones.open(str(fixed_repo.path), None, refresh=True)[1] == new


def test_a_rewritten_branch_is_followed(clones, fixed_repo):
    clones.open(str(fixed_repo.path), None, refresh=True)
    fixed_repo.git("reset", "-q", "--hard", "v1.0")
    assert (
        clones.open(str(fixed_repo.path), None, refresh=True)[1] == fixed_repo.git("rev-parse", "v1.0").decode().strip()
    )


def test_offline_takes_the_cached_clone_and_says_so_where_there_is_none(clones, fixed_repo, tmp_path):
    head = clones.open(str(fixed_repo.path), None, refresh=True)[1]
    fixed_repo.commit("more", {"b": "c"})
    offline = Clones(tmp_path / "cache", timeout=20, offline=True)
    assert offline.open(str(fixed_repo.path), None, refresh=True)[1] == head
    assert "not in the cache" in str(message(offline, "https://host.invalid/x"))


def test_an_interrupted_clone_is_made_again(clones, fixed_repo):
    clone, head = clones.open(str(fixed_repo.path), None, refresh=True)
    half = clone.path.parent / f"new-{clone.path.stem}-half"
    clone.path.rename(half)
    again, found = clones.open(str(fixed_repo.path), None, refresh=True)
    assert found == head
    assert again.path.is_dir()
    assert not half.exists()


def test_a_broken_clone_is_made_again(clones, fixed_repo):
    clone, head = clones.open(str(fixed_repo.path), None, refresh=True)
    for pack in (clone.path / "objects").rglob("*"):
        if pack.is_file():
            pack.chmod(0o600)
            pack.unlink()
    assert clones.open(str(fixed_repo.path), None, refresh=True)[1] == head


def test_hooks_and_configuration_of_the_repository_do_not_run(clones, fixed_repo, tmp_path):
    flag = tmp_path / "ran"
    fixed_repo.git("config", "core.fsmonitor", f"touch {flag}")
    fixed_repo.git("config", "uploadpack.packObjectsHook", f"touch {flag}; exec git pack-objects")
    for hook in ("post-checkout", "post-merge", "reference-transaction", "pre-auto-gc"):
        (fixed_repo.path / ".git/hooks" / hook).write_text(f"#!/bin/sh\ntouch {flag}\n")
        (fixed_repo.path / ".git/hooks" / hook).chmod(0o755)
    clones.open(str(fixed_repo.path), None, refresh=True)
    assert not flag.exists()


def test_does_not_exist(clones, tmp_path):
    error = message(clones, tmp_path / "nothing")
    assert "does not exist" in str(error)
    assert error.exit_code == 2


def test_is_not_a_repository(clones, tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("text")
    for name in ("plain", "file"):
        error = message(clones, tmp_path / name)
        assert "not a git repository" in str(error)
        assert error.exit_code == 2


def test_empty(clones, repo):
    error = message(clones, repo.path)
    assert "no commits" in str(error)
    assert error.exit_code == 2


def test_a_web_page_is_no_empty_repository(clones, monkeypatch):
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *_: object) -> None:
            pass

    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        error = message(clones, f"http://127.0.0.1:{server.server_port}/owner/name")
        server.shutdown()
    assert "no branch and no tag (a login page or another server that is not git's" in str(error)
    assert "browser" in error.next_step


def test_shallow_says_how_to_complete_it(clones, fixed_repo, tmp_path):
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", f"file://{fixed_repo.path}", str(tmp_path / "shallow")], check=True,
        capture_output=True,
    )  # fmt: skip
    error = message(clones, tmp_path / "shallow")
    assert "git fetch --unshallow" in str(error)
    assert error.exit_code == 2


def test_unknown_revision(clones, fixed_repo):
    for revision in ("nope", "f" * 40, "--output=x", "refs/pull/9/head"):
        error = message(clones, fixed_repo.path, revision)
        assert repr(revision) in str(error)
        assert error.exit_code == 2


def test_options_and_helpers_are_no_locations(clones, tmp_path):
    flag = tmp_path / "ran"
    for location in (f"--upload-pack=touch {flag}", f"ext::sh -c touch% {flag}", "fd::17"):
        assert message(clones, location).exit_code == 2
    assert not flag.exists()


def test_a_host_that_hangs_and_one_that_refuses(tmp_path):
    clones = Clones(tmp_path / "cache", timeout=0.5, offline=False)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        error = message(clones, f"git://127.0.0.1:{port}/x")
        assert isinstance(error, SandboxError)
        assert "does not answer" in str(error)
        assert error.exit_code == 3
        assert error.retryable
    error = message(Clones(tmp_path / "cache", timeout=20, offline=False), f"git://127.0.0.1:{port}/x")
    assert error.exit_code == 3
    assert "cannot be reached" in str(error)


@pytest.mark.parametrize(
    ("said", "words", "code"),
    [
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", "password", 2),
        ("git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", "password", 2),
        ("fatal: unable to access 'https://h/x/': Could not resolve host: h", "cannot be found", 3),
        ("fatal: unable to access 'https://h/x/': The requested URL returned error: 503", "cannot be reached", 3),
        ("remote: Repository not found.\nfatal: repository 'https://h/x/' not found", "does not exist", 2),
        ("fatal: write error: No space left on device", "no space left", 3),
        ("fatal: something nobody has seen", "something nobody has seen", 2),
    ],
)
def test_what_git_says_is_explained(said, words, code):
    error = explain(said, "https://h/x")
    assert words in str(error)
    assert error.exit_code == code


def test_passwords_are_never_shown():
    assert without_password("https://user:secret@host/x") == "https://host/x"
    said = "fatal: odd 'https://user:secret@host/x'"
    assert "secret" not in str(SourceError(without_password("https://user:secret@host/x")))
    assert "secret" not in str(explain(said, "w"))
