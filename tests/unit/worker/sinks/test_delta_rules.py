"""What a table's numbers mean, and where a table is a fence."""

from __future__ import annotations

from typing import Any

import pytest

from worker.sinks.base import Condition, Field
from worker.sinks.delta.columns import field_faults, merge_faults, partition_columns, table_faults
from worker.sinks.delta.constraints import conditions_of
from worker.sinks.delta.marks import Seen, rows_in, version_of
from worker.sinks.delta.places import LINK_STORE, PUT_STORE, mode_fault, place_fault
from worker.sinks.errors import SchemaError, SinkError
from worker.sinks.fence import FenceRow, Mark

DELTAS = "io.delta.storage."
OLD_DELTAS = "org.apache.spark.sql.delta.storage."


def test_a_higher_token_is_above_every_batch_of_a_lower_one() -> None:
    """And the highest of both is a positive number of 64 bits."""
    last = FenceRow(7, 0, Mark("c", 2**31 - 2))
    assert version_of(last) < version_of(FenceRow(8))
    assert version_of(FenceRow(7)) < version_of(FenceRow(7, 0, Mark("c", 0)))
    assert version_of(FenceRow(2**32 - 1, 0, Mark("c", 2**31 - 2))) == 2**63 - 1


def test_what_a_table_asks_of_rows() -> None:
    """Its CHECK constraints, and those columns of the query that take no NULL."""
    columns = (
        {"name": "Id`s", "type": "long", "nullable": False, "metadata": {}},
        {"name": "v", "type": "string", "nullable": True, "metadata": {}},
        {"name": "made", "type": "long", "nullable": False, "metadata": {}},
    )
    checks = {"delta.constraints.b": "v > 'a'", "delta.constraints.a": "v < 'z'", "delta.appendOnly": "true"}
    seen = Seen(table="t", path="p", log_store=LINK_STORE, versions={}, columns=columns, configuration=checks)
    assert conditions_of([Field("id`s", "long"), Field("v", "string")], seen) == (
        Condition("a", "v < 'z'"),
        Condition("b", "v > 'a'"),
        Condition("NOT NULL Id`s", "`Id``s` IS NOT NULL"),
    )


def test_a_batch_that_does_not_fit_is_refused() -> None:
    """Its number would be that of a newer owner."""
    with pytest.raises(SinkError, match="batch 2147483647 is more than"):
        version_of(FenceRow(7, 0, Mark("c", 2**31 - 1)))


