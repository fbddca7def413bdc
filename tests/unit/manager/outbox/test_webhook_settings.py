from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

import pytest

from configuration.settings import SettingsError, resolve
from manager.outbox.webhooks.secret import read_secret
from manager.outbox.webhooks.webhook import webhooks_of
from manager.settings import ManagerSettings
from protocol.errors import StartupError

if TYPE_CHECKING:
    from pathlib import Path

KEY = "correct horse battery staple"


def signature(key: bytes) -> str:
    return base64.b64encode(hmac.new(key, b"m", hashlib.sha256).digest()).decode()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY + "\n")
    return path


def test_a_key_is_read_from_a_file_or_a_variable(key_file: Path) -> None:
    """Without the line's end; `whsec_` is read as the libraries of Standard Webhooks read it."""
    for secret in (
        read_secret(f"file:{key_file}"),
        read_secret("env:K", {"K": f" {KEY} "}),
        read_secret("env:K", {"K": "whsec_" + base64.b64encode(KEY.encode()).decode()}),
    ):
        assert secret.sign(b"m") == signature(KEY.encode())


def test_a_key_is_not_shown(key_file: Path) -> None:
    """Neither by itself nor in what holds it, nor is the path of its URL."""
    (webhook,) = webhooks_of(["https://u:pw@hooks.example/T0/secret-path?t=1"], [f"file:{key_file}"])
    for shown in (repr(webhook), str(webhook), webhook.name, repr(webhook.secret)):
        assert not [word for word in ("horse", "pw", "secret-path", "t=1") if word in shown]
    assert webhook.name.startswith("https://hooks.example:443#")


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ("env:correct-horse", "does not exist"),
        ("env:EMPTY", "is empty"),
        ("env:BAD", "not base64"),
        ("file:/no/such/correct-horse", "No such file"),
        ("file:/dev/zero", "more than 4096 bytes"),
    ],
)
def test_a_key_that_is_not_there_is_complained_of_without_showing_anything(
    reference: str, complaint: str
) -> None:
    """`env:$KEY` in a shell puts the key where its name should be."""
    environ = {"EMPTY": " ", "BAD": "whsec_correct-horse"}
    with pytest.raises(StartupError, match=complaint) as caught:
        read_secret(reference, environ)
    assert str(caught.value).startswith("--webhook-secret: ")
    assert "horse" not in str(caught.value)


def test_one_key_signs_for_all_or_each_webhook_has_its_own() -> None:
    """In the order they are given; any other number is refused."""
    urls = ["http://a/", "http://b/"]
    keys = {"A": "a", "B": "b"}
    assert [webhook.secret for webhook in webhooks_of(urls, [])] == [None, None]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in keys.items():
            patch.setenv(name, value)
        each = webhooks_of(urls, ["env:A", "env:B"])
        shared = webhooks_of(urls, ["env:A"])
    assert [e.secret.sign(b"m") for e in each if e.secret] == [signature(b"a"), signature(b"b")]
    assert [e.secret.sign(b"m") for e in shared if e.secret] == [signature(b"a")] * 2


@pytest.mark.parametrize(
    ("urls", "references", "complaint"),
    [
        (["http://a/", "http://a/"], [], "--webhook: the same URL is given twice"),
        (["http://a/"], ["env:A", "env:B"], "there are 1 webhooks and 2 secrets"),
        ([], ["env:A", "env:B"], "there are 0 webhooks and 2 secrets"),
        (["http://a:99999/"], [], "--webhook: expected a URL"),
        (["http:///x"], [], "--webhook: expected a URL"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    urls: list[str], references: list[str], complaint: str
) -> None:
    """One line that names the setting."""
    with pytest.raises(StartupError, match=complaint):
        webhooks_of(urls, references)


@pytest.mark.parametrize("value", ["ftp://a/", "hooks.example/x", "https://a/x y", "http://a/#f"])
def test_what_is_no_url_is_refused_without_repeating_it(value: str) -> None:
    """It may have a secret in it."""
    with pytest.raises(SettingsError, match="--webhook: malformed") as caught:
        resolve(ManagerSettings, flags={"webhook": [value]}, environ={}, table={}, origin="")
    assert value not in str(caught.value)


def test_a_key_given_in_place_of_its_reference_is_refused_without_repeating_it() -> None:
    """The most likely mistake of all."""
    with pytest.raises(SettingsError, match=r"--webhook-secret: malformed.*file:PATH or env:NAME") as caught:
        resolve(ManagerSettings, flags={"webhook_secret": [KEY]}, environ={}, table={}, origin="")
    assert KEY not in str(caught.value)
