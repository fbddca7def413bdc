"""Masking keeps the shape of a row and nothing of what is in it."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.worker.quarantined_rows.rows import row
from worker.masking import masked_json, masked_text
from worker.quarantined_rows.shown import masked_row


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("2013-01-05,UA,N14228", "9999-99-99,xx,x99999"),
        ("a@b.example: 4.5 €", "x@x.xxxxxxx: 9.9 x"),
        ("Zoë, ٣ Größe\t好", "xxx, 9 xxxxx\tx"),
        ("\x00\x07\x1f", "xxx"),
        ("", ""),
    ],
)
def test_texts_keep_their_signs_and_nothing_else(text: str, masked: str) -> None:
    """Signs that nobody can see may be numbers of a binary form."""
    assert masked_text(text) == masked


@pytest.mark.parametrize(
    ("document", "masked"),
    [
        ('{"carrier": "UA", "delay": -12, "at": null}', '{"carrier": "xx", "delay": -99, "at": null}'),
        ('{"a": {"b": [1.5, "x1", true, false]}}', '{"a": {"b": [9.9, "x9", true, true]}}'),
        ('{"n": 1e300, "big": 123456.7890123456789}', '{"n": 9, "big": "999999.9999999999999"}'),
        ('{"n": NaN}', '{"n": null}'),
        ('{"é": "\\ud83d\\ude00"}', '{"é": "x"}'),
        ('{"broken": "UA', '{"xxxxxx": "xx'),
        ("[" * 100_000, "[" * 100_000),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_json_keeps_its_form_and_its_keys(document: str, masked: str) -> None:
    """What is none, or too deep or too long to be read, is masked as a text."""
    assert masked_json(document) == masked


def test_keys_can_be_written_whatever_they_are() -> None:
    """JSON escapes halves of characters, which no UTF-8 has."""
    assert masked_json('{"\\ud800": 1}').encode() == b'{"?": 9}'


SECRETS = st.text(alphabet="bcdfghjklmnp2345678äöü", min_size=3)


@given(SECRETS, st.sampled_from(["kafka", "line", "row"]))
def test_no_value_of_any_form_is_left(value: str, form: str) -> None:
    """Neither in the row, nor in what the error quotes of it."""
    told = masked_row(row(form=form, raw=json.dumps({"k": [value]}), error=f"cannot read {value}"))
    assert value not in told.raw
    assert value not in told.error


def test_bytes_keep_their_number_only() -> None:
    """Every byte may be a value; of base64 that was cut as well."""
    raw = b64encode(b"\x00\xff\x10ab").decode()
    told = masked_row(row(form="kafka", encoding="base64", raw=raw))
    assert (told.raw, told.encoding) == ("xxxxx", "utf-8")
    assert masked_row(row(form="kafka", encoding="base64", raw=raw[:5])).raw == "xxx"


def test_where_a_row_came_from_stays() -> None:
    """And what it is counted under: whoever looks is to find it."""
    before = row()
    told = masked_row(before)
    assert (told.id, told.name, told.reason, told.origin) == (
        before.id,
        before.name,
        before.reason,
        before.origin,
    )
