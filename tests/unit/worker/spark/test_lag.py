from __future__ import annotations

from typing import Any

import pytest

from worker.spark.lag import lag_of

KAFKA = {
    "startOffset": {"orders": {"0": 1, "1": 1}},
    "endOffset": {"orders": {"0": 10, "1": 20}},
    "latestOffset": {"orders": {"0": 15, "1": 20, "2": 4}},
    "metrics": {"avgOffsetsBehindLatest": "1.6", "maxOffsetsBehindLatest": "5"},
}
"""As Spark's Kafka source tells it; partition 2 has just been added."""


@pytest.mark.parametrize(
    ("source", "lag"),
    [
        (KAFKA, {"offsets": 9}),
        ({"endOffset": 40, "latestOffset": 41}, {"offsets": 1}),
        ({"endOffset": 41, "latestOffset": 40}, {"offsets": 0}),
        (
            {"metrics": {"numFilesOutstanding": "3", "numBytesOutstanding": "2048"}},
            {"files": 3, "bytes": 2048},
        ),
        ({"endOffset": {"logOffset": 3}, "latestOffset": None}, {}),
        ({"endOffset": {"v": 3}, "latestOffset": "opaque"}, {}),
        ({"endOffset": {"v": "a"}, "latestOffset": {"v": "b"}}, {}),
        ({"endOffset": True, "latestOffset": True}, {}),
        ({"metrics": {"numFilesOutstanding": "many"}}, {}),
        ({}, {}),
    ],
)
def test_a_source_lags_by_what_it_tells(source: dict[str, Any], lag: dict[str, float]) -> None:
    """Whatever its offsets look like; no figure is made up."""
    assert lag_of([source]) == lag


def test_sources_add_up_by_unit() -> None:
    """A join of two streams has two of them."""
    assert lag_of([KAFKA, {"endOffset": 1, "latestOffset": 2}, {}]) == {"offsets": 10}
