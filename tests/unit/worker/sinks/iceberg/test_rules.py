"""The rules of the Iceberg sink that need no table: marks, names, catalogs, columns, layouts, options."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from definition.document import DefinitionError, parse_definition
from worker.sinks.base import Field
from worker.sinks.errors import SchemaError, SinkError
from worker.sinks.fence import FenceRow, Mark, Owner, Verdict, judge
from worker.sinks.iceberg.columns import Column, fit, require_key
from worker.sinks.iceberg.ddl import type_sql
from worker.sinks.iceberg.history import Marked, Seen
from worker.sinks.iceberg.layout import partition_fields, require_same
from worker.sinks.iceberg.marks import read_mark, tag_of, write_mark
from worker.sinks.iceberg.naming import read_name, require_safe

OWNER = Owner("g", "t", 7, 1)
ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
FIELDS = (Field("id", "long"), Field("at", "timestamp"), Field("odd name", "string"))


@pytest.mark.parametrize("last", [None, Mark("c", 4, "p"), Mark("c", 0)])
@pytest.mark.parametrize(("added", "rows"), [(None, 13), (5, 15)])
def test_a_mark_is_the_fence_row(last: Mark | None, added: int | None, rows: int) -> None:
    """Its rows are those before, and those that came with it, by its own count or the snapshot's."""
    text = write_mark(OWNER, FenceRow(7, 1, last, 10), added)
    assert read_mark(OWNER, text, 3) == FenceRow(7, 1, last, rows)


@pytest.mark.parametrize("text", ["", "{}", '{"token": 1}'])
def test_a_mark_that_cannot_be_read_is_refused(text: str) -> None:
    """Nobody guesses; and one of another task, whose digest is the same by accident, is none of ours."""
    with pytest.raises(SinkError, match="cannot be read"):
        read_mark(OWNER, text, 0)
    other = write_mark(Owner("g", "other", 7, 1), FenceRow(7), 0)
    with pytest.raises(SinkError, match="is of task other"):
        read_mark(OWNER, other, 0)


def _nested(ddl: str) -> Any:
    """A struct of numbers and texts, as `a: integer, b: string`."""
    fields = [each.split(": ") for each in ddl.split(", ")]
    return {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in fields]}


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (_nested("a: integer, b: string, c: long"), "s.c is not in the table"),
        (_nested("a: integer"), "s.b of the table is not in the query"),
        (_nested("a: string, b: string"), "s.a is string, and integer in the table"),
        (_nested("b: string, a: integer"), "s has its fields as b, a, and as a, b in the table"),
        ({"type": "array", "elementType": "long"}, "s is array, and struct in the table"),
    ],
)
def test_the_nested_field_that_does_not_fit_is_named(ours: Any, said: str) -> None:
    """A struct is not said to be no struct; the same goes for what is in lists and maps."""
    theirs = _nested("a: integer, b: string")
    with pytest.raises(SchemaError) as refused:
        fit([Field("s", ours)], [Column("s", theirs)], merge_schema=True)
    assert str(refused.value).endswith(f": {said}")
    if ours["type"] == "struct":
        wrapped = [{"type": "map", "keyType": "string", "valueType": each} for each in (ours, theirs)]
        with pytest.raises(SchemaError) as refused:
            fit([Field("s", wrapped[0])], [Column("s", wrapped[1])], merge_schema=True)
        assert str(refused.value).endswith(f": {said.replace('s', 's{value}', 1)}")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (_nested("A: integer, b: string, a: integer"), "s has two fields of one name, A and a"),
        (_nested("a: integer, a: string"), "s has two fields of one name, a and a"),
        (_nested("a: void"), "Iceberg cannot hold s.a of type void"),
        (_nested("a: time(6)"), "Iceberg cannot hold s.a of type time(6)"),
        (_nested("a: interval year"), "Iceberg cannot hold s.a of type interval year"),
    ],
)
def test_nested_columns_that_would_spoil_a_table_are_refused(kind: Any, said: str) -> None:
    """In structs, lists and maps, before anything is altered."""
    in_list = {"type": "array", "elementType": kind}
    in_map = {"type": "map", "keyType": "string", "valueType": in_list}
    for made, path in ((kind, "s"), (in_list, "s[]"), (in_map, "s{value}[]")):
        with pytest.raises(SchemaError) as refused:
            fit([Field("s", made)], [], merge_schema=True)
        assert said.replace("s ", f"{path} ", 1).replace("s.", f"{path}.", 1) in str(refused.value)


