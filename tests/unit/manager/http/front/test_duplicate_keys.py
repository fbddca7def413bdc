"""Keys that are there twice."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manager.http.front.duplicate_keys import duplicate_key

JSON = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ('{"rules": [{"name": "a"}, {"name": "b", "threshold": 1, "threshold": 2}]}', "rules[1].threshold"),
        ('{"rules": [], "rules": []}', "rules"),
        ('{"a": {"b": [[{"c": 1, "d": 2, "c": 3}]]}}', "a.b[0][0].c"),
        ('{"a": 1, "\\u0061": 1}', "a"),
        ('{"": 1, "": 2}', ""),
        ('{"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, {"b": 1}]}', None),
        ('{"a": "\\"b\\": 1, \\"b\\": 2"}', None),
        ("[1, 1.5, null, [], {}]", None),
        ("7", None),
    ],
)
def test_the_first_key_that_is_there_twice_is_named(document: str, place: str | None) -> None:
    """With its place, as other faults are; the same key in another object is none, nor is one in a text."""
    assert duplicate_key(document.encode()) == place


@given(JSON)
def test_what_a_writer_of_json_makes_has_none(value: object) -> None:
    """Whatever it is."""
    assert duplicate_key(json.dumps(value).encode()) is None


def test_a_number_of_any_length_is_none() -> None:
    """Python reads no whole number of more than 4300 digits."""
    assert duplicate_key(b"[" + b"1" * 10_000 + b"]") is None
