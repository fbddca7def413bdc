"""Names with wildcards."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manager.core.alarms.globs import fits


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("*", "", True),
        ("*", "delays", True),
        ("delays", "delays", True),
        ("delays", "delays2", False),
        ("delays", "delay", False),
        ("del*", "delays", True),
        ("*ays", "delays", True),
        ("d*y*", "delays", True),
        ("d*x*", "delays", False),
        ("delay?", "delays", True),
        ("delay?", "delay", False),
        ("?", "", False),
        ("a*b*c", "aXbXbXc", True),
        ("a*b*c", "aXcXb", False),
        ("de.ays", "delays", False),
        ("[d]elays", "delays", False),
        ("**", "x", True),
        ("ab*ba", "aba", False),
        ("a*b*b", "ab", False),
        ("a*b*b", "abb", True),
        ("*a?c*", "xabcx", True),
    ],
)
def test_what_fits(pattern: str, name: str, expected: bool) -> None:  # noqa: FBT001 - a table
    """`*` and `?` mean something, and nothing else does."""
    assert fits(pattern, name) is expected


@given(pattern=st.text("ab*?", max_size=10), name=st.text("ab", max_size=12))
def test_it_is_what_a_regular_expression_says(pattern: str, name: str) -> None:
    """Which tries all there is."""
    written = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    assert fits(pattern, name) is (re.fullmatch(written, name) is not None)


@pytest.mark.parametrize(
    "pattern",
    ["*a" * 100 + "*b", "*?a" * 80 + "*b", "*a" + "?" * 120 + "b*", "*" + "?" * 248 + "b", "?*" * 124],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    """Those that would keep a regular expression busy for ever come to an end."""
    name = "a" * 249
    assert fits(pattern, name) is pattern.endswith("?*")


def test_a_name_may_have_any_characters() -> None:
    """Labels are values of users: a line break is a character."""
    assert fits("a?b*?", "a\nb\n")
