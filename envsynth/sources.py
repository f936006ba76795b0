"""Sources: what `--source` and source lists may say, parsed into `Source` with every bad line named.

A `--source` text that names an existing regular file which is not a git bundle is a source list; anything else is
one line of the same grammar: `URI key=value ...`. Relative paths in a list are relative to the list's folder, on
the command line to the working folder; `Source.uri` keeps them as written, so that work is keyed alike on every
machine, and `Source.location` is absolute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from envsynth.errors import SourceError, boundary
from envsynth.models.source import Origin, Source, SourceKind, SourceOptions

__all__ = ["SourceList", "read_sources"]

OPTIONS = ("limit", "seed", "strategies", "trusted")
SCHEMES = ("https", "http", "ssh", "file", "pypi", "scenario", "mechanism")
BUNDLE = re.compile(rb"# v[23] git bundle\n")
SECRET_OPTION = re.compile(r"(?i)pass(word|wd)|token|secret|api_?key|credential")
TOKEN_USER = re.compile(r"gh[opsu]_|github_pat_|glpat-|[A-Za-z0-9_.~-]{30,}")
NAME = r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*"


class SourceList(NamedTuple):
    """What a list of `--source` texts says."""

    sources: tuple[Source, ...]
    """The good ones, in order."""
    errors: tuple[SourceError, ...]
    """One a bad line; each names the file and line, what is wrong and what would be right."""


class _Bad(Exception):
    """What is wrong with a line, and what would be right."""

    def __init__(self, what: str, right: str) -> None:
        super().__init__(what)
        self.what = what
        self.right = right


class _Uri(NamedTuple):
    uri: str
    kind: SourceKind
    location: str
    revision: str | None = None


def read_sources(
    texts: Sequence[str | Path], *, root: Path | None = None, defaults: SourceOptions | None = None
) -> SourceList:
    """Parse source lists and URIs.

    Args:
        texts: each a list's path, or one line of the grammar.
        root: what relative paths of `texts` are relative to; None: the working folder.
        defaults: options of sources that do not name their own.

    Returns:
        The good sources and all bad lines; never raises for what the texts say.
    """
    here = Path.cwd() if root is None else root.absolute()
    sources: list[Source] = []
    errors: list[SourceError] = []
    first_at: dict[object, Origin] = {}
    for line, origin, folder in _lines([str(text) for text in texts], here, errors):
        try:
            source = _parse(line, origin, folder, defaults or SourceOptions())
            if source is None:
                continue
            known = first_at.setdefault(_identity(source), origin)
            if known is not origin:
                raise _Bad(f"the source stands already at {known}", "remove one of the two lines")
            sources.append(source)
        except _Bad as bad:
            errors.append(SourceError(_redacted(bad.what), where=str(origin), next_step=_redacted(bad.right)))
    return SourceList(tuple(sources), tuple(errors))


def _lines(texts: list[str], here: Path, errors: list[SourceError]) -> Iterator[tuple[str, Origin, Path]]:
    for number, text in enumerate(texts, 1):
        path = _place(text, here)
        if path is None or not path.is_file() or _is_bundle(path):
            yield text, Origin(file="--source", line=number), here
            continue
        with _collected(errors, text):
            content = path.read_bytes()
            try:
                decoded = "" if b"\0" in content else content.decode("utf-8-sig")
            except UnicodeDecodeError as exc:
                decoded, content = "", content[: exc.start] + b"\0"
            if content and not decoded:
                line = content[: content.find(b"\0")].count(b"\n") + 1
                raise SourceError("not a text in UTF-8", where=f"{text}:{line}", next_step="save the list as UTF-8")
            for index, line_text in enumerate(re.split(r"\r\n|\n|\r", decoded), 1):
                yield line_text, Origin(file=text, line=index), path.parent


@contextmanager
def _collected(errors: list[SourceError], where: str) -> Iterator[None]:
    try:
        with boundary(SourceError, "the source list cannot be read", where=where):
            yield
    except SourceError as exc:
        errors.append(exc)


def _parse(line: str, origin: Origin, folder: Path, defaults: SourceOptions) -> Source | None:
    words = _words(line)
    if not words:
        if origin.file == "--source":
            raise _Bad("the source is empty", "name a list or a URI, such as --source https://host/owner/repository")
        return None
    uri = _uri(words[0], folder)
    options, extra = _options(words[1:], defaults)
    return Source(
        uri=uri.uri, kind=uri.kind, location=uri.location, revision=uri.revision, options=options, extra=extra,
        origin=origin,
    )  # fmt: skip


def _words(line: str) -> list[str]:
    """Split at white space; quotes keep it; `#` at the start of a word begins a comment."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    for char in line:
        if quote:
            if char == quote:
                quote = ""
            else:
                word = (word or "") + char
        elif char.isspace():
            if word is not None:
                words.append(word)
            word = None
        elif char == "#" and word is None:
            break
        elif char in "\"'":
            quote, word = char, word or ""
        else:
            word = (word or "") + char
    if quote:
        raise _Bad(f"a quote ({quote}) is not closed", "close it, or leave quotes out where there are no spaces")
    return words if word is None else [*words, word]


