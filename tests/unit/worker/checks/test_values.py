"""Values of rows as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from telemetry.secrets import KnownSecrets
from worker.checks.values import MAX_LENGTH, MAX_NESTING, json_row


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (None, None),
        ('"12', "12"),
        ('"', ""),
        ("=12", 12),
        ("=9007199254740991", 9007199254740991),
        ("=9007199254740992", "9007199254740992"),
        ("=-9007199254740992", "-9007199254740992"),
        ("=1.10", 1.1),
        ("=0.12345678901234567890", "0.12345678901234567890"),
        ("=1.0E-5", 1e-5),
        ('="NaN"', "NaN"),
        ('={"a":[1,null]}', {"a": [1, None]}),
    ],
)
def test_a_value_keeps_all_its_digits(text: str | None, value: Any) -> None:
    """A number that no script can hold is a text."""
    assert json_row([text]) == ((value,), 0)


def test_long_values_are_cut_and_counted() -> None:
    """A text, and JSON that would not be JSON any more."""
    whole, long_text, long_json = (
        '"' + "x" * MAX_LENGTH,
        '"' + "x" * (MAX_LENGTH + 1),
        "=[" + "1," * MAX_LENGTH,
    )
    values, cut = json_row([whole, long_text, long_json])
    assert cut == 2
    assert values == ("x" * MAX_LENGTH, "x" * (MAX_LENGTH - 1) + "…", long_json[1:MAX_LENGTH] + "…")


@pytest.mark.parametrize("depth", [MAX_NESTING, MAX_NESTING + 1, 498])
@pytest.mark.parametrize("level", [("[", "]"), ('{"a":', "}")])
def test_a_value_that_is_nested_too_deep_is_cut(depth: int, level: tuple[str, str]) -> None:
    """As a text, of which as much is shown as of any other."""
    begins, ends = level
    text = f"={begins * depth}1{ends * depth}"
    [value], cut = json_row([text])
    if depth == MAX_NESTING:
        assert (json.dumps(value, separators=(",", ":")), cut) == (text[1:], 0)
    else:
        assert (value, cut) == (text[1:MAX_LENGTH] + "…", 1)


def test_brackets_in_texts_are_not_nested() -> None:
    """Nor behind a quote in one."""
    text = "[{" * 100
    assert json_row([f'=["\\"{text}"]', f'"{text}']) == ((['"' + text], text), 0)


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> KnownSecrets:
    """Those of a test, which other tests know nothing of."""
    known = KnownSecrets()
    monkeypatch.setattr("worker.checks.values.SECRETS", known)
    return known


def test_a_secret_in_a_row_is_hidden(secrets: KnownSecrets) -> None:
    """A path may have one in it, or a column that Spark fills from an option."""
    secrets.learn("correct-horse")
    assert json_row(['"a correct-horse b', '={"p":"correct-horse"}']) == (("a *** b", {"p": "***"}), 0)


@pytest.mark.parametrize(
    ("secret", "text", "value"),
    [
        ("12345", "=12345", "***"),
        ("12345", "=9123456", "9***6"),
        ("12345", "=1234.5", 1234.5),
        ("234.5", "=1234.5", "1***"),
        ("7", "=[7, 77, true]", ["***", 77, True]),
        ('"', '={"a":"b\\"c"}', {"a": 'b"c'}),
        ('":"', '={"a":"b"}', {"a": "b"}),
        ("null", '={"a":null,"null":"null"}', {"a": None, "***": "***"}),
        ("{", '={"a":[{"b":"x { y"}]}', {"a": [{"b": "x *** y"}]}),
    ],
)
def test_a_secret_that_looks_like_json(secrets: KnownSecrets, secret: str, text: str, value: Any) -> None:
    """It is hidden in values and names, and what holds them together is left."""
    secrets.learn(secret)
    assert json_row([text]) == ((value,), 0)


@pytest.mark.parametrize("shown", range(1, 13))
@pytest.mark.parametrize("begins", ['"', '="'])
def test_no_part_of_a_secret_is_left_where_a_value_is_cut(
    secrets: KnownSecrets, begins: str, shown: int
) -> None:
    """However much of it Spark has still sent: of a longer value than is shown, a character more."""
    secrets.learn("correct-horse")
    sent = (begins + "x" * 2000)[: len(begins) + MAX_LENGTH + 2 - len(begins) - shown] + "correct-horse"[
        :shown
    ]
    [value], cut = json_row([sent])
    assert cut == 1
    assert set(value) <= set('"x…')