def test_a_key_has_to_be_comparable() -> None:
    """A map is not, nor is what has one in it."""
    kind = {"type": "map", "keyType": "string", "valueType": "string"}
    with pytest.raises(SchemaError, match=r"sink\.options\.key names M of type map, which"):
        require_key(["M"], [Field("m", kind)])
    with pytest.raises(SchemaError, match="of type array, which"):
        require_key(["m"], [Field("m", {"type": "array", "elementType": kind})])
    require_key(["s"], [Field("s", _nested("a: integer"))])


def test_a_task_has_a_tag_for_each_branch_it_writes_to() -> None:
    """The same under any token, and another task's is another."""
    later, other = Owner("g", "t", 8, 2), Owner("g", "other", 7, 1)
    assert tag_of(OWNER, "main") == tag_of(later, "main")
    assert len({tag_of(OWNER, "main"), tag_of(OWNER, "audit"), tag_of(other, "main")}) == 3


def test_the_tag_counts_where_the_past_has_expired() -> None:
    """And only there: a head that was rolled back is believed, but for who has the task."""
    tagged = Marked(write_mark(OWNER, FenceRow(7, 1, Mark("c", 4)), 0), 0)
    found = Marked(write_mark(OWNER, FenceRow(7, 1, Mark("c", 2)), 0), 0)
    assert Seen(1, has_branch=True, found=found, is_whole=True, tagged=tagged).fence(OWNER) == FenceRow(
        7, 1, Mark("c", 2)
    )
    assert Seen(1, has_branch=True, found=None, is_whole=False, tagged=tagged).fence(OWNER) == FenceRow(
        7, 1, Mark("c", 4)
    )
    rolled_back = Seen(1, has_branch=True, found=None, is_whole=True, tagged=tagged)
    assert rolled_back.fence(OWNER) == FenceRow(7)
    assert rolled_back._replace(tagged=None).fence(OWNER) is None


def test_a_rollback_past_a_claim_gives_the_former_owner_nothing() -> None:
    """The batches of the next owner are gone, and its token is not: a zombie is refused."""
    former, owner = replace(OWNER, token=7), replace(OWNER, token=8)
    found = Marked(write_mark(former, FenceRow(7, 0, Mark("c", 2)), 0), 0)
    tagged = Marked(write_mark(owner, FenceRow(8, 0, Mark("c", 4)), 0), 0)
    row = Seen(1, has_branch=True, found=found, is_whole=True, tagged=tagged).fence(former)
    assert row == FenceRow(8, 0, Mark("c", 2))
    assert judge(row, replace(former, resets=0), Mark("c", 3)) is Verdict.FENCED


@pytest.mark.parametrize(
    ("text", "sql"),
    [("lake.shop.t", "`lake`.`shop`.`t`"), ("lake.`a.b`.c.`d``e`", "`lake`.`a.b`.`c`.`d``e`")],
)
def test_tables_are_quoted(text: str, sql: str) -> None:
    """Whatever is in their names."""
    assert read_name(text).sql == sql


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({}, "spark.sql.catalog.lake is not set"),
        ({"": "org.example.Other"}, "not of Iceberg's"),
        ({"": ICEBERG, ".type": "hadoop"}, "spark.sql.catalog.lake.type is hadoop"),
        ({"": ICEBERG, ".catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog"}, "lake.catalog-impl is"),
        ({"": ICEBERG}, "lock-enabled is not false"),
        ({"": ICEBERG, ".type": "hive"}, "lock-enabled is not false"),
        ({"": ICEBERG, ".type": "hive", ".hadoop.iceberg.engine.hive.lock-enabled": "false"}, None),
        ({"": ICEBERG, ".type": "jdbc"}, None),
        ({"": ICEBERG, ".type": "rest"}, None),
        ({"": ICEBERG, ".type": "Hadoop"}, "spark.sql.catalog.lake.type is Hadoop"),
        ({"": ICEBERG, ".TYPE": "hadoop"}, "spark.sql.catalog.lake.TYPE is hadoop"),
        ({"": ICEBERG, ".type": "jdbc", ".Type": "hadoop"}, "spark.sql.catalog.lake.Type is hadoop"),
        ({"": ICEBERG, ".type": "HIVE"}, "lock-enabled is not false"),
        ({"": ICEBERG, ".Type": "jdbc"}, None),
    ],
)
def test_catalogs_whose_commit_does_not_compare_are_refused(conf: dict[str, str], said: str | None) -> None:
    """And the setting is named."""
    settings = {f"spark.sql.catalog.lake{name}": value for name, value in conf.items()}
    if said is None:
        require_safe("lake", settings)
        return
    with pytest.raises(SinkError) as refused:
        require_safe("lake", settings)
    assert said in str(refused.value)


