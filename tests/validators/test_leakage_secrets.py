"""Credentials by format; what is made up, or stands in a test or a text, keeps no task out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from envsynth.cache import Cache
from envsynth.models import Role, RoleRule
from envsynth.validators.leakage.secrets import secrets_in, secrets_of_tree

BODY = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3jKx"
REAL = {
    "repository token": f"token = 'ghp_{BODY}'",
    "cloud access key": "AKIAQ3EG7TR2WZ5NPK4M",
    "package registry token": f"//host/:_authToken=npm_{BODY}",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7Zq0vW3bT9yXk2LmN8pRs5UcFhJ4dGe6\n",
    "payment key": "sk_live_" + BODY[:24],
    "signed token": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ0aGUtdXNlci1vZi1pdCJ9.{BODY}{BODY}",
    "chat token": f"xoxb-123987645012-{BODY[:24]}",
}


@pytest.mark.parametrize("kind", REAL)
def test_formats(kind: str) -> None:
    assert list(secrets_in(REAL[kind].encode())) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "x" * 36,
        "-----BEGIN PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\n" + "A" * 64,
        "https://user:pass@host.example/",
        "password = 'hunter2'",
        "0123456789abcdef0123456789abcdef01234567",
    ],
)
def test_what_is_made_up_or_says_nothing(text: str) -> None:
    assert list(secrets_in(text.encode())) == []


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("pkg/settings.py", "secret_in_tree"),
        ("deploy.env", "secret_in_tree"),
        ("spec/check_login.py", "possible_secret"),
        ("pkg/tests/keys.py", "possible_secret"),
        ("docs/login.rst", "possible_secret"),
        ("README", "possible_secret"),
        ("examples/client.py", "possible_secret"),
    ],
)
def test_where_it_stands_decides(path: str, rule: str, cache: Cache, tree: Callable[..., str]) -> None:
    made = cache.get_tree(tree({path: REAL["repository token"].encode()}))
    found = list(secrets_of_tree(made, cache.get, (RoleRule(pattern="^spec/", role=Role.TEST),)))
    assert [(finding.rule, finding.where) for finding in found] == [(rule, path)]
