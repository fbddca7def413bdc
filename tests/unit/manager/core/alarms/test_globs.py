"""Names with wildcards."""

from __future__ import annotations

import pytest

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
    ],
)
def test_what_fits(pattern: str, name: str, expected: bool) -> None:  # noqa: FBT001 - a table
    """`*` and `?` mean something, and nothing else does."""
    assert fits(pattern, name) is expected


def test_no_pattern_takes_long() -> None:
    """One that would keep a regular expression busy for ever comes to an end."""
    assert not fits("*a" * 100 + "*b", "a" * 249)
