"""The grammar of sources: what is taken, and what every bad line is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.models import SourceKind, SourceOptions
from envsynth.sources import SourceList, read_sources


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a repository, one whose name has an @, a bare one, a bundle and a plain folder."""
    for name in ("repo/.git", "team@work/.git", "bare/objects", "plain", "repo/inside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bare/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "some.bundle").write_bytes(b"# v2 git bundle\n" + b"\xff\x00")
    return tmp_path


def one(text: str, root: Path) -> tuple[SourceKind, str, str, str | None]:
    listed = read_sources([text], root=root)
    assert listed.errors == ()
    (source,) = listed.sources
    return source.kind, source.uri, source.location.replace(str(root), "HERE"), source.revision


@pytest.mark.parametrize(
    ("text", "uri", "location", "revision"),
    [
        ("./repo", "./repo", "HERE/repo", None),
        ("repo@v1.0", "repo", "HERE/repo", "v1.0"),
        ("repo@feature/x", "repo", "HERE/repo", "feature/x"),
        ("repo@HEAD~2", "repo", "HERE/repo", "HEAD~2"),
        ("repo@pkg@1.0", "repo", "HERE/repo", "pkg@1.0"),
        ("team@work", "team@work", "HERE/team@work", None),
        ("team@work@main", "team@work", "HERE/team@work", "main"),
        ("bare", "bare", "HERE/bare", None),
        ("some.bundle", "some.bundle", "HERE/some.bundle", None),
        ("some.bundle@main", "some.bundle", "HERE/some.bundle", "main"),
        ("https://host/o/r", "https://host/o/r", "https://host/o/r", None),
        ("https://host:8443/o/r.git@v1", "https://host:8443/o/r.git", "https://host:8443/o/r.git", "v1"),
        ("https://me@host/o/r@v1", "https://me@host/o/r", "https://me@host/o/r", "v1"),
        ("https://host/@group/r@pkg@1.0", "https://host/@group/r", "https://host/@group/r", "pkg@1.0"),
        ("http://[::1]:80/o/r", "http://[::1]:80/o/r", "http://[::1]:80/o/r", None),
        ("ssh://git@host:22/o/r@v1", "ssh://git@host:22/o/r", "ssh://git@host:22/o/r", "v1"),
        ("git@host:o/r.git", "git@host:o/r.git", "git@host:o/r.git", None),
        ("git@host:o/r.git@v1", "git@host:o/r.git", "git@host:o/r.git", "v1"),
    ],
)
def test_git(here, text, uri, location, revision):
    assert one(text, here) == (SourceKind.GIT, uri, location, revision)


def test_file_urls_are_decoded_once(here):
    uri = f"file://{here}/team%40work"
    assert one(f"{uri}@v1", here) == (SourceKind.GIT, uri, "HERE/team@work", "v1")


@pytest.mark.parametrize(
    ("text", "kind", "location", "generator"),
    [
        ("pypi:Foo_Bar==1.2.3", SourceKind.PYPI, "foo-bar==1.2.3", "repository"),
        ("scenario:retail", SourceKind.SCENARIO, "retail", "business"),
        ("scenario:retail/refunds", SourceKind.SCENARIO, "retail/refunds", "business"),
        ("mechanism:bandit", SourceKind.MECHANISM, "bandit", "mechanism"),
    ],
)
def test_other_kinds(here, text, kind, location, generator):
    (source,) = read_sources([text], root=here).sources
    assert (source.kind, source.location, source.uri, source.generator) == (kind, location, text, generator)


def test_options_are_typed_and_the_rest_is_the_generators(here):
    text = "repo limit=5 seed=7 strategies=history,mutation trusted=Yes depth=3 note='two words # no comment' # comment"
    (source,) = read_sources([text], root=here).sources
    assert source.options == SourceOptions(limit=5, seed=7, strategies=("history", "mutation"), trusted=True)
    assert source.extra == (("depth", "3"), ("note", "two words # no comment"))


def test_defaults_hold_where_a_line_is_silent(here):
    defaults = SourceOptions(limit=9, seed=4)
    first, second = read_sources(["repo seed=1", "bare"], root=here, defaults=defaults).sources
    assert (first.options.limit, first.options.seed) == (9, 1)
    assert second.options == defaults


@pytest.mark.parametrize(
    ("text", "what", "right"),
    [
        ("pipy:foo==1", "unknown scheme 'pipy'", "did you mean pypi:"),
        ("sceanrio:retail", "unknown scheme 'sceanrio'", "did you mean scenario:"),
        ("htps://host/o/r", "unknown scheme 'htps'", "did you mean https:"),
        ("ftp://host/o/r", "unknown scheme 'ftp'", "https"),
        ("host:o/r", "unknown scheme 'host'", "git@host:o/r"),
        ("pypi:foo", "names no exact release", "pypi:name==version"),
        ("pypi:foo>=1", "names no exact release", "pypi:name==version"),
        ("scenario:Re tail", "not a scenario", "scenario:industry"),
        ("mechanism:", "not a mechanism", "mechanism:family"),
        ("nothing", "there is no 'nothing'", "an existing list"),
        ("repo_list.txt", "there is no 'repo_list.txt'", "an existing list"),
        ("github.com/o/r", "there is no", "did you mean https://github.com/o/r?"),
        ("o/r", "there is no 'o/r'", "https://github.com/o/r"),
        ("plain", "is not a git repository", "name a folder that holds .git, such as a clone"),
        ("repo/inside", "is not a git repository", "/repo?"),
        ("repo@", "revision after @ is missing", "leave the @ out"),
        ("repo@-x", "'-x' is not a revision", ""),
        ("repo@a..b", "'a..b' is not a revision", "name one"),
        ("https://host/o/r@a:b", "is not a revision", ""),
        ("https://host", "names no repository", "https://host/owner"),
        ("https://-oProxyCommand=x/o/r", "names no valid host", ""),
        ("git@host:-x", "names no repository", ""),
        ("https://host/o/r?x=1", "query or fragment", "git clone"),
        ("file://repo", "no absolute file URL", "file:///"),
        ("repo limt=5", "unknown option 'limt'", "did you mean limit=5?"),
        ("repo limit=0", "from 1 up", "limit=10"),
        ("repo seed=-1", "from 0 up", "seed=0"),
        ("repo limit=", "no value", "limit=VALUE"),
        ("repo trusted=maybe", "neither yes nor no", "trusted=yes"),
        ("repo strategies=a,,b", "not a list of names", "history,mutation"),
        ("repo limit=1 limit=2", "stands twice", ""),
        ("repo bare", "'bare' is not an option", "key=value"),
        ("repo note='x", "is not closed", ""),
        ("", "the source is empty", "--source"),
        ("re\x07po", "control character", ""),
        ("x" * 5000, "there is no", ""),
    ],
)
def test_a_bad_text_says_what_would_be_right(here, text, what, right):
    listed = read_sources([text.replace("Re tail", "'Re tail'")], root=here)
    assert listed.sources == ()
    (error,) = listed.errors
    assert what in str(error)
    assert right in error.next_step
    assert error.where == "--source:1"
    assert error.exit_code == 2
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "https://user:hunter2@host/o/r",
        "https://hunter2:@host/o/r",
        "ssh://user:hunter2@host/o/r",
        "http//user:hunter2@host/o/r",
        "https://user:hun/ter2@host/o/r",
        "htps://user:hunter2@host/o/r",
        "https://ghp_hunter2hunter2@host/o/r",
        "https://host/o/r?token=hunter2",
        "repo token=hunter2",
        "repo https://user:hunter2@host",
        "https://user:hunter2@host/o/r limt=1",
        "repo password=hunter2 password=hunter2",
        "user:hunter2@host:o/r",
    ],
)
def test_a_secret_is_refused_and_never_shown(here, text):
    listed = read_sources([text], root=here)
    assert listed.sources == ()
    assert "ter2" not in str(listed.errors[0])


