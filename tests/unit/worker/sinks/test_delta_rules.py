"""What a table's numbers mean, and where a table is a fence."""

from __future__ import annotations

import pytest

from worker.sinks.base import Field
from worker.sinks.delta.columns import field_faults
from worker.sinks.delta.marks import rows_in, version_of
from worker.sinks.delta.places import LINK_STORE, place_fault
from worker.sinks.fence import FenceRow, Mark

DELTAS = "io.delta.storage."


def test_a_higher_token_is_above_every_batch_of_a_lower_one() -> None:
    """And the highest of both is a positive number of 64 bits."""
    last = FenceRow(7, 0, Mark("c", 2**31 - 2))
    assert version_of(last) < version_of(FenceRow(8))
    assert version_of(FenceRow(7)) < version_of(FenceRow(7, 0, Mark("c", 0)))
    assert version_of(FenceRow(2**32 - 1, 0, Mark("c", 2**31 - 2))) == 2**63 - 1


@pytest.mark.parametrize(
    ("path", "store", "missing"),
    [
        ("file:/data/t", LINK_STORE, None),
        ("/data/t", LINK_STORE, None),
        ("file:/data/t", f"{DELTAS}HDFSLogStore", f"spark.delta.logStore.file.impl={LINK_STORE}"),
        ("hdfs://n/t", f"{DELTAS}HDFSLogStore", None),
        ("abfss://c@a/t", f"{DELTAS}AzureLogStore", None),
        ("gs://b/t", f"{DELTAS}GCSLogStore", None),
        ("s3a://b/t", f"{DELTAS}S3SingleDriverLogStore", "spark.delta.logStore.s3a.impl="),
        ("s3a://b/t", f"{DELTAS}S3DynamoDBLogStore", None),
        ("odd://b/t", f"{DELTAS}HDFSLogStore", "spark.delta.logStore.odd.impl"),
        ("odd://b/t", "com.example.OddLogStore", None),
    ],
)
def test_where_commits_are_a_fence(path: str, store: str, missing: str | None) -> None:
    """Else the setting that is missing is named."""
    fault = place_fault(path, store)
    assert (fault is None) == (missing is None)
    assert missing is None or (fault is not None and missing in fault)


def test_columns_that_no_table_takes_are_named() -> None:
    """With what to do about them."""
    fields = [Field("a", "void"), Field("b c", "long"), Field("d", "interval day")]
    faults = list(field_faults(fields, {"sink.options.key": ["e"]}))
    words = ("a of type void", '"b c"', "d of", "column e")
    assert [word in fault for word, fault in zip(words, faults, strict=True)] == [True] * 4


def test_rows_that_a_merge_copies_do_not_count() -> None:
    merged = {"numTargetRowsInserted": "2", "numTargetRowsUpdated": "3", "numOutputRows": "99"}
    assert rows_in(merged) == 5
    assert rows_in({"numOutputRows": "7"}) == 7
    assert rows_in({}) == 0
