from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from worker.sinks.base import Field
from worker.sinks.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.sinks.sql import SqlSink


def refusal(make_sink: Callable[..., SqlSink], **options: Any) -> str:
    with pytest.raises(SchemaError) as refused:
        make_sink(1, **options)
    return str(refused.value)


def test_an_existing_table_is_used_as_it_is(peek: Any, make_sink: Callable[..., SqlSink], batch: Any) -> None:
    """Its columns may be in any order and case, and more of them, if those can be left out."""
    number = "INTEGER" if peek.engine.dialect.name == "sqlite" else "SERIAL"
    peek.run(f"CREATE TABLE delays (id {number} PRIMARY KEY, DELAY REAL, note TEXT, Carrier TEXT)")
    sink = make_sink(1)
    sink.write(batch(0, [("UA", 2.0)]))
    assert peek("SELECT carrier, delay FROM delays") == [("UA", 2.0)]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_any_name_will_do_for_a_column(
    mode: str, make_sink: Callable[..., SqlSink], batch: Any, peek: Any
) -> None:
    """Words that SQL reserves, spaces, quotes and other letters than those of English."""
    fields = tuple(Field(name, "long") for name in ("group", "nothing", "a b", "Größe", 'say "x"', "%s", "?"))
    key = ("nothing", "%s") if mode == "upsert" else ()
    sink = make_sink(1, fields=fields, table="order", mode=mode, key=key)
    sink.write(batch(0, [tuple(range(7))]))
    make_sink(2, fields=fields, table="order", mode=mode, key=key).write(batch(1, [tuple(range(7))]))
    assert peek('SELECT "nothing", "Größe", "a b" FROM "order"') == [(1, 3, 2)] * (
        1 if mode == "upsert" else 2
    )


def test_a_missing_column_is_named(peek: Any, make_sink: Callable[..., SqlSink]) -> None:
    """A table that lacks a column of the query is refused before anything runs."""
    peek.run("CREATE TABLE delays (carrier TEXT)")
    assert refusal(make_sink) == "the table delays has no column delay, which the query yields"


def test_a_required_column_is_named(peek: Any, make_sink: Callable[..., SqlSink]) -> None:
    """A table that demands a column the query has not got is refused before anything runs."""
    peek.run("CREATE TABLE delays (carrier TEXT, delay REAL, day TEXT NOT NULL, n INT NOT NULL DEFAULT 1)")
    assert refusal(make_sink) == "the table delays requires day, which the query does not yield"


def test_columns_of_one_name_are_refused(make_sink: Callable[..., SqlSink]) -> None:
    """Spark allows `SELECT a, A`; a table cannot have both."""
    said = refusal(make_sink, fields=(Field("a", "long"), Field("A", "long")))
    assert said == "the query has several columns of the name a: give each its own with AS"


def test_a_key_must_be_a_column(make_sink: Callable[..., SqlSink]) -> None:
    """An upsert by a column that is not there says which ones are."""
    said = refusal(make_sink, mode="upsert", key=("hour",))
    assert said == "sink.options.key names hour, but the query's columns are carrier, delay"


def test_a_key_of_an_existing_table_must_be_unique(peek: Any, make_sink: Callable[..., SqlSink]) -> None:
    """Without a unique index nothing could be found again; the text names the key."""
    peek.run("CREATE TABLE delays (carrier TEXT, delay REAL)")
    said = refusal(make_sink, mode="upsert", key=("carrier",))
    assert said == "the table delays has no unique index on carrier, the key of this upsert"


@pytest.mark.parametrize(
    "unique",
    ["CREATE UNIQUE INDEX k ON delays (delay, carrier)", "SELECT 1"],
    ids=["unique index", "primary key"],
)
def test_any_unique_index_will_do(
    peek: Any, unique: str, make_sink: Callable[..., SqlSink], batch: Any
) -> None:
    """The order of its columns does not matter, nor whether it is the primary key."""
    key = "" if "INDEX" in unique else ", PRIMARY KEY (delay, carrier)"
    peek.run(f"CREATE TABLE delays (carrier TEXT, delay REAL, n INT{key})", unique)
    sink = make_sink(
        1,
        fields=(Field("carrier", "string"), Field("delay", "double"), Field("n", "long")),
        mode="upsert",
        key=("carrier", "delay"),
    )
    sink.write(batch(0, [("UA", 2.0, 1), ("UA", 2.0, 2)]))
    assert peek("SELECT n FROM delays") == [(2,)]