# --- options ---------------------------------------------------------------------------------------------------


def _options(words: list[str], defaults: SourceOptions) -> tuple[SourceOptions, tuple[tuple[str, str], ...]]:
    named: dict[str, object] = {}
    extra: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not re.fullmatch(NAME, key):
            raise _Bad(
                f"{word!r} is not an option", "write key=value after the URI, and quotes around a value with spaces"
            )
        if SECRET_OPTION.search(key):
            raise _Bad(f"option {key!r} looks like a secret, which is never kept", "use git's credential helper")
        if key in named or key in extra:
            raise _Bad(f"option {key!r} stands twice", "keep one of them")
        if not value:
            raise _Bad(f"option {key!r} has no value", f"write {key}=VALUE")
        close = get_close_matches(key, OPTIONS, n=1, cutoff=0.75)
        if key in OPTIONS:
            named[key] = _value(key, value)
        elif close:
            raise _Bad(f"unknown option {key!r}", f"did you mean {close[0]}={value}?")
        else:
            extra[key] = value
    return defaults.model_copy(update=named), tuple(sorted(extra.items()))


def _value(key: str, value: str) -> object:
    if key == "trusted":
        if value.lower() not in ("yes", "no", "true", "false"):
            raise _Bad(f"trusted={value!r} is neither yes nor no", "write trusted=yes or trusted=no")
        return value.lower() in ("yes", "true")
    if key == "strategies":
        strategies = tuple(part.strip() for part in value.split(","))
        if not all(re.fullmatch(NAME, name) for name in strategies):
            raise _Bad(f"strategies={value!r} is not a list of names", "write strategies=history,mutation")
        return strategies
    least = 1 if key == "limit" else 0
    if not re.fullmatch(r"[0-9]{1,18}", value) or int(value) < least:
        raise _Bad(f"{key}={value!r} is not a whole number from {least} up", f"write {key}={10 if least else 0}")
    return int(value)


# --- URIs ------------------------------------------------------------------------------------------------------


def _uri(text: str, folder: Path) -> _Uri:
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise _Bad("the URI holds a control character", "write it again by hand")
    prefix, colon, rest = text.partition(":")
    if colon and prefix in ("pypi", "scenario", "mechanism"):
        return _named(prefix, rest, text)
    if "://" in text:
        if prefix == "file":
            return _file(text, folder)
        if prefix in ("https", "http", "ssh"):
            return _url(text, prefix)
        raise _Bad(f"unknown scheme {prefix!r}", _meant(prefix, SCHEMES) or f"known: {', '.join(SCHEMES)}")
    scp = re.fullmatch(r"([\w.-]+@)?([\w.-]+):(.+)", text)
    if scp and _place(text, folder) is None:
        if scp[1]:
            return _scp(text)
        raise _Bad(f"unknown scheme {scp[2]!r}", _meant(scp[2], SCHEMES) or f"for a host, write git@{scp[2]}:{scp[3]}")
    return _local(text, folder)


def _meant(word: str, known: Sequence[str]) -> str:
    swapped = [name for name in known if sorted(name) == sorted(word.lower())]
    close = swapped or get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}:?" if close else ""


def _named(prefix: str, rest: str, text: str) -> _Uri:
    if prefix == "pypi":
        found = re.fullmatch(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)", rest)
        if not found:
            raise _Bad(f"{text!r} names no exact release", "write pypi:name==version, such as pypi:attrs==23.1.0")
        name = re.sub(r"[-_.]+", "-", found[1]).lower()
        return _Uri(text, SourceKind.PYPI, f"{name}=={found[2]}")
    pattern, right = (
        (rf"{NAME}(/{NAME})?", "write scenario:industry or scenario:industry/process, such as scenario:retail/returns")
        if prefix == "scenario"
        else (NAME, "write mechanism:family, such as mechanism:bandit")
    )
    if not re.fullmatch(pattern, rest):
        raise _Bad(f"{text!r} is not a {prefix}", right)
    return _Uri(text, SourceKind(prefix), rest)


