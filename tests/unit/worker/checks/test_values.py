"""Values of rows as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from telemetry.secrets import SECRETS
from worker.checks.values import MAX_LENGTH, json_row


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


def test_a_secret_in_a_row_is_hidden() -> None:
    """A path may have one in it, or a column that Spark fills from an option."""
    SECRETS.learn("correct-horse")
    assert json_row(['"a correct-horse b', '={"p":"correct-horse"}']) == (("a *** b", {"p": "***"}), 0)