def test_a_list_reads_from_its_own_folder_and_names_every_bad_line(here):
    folder = here / "lists"
    folder.mkdir()
    (folder / "l.txt").write_bytes(
        b"\xef\xbb\xbf# heading\r\n\r\n../repo limit=3   # the first\r\n  ../nothing\r\nrepo\r\n"
        b"../bare trusted=yes\r\n../repo limit=4"
    )
    listed = read_sources(["lists/l.txt"], root=here)
    assert [(source.uri, source.location, str(source.origin)) for source in listed.sources] == [
        ("../repo", str(here / "repo"), "lists/l.txt:3"),
        ("../bare", str(here / "bare"), "lists/l.txt:6"),
    ]
    assert [error.where for error in listed.errors] == ["lists/l.txt:4", "lists/l.txt:5", "lists/l.txt:7"]
    assert "stands already at lists/l.txt:3" in str(listed.errors[2])


@pytest.mark.parametrize(
    ("content", "line"), [(b"repo\nb\xe4re\n", 2), ("repo\n".encode("utf-16"), 1), (b"repo\n\0", 2)]
)
def test_a_list_that_is_no_text(here, content, line):
    (here / "l.txt").write_bytes(content)
    listed = read_sources(["l.txt"], root=here)
    assert [str(error) for error in listed.errors] == [
        f"l.txt:{line}: not a text in UTF-8. Next: save the list as UTF-8"
    ]


def test_an_empty_list_has_no_sources(here):
    (here / "l.txt").write_text("\n# nothing\n")
    assert read_sources(["l.txt"], root=here) == SourceList((), ())


def test_the_same_place_in_two_spellings_is_a_duplicate(here):
    listed = read_sources(
        ["https://host/o/r", "https://host/o/r.git/", "https://host/o/r strategies=mutation"], root=here
    )
    assert len(listed.sources) == 2
    assert "stands already at --source:1" in str(listed.errors[0])


def test_a_work_tree_and_its_git_folder_are_one_place(here):
    (here / "repo/.git/HEAD").write_text("ref: refs/heads/main\n")
    listed = read_sources(["repo", f"{here}/repo/.git", f"file://{here}/repo/.git/"], root=here)
    assert [source.uri for source in listed.sources] == ["repo"]
    assert ["stands already at --source:1" in str(error) for error in listed.errors] == [True, True]


@given(st.text(max_size=60))
def test_no_text_raises(text):
    listed = read_sources([text], root=Path("/nonexistent"))
    assert len(listed.sources) + len(listed.errors) <= 1
