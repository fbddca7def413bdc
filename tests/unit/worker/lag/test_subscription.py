"""What a Kafka source's options say of what it reads."""

from __future__ import annotations

from typing import Any

import pytest

from worker.lag.subscription import assigned_of, named_of, pattern_of


@pytest.mark.parametrize(
    ("options", "named", "pattern", "assigned"),
    [
        ({"subscribe": "orders, paid,"}, ["orders", "paid"], None, None),
        ({"SUBSCRIBE": "orders"}, ["orders"], None, None),
        ({"subscribePattern": " or.* "}, [], "or.*", None),
        ({"assign": '{"paid": [0, 2]}'}, ["paid"], None, {"paid": {0, 2}}),
        ({"assign": '{"paid": [0.0, 2], "orders": []}'}, ["paid"], None, {"paid": {0, 2}, "orders": set()}),
        ({"assign": "nonsense"}, [], None, {}),
        ({}, [], None, None),
    ],
)
def test_topics_are_named_or_matched(
    options: dict[str, Any], named: list[str], pattern: str | None, assigned: Any
) -> None:
    """In whichever spelling of the option, as Spark takes it."""
    assert named_of(options) == named
    assert pattern_of(options) == pattern
    assert assigned_of(options) == assigned