def _url(text: str, scheme: str) -> _Uri:
    authority, slash, path = text.removeprefix(f"{scheme}://").partition("/")
    user, at, host = authority.rpartition("@")
    if at and (":" in user or (scheme != "ssh" and TOKEN_USER.match(user))):
        raise _Bad(
            f"the {scheme} URL holds a password or token, which is never kept",
            f"write {scheme}://{host}/... and let git's credential helper or an ssh key sign in",
        )
    if "?" in text or "#" in text:
        raise _Bad(f"the {scheme} URL has a query or fragment", "write the address that git clone takes")
    if not re.fullmatch(r"(?:[A-Za-z0-9][\w.-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?", host) or user.startswith("-"):
        raise _Bad(f"the {scheme} URL names no valid host", f"write {scheme}://host/owner/repository")
    path, revision = _at_revision(path)
    if not slash or not path.strip("/"):
        raise _Bad(f"the {scheme} URL names no repository", f"write {scheme}://{host}/owner/repository")
    uri = f"{scheme}://{authority}/{path}"
    return _Uri(uri, SourceKind.GIT, uri, revision)


def _scp(text: str) -> _Uri:
    login, _, rest = text.partition(":")
    path, revision = _at_revision(rest)
    if login.startswith("-") or path.startswith("-") or not path.strip("/"):
        raise _Bad(f"{login!r} names no repository", "write git@host:owner/repository.git")
    return _Uri(f"{login}:{path}", SourceKind.GIT, f"{login}:{path}", revision)


def _file(text: str, folder: Path) -> _Uri:
    if not text.removeprefix("file://").removeprefix("localhost").startswith("/"):
        raise _Bad(f"{text!r} is no absolute file URL", "write file:///absolute/path, or the path alone")
    return _local(text, folder)


def _local(text: str, folder: Path) -> _Uri:
    """A local repository or bundle; the longest existing part before an `@` is the path."""
    for cut in (len(text), *(match.start() for match in reversed(list(re.finditer("@", text))))):
        uri = text[:cut]
        path = unquote(uri.removeprefix("file://").removeprefix("localhost")) if text.startswith("file://") else uri
        place = _repository(path, folder)
        if place is not None:
            revision = None if cut == len(text) else _revision(text[cut + 1 :])
            return _Uri(uri, SourceKind.GIT, str(place), revision)
    raise _Bad(f"there is no {text!r}", _missing_path_advice(text))


def _missing_path_advice(path: str) -> str:
    if re.match(r"(www\.)?[\w-]+(\.[\w-]+)+/[\w.-]+/", path):
        return f"did you mean https://{path}?"
    if re.fullmatch(r"[\w-]+/[\w.-]+", path):
        return f"name an existing list, folder or bundle, or a URL such as https://github.com/{path}"
    return "name an existing list, repository folder or git bundle, or a URL"


def _place(text: str, folder: Path) -> Path | None:
    """What a path names, when something is there."""
    try:
        path = Path.home() / text[2:] if text.startswith("~/") else folder / text
        return path.resolve() if text and path.exists() else None
    except (OSError, ValueError):
        return None  # too long, or with a NUL: no path


def _repository(path: str, folder: Path) -> Path | None:
    """The absolute path of a repository or bundle; None when nothing is there.

    Raises:
        _Bad: something else is there.
    """
    place = _place(path, folder)
    if place is None:
        return None
    if place.is_dir():
        if not any((place / name).exists() for name in (".git", "HEAD")):
            top = next((parent for parent in place.parents if (parent / ".git").exists()), None)
            right = f"did you mean {top}?" if top else "name a folder that holds .git, such as a clone"
            raise _Bad(f"the folder {path!r} is not a git repository", right)
    elif not _is_bundle(place):
        raise _Bad(f"the file {path!r} is not a git bundle", "give each source list to --source by itself")
    return place


def _is_bundle(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return BUNDLE.match(stream.read(32)) is not None
    except OSError:
        return False


def _at_revision(path: str) -> tuple[str, str | None]:
    """Split a URL's path at its first `@` that does not begin a segment."""
    found = re.search(r"(?<=[^/])@", path)
    return (path, None) if found is None else (path[: found.start()], _revision(path[found.end() :]))


def _revision(text: str) -> str:
    if not text:
        raise _Bad("the revision after @ is missing", "name a branch, a tag or a commit after @, or leave the @ out")
    if text.startswith("-") or ".." in text or re.search(r"[\s:?*\[\\]", text):
        raise _Bad(f"{text!r} is not a revision", "name one branch, tag or commit")
    return text


def _identity(source: Source) -> object:
    # A work tree and the folder of git in it are one repository, as are an address with and without `.git`.
    location = source.location.rstrip("/").removesuffix("/.git").removesuffix(".git")
    return source.kind, location, source.revision, source.options.strategies, source.options.seed, source.extra


def _redacted(text: str) -> str:
    """The text without anything that may be a login with a password."""
    return re.sub(r"[^\s'\"/]+:(?!//)[^\s'\"]*@", "***@", text)
