from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.secrets import HIDDEN, KnownSecrets, scrub, scrub_fields

SECRET = "hunter2-Zx9"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql+psycopg://anna:{SECRET}@db:5432/herd",
        f"cannot reach 'postgresql://anna:{SECRET}@db/herd': refused",
        f"postgresql://anna:p@{SECRET}@db/herd",
        f"https://:{SECRET}@hooks.example/x",
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}==",
        f'org.apache...PlainLoginModule required username="anna" password="{SECRET}";',
        f"password={SECRET}",
        f"connection to server failed: password: {SECRET} is wrong",
        f'{{"password": "{SECRET}", "user": "anna"}}',
        f"{{'fs.s3a.secret.key': '{SECRET}'}}",
        f"spark.hadoop.fs.azure.account-key={SECRET}",
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"api_key={SECRET}&x=1",
        f"token={SECRET}",
    ],
)
def test_secrets_are_taken_out_of_text(text: str) -> None:
    """In URLs, options and headers, quoted or not."""
    assert SECRET not in scrub(text)
    assert HIDDEN in scrub(text)


@pytest.mark.parametrize(
    "text",
    [
        "token 3 is stale",
        "token=3",
        "token: 17, state: RUNNING",
        "http://127.0.0.1:8470/v1/groups/g",
        "sqlite:///out.db",
        "postgresql://anna@db/herd",
        "FATAL: password authentication failed for user anna",
        "mail anna@example.org at 10:30",
        "no such path: /data/in",
    ],
)
def test_everything_else_is_left_as_it_is(text: str) -> None:
    """Fencing tokens are no secrets, nor is where something is."""
    assert scrub(text) == text


def test_fields_are_looked_through_whatever_they_hold() -> None:
    """Names, collections, objects; numbers stay numbers."""
    url = f"postgresql://anna:{SECRET}@db/herd"
    fields = {
        "token": 3,
        "why": ConnectionError(url),
        "deep": [{"url": url, "password": SECRET}, (url,)],
        "password": SECRET,
        "ok": True,
    }
    scrubbed = scrub_fields(fields)
    assert SECRET not in str(scrubbed)
    assert (scrubbed["token"], scrubbed["ok"]) == (3, True)


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    """And scrubbing twice is no different from scrubbing once."""
    assert scrub(scrub(text)) == scrub(text)


@pytest.mark.parametrize("spelling", ['p@ss"wö', 'p@ss\\"wö', 'p@ss\\"w\\u00f6', "p%40ss%22w%C3%B6"])
def test_known_secrets_are_hidden_in_any_spelling(spelling: str) -> None:
    """As they are, in JSON and in URLs."""
    known = KnownSecrets()
    known.learn('p@ss"wö')
    assert known.hide(f"x{spelling}y") == "x***y"


def test_known_secrets_of_several_lines() -> None:
    """A key's lines are hidden one by one, for traces are made of lines."""
    known = KnownSecrets()
    known.learn("-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----")
    assert known.hide("at MIIEvQIBADANBg, x") == "at ***, x"


def test_the_password_of_a_known_url_is_hidden_without_it() -> None:
    """Drivers quote it alone, as it reads when it is decoded."""
    known = KnownSecrets()
    known.learn("postgresql://anna:hunt%20er2@db/herd")
    assert known.hide("no login by hunt er2 or hunt%20er2") == "no login by *** or ***"


def test_short_known_secrets_are_hidden_where_they_stand_alone() -> None:
    """Else the text around them could not be read any more."""
    known = KnownSecrets()
    known.learn("no")
    assert known.hide("I know of no secret") == "I know of *** secret"


def test_a_longer_secret_is_hidden_before_one_that_it_begins_with() -> None:
    """Nothing of it is left."""
    known = KnownSecrets()
    known.learn("abcd")
    known.learn("abcdefgh")
    assert known.hide("abcdefgh abcd") == "*** ***"


@pytest.mark.parametrize("text", ["x", "token", "://a:", 'password="', "a b=", "secret "])
def test_scrubbing_takes_a_look_at_each_character(text: str) -> None:
    """Not at all that follow each: this would take hours, and a cause may be of any length."""
    scrub(text * 50_000)


def test_text_is_cut_when_known_secrets_are_out_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of one would not be known."""
    known = KnownSecrets()
    known.learn(SECRET)
    monkeypatch.setattr("telemetry.secrets.SECRETS", known)
    assert scrub(f"12345{SECRET}67", 7) == "12345**"
    assert scrub(f"12345{SECRET}67", 9) == "12345***6"


def test_learning_many_secrets_makes_one_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred, as a file of receivers has them: each time anew, that would be seven seconds."""
    made = []

    def compiled(*args: Any) -> re.Pattern[str]:
        made.append(args)
        return re.compile(*args)

    known = KnownSecrets()
    monkeypatch.setattr("telemetry.secrets.re", SimpleNamespace(compile=compiled, escape=re.escape))
    for number in range(200):
        known.learn(f"hidden-{number}-Zx9")
    assert [known.hide(f"say hidden-{number}-Zx9") for number in (0, 199)] == [f"say {HIDDEN}"] * 2
    assert len(made) == 1
