from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.secrets import HIDDEN, scrub, scrub_fields

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