def test_columns_fit_if_no_value_is_changed() -> None:
    """Narrower ones go into wider ones; nested types count without what may be missing in them."""
    nested = {"type": "array", "elementType": "integer", "containsNull": True}
    there = [Column("ID", "long"), Column("n", {**nested, "containsNull": False}), Column("old", "string")]
    found = fit([Field("id", "integer"), Field("n", nested)], there, merge_schema=False)
    assert (found.add, found.widen, found.empty) == ((), (), (there[2],))


@pytest.mark.parametrize(
    ("ours", "theirs", "widens"),
    [
        ("long", "integer", True),
        ("decimal(12,2)", "decimal(10,2)", True),
        ("decimal(12,3)", "decimal(12,2)", False),
        ("string", "long", False),
        ("timestamp", "timestamp_ntz", False),
    ],
)
def test_columns_that_do_not_fit_are_named(ours: str, theirs: str, *, widens: bool) -> None:
    """Some of them the table can be made fit for, if the definition says so."""
    with pytest.raises(SchemaError, match="c is "):
        fit([Field("c", ours)], [Column("c", theirs)], merge_schema=False)
    if widens:
        assert fit([Field("c", ours)], [Column("c", theirs)], merge_schema=True).widen == (Field("c", ours),)
        return
    with pytest.raises(SchemaError, match="c is "):
        fit([Field("c", ours)], [Column("c", theirs)], merge_schema=True)


def test_partitions_are_those_of_iceberg() -> None:
    """In one spelling; a column that is not there is named, with those that are."""
    fields = partition_fields(["days(AT)", "bucket( 4 , id )", "odd name"], FIELDS)
    assert fields == ["days(`at`)", "bucket(4, `id`)", "`odd name`"]
    require_same(fields, ["days(`at`)", "bucket(4, `id`)", "`odd name`"])
    require_same([], fields)
    with pytest.raises(SchemaError, match="names weeks"):
        partition_fields(["weeks(at)"], FIELDS)
    for twins in (["days(at)", "DAY( at )"], ["id", "ID"], ["id", "id"], ["bucket(4, id)", "bucket( 4,ID)"]):
        with pytest.raises(SchemaError, match="twice"):
            partition_fields(twins, FIELDS)
    partition_fields(
        ["days(at)", "hours(at)", "at", "bucket(4, id)", "bucket(8, id)", "truncate(4, id)"], FIELDS
    )
    with pytest.raises(SchemaError, match="partitioned by nothing"):
        require_same(fields, [])


def test_types_are_written_as_sql() -> None:
    """Nested ones with their names in backticks."""
    inner = {"type": "struct", "fields": [{"name": "a b", "type": "long"}, {"name": "c", "type": "short"}]}
    kind = {"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": inner}}
    assert type_sql(kind) == "map<string, array<struct<`a b`: bigint, `c`: int>>>"


SINK: dict[str, Any] = {"format": "iceberg", "table": "lake.shop.t"}


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"table": None}, "sink.table"),
        ({"table": "shop.t"}, "sink.table"),
        ({"table": "lake.shop.t.branch_audit"}, "sink.table"),
        ({"table": "lake.shop.t.`tag_1`"}, "sink.table"),
        ({"options": {"mode": "upsert"}}, "sink.options.key"),
        ({"options": {"key": ["a"]}}, "sink.options.key"),
        ({"options": {"branch": "sparkherd_x"}}, "sink.options.branch"),
        ({"options": {"branch": "a b"}}, "sink.options.branch"),
        ({"options": {"mode": "overwrite"}}, "output_mode"),
        ({"options": {"merge-schema": True}}, "sink.options.merge-schema"),
    ],
)
def test_definitions_that_cannot_be_right_are_refused(changes: dict[str, Any], where: str) -> None:
    """With the place of what is wrong."""
    document = {"source": {"format": "rate"}, "sink": {**SINK, **changes}}
    with pytest.raises(DefinitionError) as refused:
        parse_definition(json.dumps(document).encode())
    assert where in {problem.path for problem in refused.value.problems}


@pytest.mark.parametrize(
    "table", ["lake.shop.branch_offices", "lake.shop.eu.orders", "lake.`a.b`.tag_counts"]
)
def test_tables_in_a_catalog_are_taken(table: str) -> None:
    """A name of three parts names no branch, whatever it begins with."""
    parse_definition(json.dumps({"source": {"format": "rate"}, "sink": {**SINK, "table": table}}).encode())


def test_a_definition_is_fenced_and_needs_iceberg() -> None:
    """A worker without its package is not given the task."""
    definition = parse_definition(json.dumps({"source": {"format": "rate"}, "sink": SINK}).encode())
    assert definition.is_fenced
    assert definition.needs.sink == "iceberg"
