"""What sinks would say of a query's columns: real tables are looked at, and nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from definition.sink import Sink
from worker.sinks.base import Field
from worker.sinks.errors import SinkError
from worker.sinks.factory import inspect_sink

if TYPE_CHECKING:
    from tests.integration.postgres import Server
    from tests.integration.sinks.conftest import Peek

FIELDS = (Field("id", "long"), Field("name", "string"), Field("at", "timestamp"))


def look(url: str, *fields: Field, **options: Any) -> list[tuple[str, str, bool]]:
    sink = Sink(format="sql", options={"url": url, "table": "t", **options})
    return [(each.path, each.text, each.is_fine) for each in inspect_sink(sink, fields or FIELDS, "g")]


def test_a_table_that_fits(url: str, peek: Peek) -> None:
    """Nothing is to be said, and nothing was written, a fence least of all."""
    peek.run("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, at TIMESTAMP, more TEXT)")
    assert look(url, mode="upsert", key=["id"]) == []
    assert peek("SELECT count(*) FROM t") == [(0,)]
    with pytest.raises(Exception, match="sparkherd_fence"):
        peek("SELECT * FROM sparkherd_fence")


def test_a_table_that_is_not_there(url: str, peek: Peek) -> None:
    """It would be made, and is not."""
    peek.run("CREATE TABLE other (id BIGINT)")
    assert look(url) == [("sink.options.table", "the table t is not there: it would be made", True)]
    with pytest.raises(Exception, match=r"no such table|does not exist"):
        peek("SELECT * FROM t")


def test_all_that_a_table_lacks(url: str, peek: Peek) -> None:
    """At once, where the sink itself stops at the first."""
    peek.run("CREATE TABLE t (id BIGINT, must TEXT NOT NULL, may TEXT NOT NULL DEFAULT '')")
    found = look(url, mode="upsert", key=["id"])
    assert [text for _, text, is_fine in found if not is_fine] == [
        "the table t has no column name, at, which the query yields",
        "the table t requires must, which the query does not yield",
        "the table t has no unique index on id, the key of this upsert",
    ]


def test_types_that_do_not_go_there(url: str, peek: Peek) -> None:
    """PostgreSQL refuses them, SQLite takes whatever comes; what is converted is no matter."""
    peek.run("CREATE TABLE t (id TEXT, name BIGINT, at DATE, n NUMERIC, f DOUBLE PRECISION)")
    found = look(url, *FIELDS, Field("n", "long"), Field("f", "decimal(10,2)"))
    is_loose = url.startswith("sqlite")
    wrong = [(text.partition(" is of")[0], is_fine) for _, text, is_fine in found]
    assert wrong[:2] == [("the column id", is_loose), ("the column name", is_loose)]
    assert "is of type BIGINT there, and the query yields string" in found[1][1]
    assert len(wrong) == 2 or (is_loose and len(wrong) == 3)


def test_a_schema_that_is_not_there(postgres: Server) -> None:
    """It has to be created first."""
    [(path, text, is_fine)] = look(postgres.url, table="nowhere.t")
    assert (path, is_fine) == ("sink", False)
    assert "the schema nowhere, which the database does not have" in text


def test_a_database_that_does_not_answer() -> None:
    """It is the sink's error, without the password."""
    with pytest.raises(SinkError, match=r"postgresql\+psycopg://u:\*\*\*@127.0.0.1:1/x refused"):
        look("postgresql://u:hunter22@127.0.0.1:1/x")


@pytest.mark.parametrize(
    ("fields", "path", "said"),
    [
        ([Field("a", {"type": "array", "elementType": "long"})], "sink", "select to_json(a) AS a instead"),
        ([Field("a", "long"), Field("A", "long")], "sink", "several columns of the name a"),
    ],
)
def test_columns_that_no_table_has(fields: list[Field], path: str, said: str) -> None:
    """No database is asked."""
    [(place, text, is_fine)] = look("sqlite:////nowhere/x.db", *fields)
    assert (place, said in text, is_fine) == (path, True, False)


def test_files_and_sinks_of_spark() -> None:
    """Files have rules of their own; of Spark's sinks nobody knows."""
    files = Sink(format="fenced_files", options={"path": "/nowhere"})
    [wrong] = inspect_sink(files, [Field("a", "void")], "g")
    assert (wrong.path, wrong.is_fine) == ("sink", False)
    assert "files cannot hold a of type void" in wrong.text
    [note] = inspect_sink(Sink(format="console"), [Field("a", "void")], "g")
    assert (note.path, note.is_fine) == ("sink", True)