@pytest.mark.parametrize(
    ("path", "store", "missing"),
    [
        ("file:/data/t", LINK_STORE, None),
        ("/data/t", LINK_STORE, None),
        ("file:/data/t", f"{DELTAS}HDFSLogStore", f"spark.delta.logStore.file.impl={LINK_STORE}"),
        ("hdfs://n/t", f"{DELTAS}HDFSLogStore", None),
        ("abfss://c@a/t", f"{DELTAS}AzureLogStore", None),
        ("gs://b/t", f"{DELTAS}GCSLogStore", None),
        ("s3a://b/t", f"{DELTAS}S3SingleDriverLogStore", f"spark.delta.logStore.s3a.impl={PUT_STORE}"),
        ("s3a://b/t", f"{DELTAS}HDFSLogStore", f"spark.delta.logStore.s3a.impl={PUT_STORE}"),
        ("s3://b/t", f"{OLD_DELTAS}LocalLogStore", f"spark.delta.logStore.s3.impl={PUT_STORE}"),
        ("s3a://b/t", "org.example.LogStore", None),
        ("s3a://b/t", PUT_STORE, None),
        ("s3a://b/t", f"{DELTAS}S3DynamoDBLogStore", None),
        ("odd://b/t", f"{DELTAS}HDFSLogStore", "spark.delta.logStore.odd.impl"),
        ("viewfs://b/t", f"{DELTAS}HDFSLogStore", "spark.delta.logStore.viewfs.impl"),
        ("hdfs://n/t", f"{OLD_DELTAS}HDFSLogStore", None),
        ("hdfs://n/t", f"{DELTAS}S3SingleDriverLogStore", "leave spark.delta.logStore.hdfs.impl"),
        ("abfss://c@a/t", f"{DELTAS}LocalLogStore", "leave spark.delta.logStore.abfss.impl"),
        ("gs://b/t", f"{DELTAS}HDFSLogStore", "Delta's own GCSLogStore"),
        ("hdfs://n/t", LINK_STORE, "leave spark.delta.logStore.hdfs.impl"),
        ("s3a://b/t", LINK_STORE, f"spark.delta.logStore.s3a.impl={PUT_STORE}"),
        ("odd://b/t", PUT_STORE, "spark.delta.logStore.odd.impl"),
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


def test_nested_columns_that_no_table_takes_are_named() -> None:
    """Delta itself finds them in the first batch, when the table has them."""
    inner = {"type": "struct", "fields": [{"name": "a", "type": {"type": "array", "elementType": "void"}}]}
    outer = {"type": "map", "keyType": "string", "valueType": inner}
    assert list(field_faults([Field("m", outer)], {})) == [
        "Delta cannot hold m{value}.a[] of type void: cast it"
    ]
    struct: dict[str, Any] = {"type": "struct", "fields": [{"name": "a", "type": "void"}]}
    assert list(field_faults([Field("s", struct)], {})) == []


def test_columns_that_cannot_be_merged_are_named() -> None:
    """Nobody can say of two maps whether they are the same; Delta does not find a name with a backtick."""
    fields = [Field("id", "long"), Field("M", {"type": "map"}), Field("v", "variant"), Field("a`b", "long")]
    faults = list(merge_faults(fields, ["id", "m", "v"]))
    assert [fault.partition(",")[0] for fault in faults] == [
        "sink.options.key names M of type map",
        "sink.options.key names v of type variant",
        "Delta's MERGE takes no column named a`b: give it a name without backticks",
    ]
    assert list(merge_faults(fields, [])) == []


@pytest.mark.parametrize("by", ["delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT"])
def test_a_column_that_delta_fills_may_be_left_out(by: str) -> None:
    """But for a MERGE, which Delta wants to be given all columns."""
    filled: dict[str, Any] = {"name": "g", "type": "long", "metadata": {by: "1"}}
    columns = ({"name": "id", "type": "long"}, filled)
    seen = Seen(table="t", path="file:/t", log_store="", versions={}, columns=columns)
    assert list(table_faults([Field("id", "long")], seen, (), may_add=False)) == []
    [fault] = table_faults([Field("id", "long")], seen, (), may_add=False, appends=False)
    assert "has a column g, which the query does not yield" in fault


def test_a_table_that_takes_append_only_is_told_before_the_first_batch() -> None:
    """A MERGE would fail when it first meets a key that is there."""
    table = {"delta.appendOnly": "true"}
    seen = Seen(table="t", path="file:/t", log_store="", versions={}, configuration=table)
    assert mode_fault(seen, "append") is None
    assert "takes append only (delta.appendOnly = true)" in str(mode_fault(seen, "upsert"))
    assert mode_fault(Seen(table="t", path="file:/t", log_store="", versions={}), "upsert") is None


def test_columns_that_a_table_cannot_be_laid_apart_by_are_refused_before_it_has_any() -> None:
    """A table made by them would refuse every batch, and its layout cannot be changed."""
    fields = [Field("id", "long"), Field("v", "string")]
    (fault,) = field_faults(fields, {"sink.partition_by": ["id", "ID"]})
    assert fault == "sink.partition_by names the column id twice"
    with pytest.raises(SchemaError, match="names every column"):
        partition_columns(fields, ["V", "id"])
    kinds: list[Any] = [{"type": "array"}, "variant", "binary"]
    for kind in kinds:
        with pytest.raises(SchemaError, match=r"names s of type (array|variant|binary), "):
            partition_columns([*fields, Field("s", kind)], ["S"])


def test_partition_by_has_the_letters_of_the_query() -> None:
    """Delta finds them in the table's schema only so."""
    assert partition_columns([Field("Id", "long"), Field("v", "string")], ["iD"]) == ["Id"]


def test_rows_that_a_merge_copies_do_not_count() -> None:
    merged = {"numTargetRowsInserted": "2", "numTargetRowsUpdated": "3", "numOutputRows": "99"}
    assert rows_in(merged) == 5
    assert rows_in({"numOutputRows": "7"}) == 7
    assert rows_in({}) == 0
