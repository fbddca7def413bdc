from __future__ import annotations

import pytest

from worker.spark.entrypoint import is_allowed


@pytest.mark.parametrize(
    ("entrypoint", "prefixes", "allowed"),
    [
        ("flights.pipelines:delays", ["flights"], True),
        ("flights.pipelines:delays", ["flights.pipelines"], True),
        ("flights.pipelines:delays", ["flights.pipelines:delays"], True),
        ("flights.pipelines:delays", ["weather", "flights"], True),
        ("flights:delays", ["flights"], True),
        ("flights.pipelines:delays", [], False),
        ("flights.pipelines:delays", [""], False),
        ("flights.pipelines:delays", ["flight"], False),
        ("flightsuite.pipelines:delays", ["flights"], False),
        ("flights.pipelines:delays", ["flights.pipelines.more"], False),
        ("flights.pipelines:delays", ["flights.pipelines:del"], False),
        ("flights:system", ["flights.pipelines"], False),
    ],
)
def test_prefixes_end_where_names_end(entrypoint: str, prefixes: list[str], allowed: bool) -> None:  # noqa: FBT001 - a table's column
    """`flights` allows `flights` and what is inside it, not `flightsuite`; no prefix allows nothing."""
    assert is_allowed(entrypoint, prefixes) is allowed
