"""What anybody may read of a database's error has no value of a row in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definition.quarantine import DEFAULT_TABLE
from definition.sinks.sql import SqlOptions
from tests.integration.sinks.conftest import ListBatch, Peek
from worker.sinks.aside import Beside, Limits
from worker.sinks.base import Field
from worker.sinks.errors import SinkError
from worker.sinks.fence import Owner
from worker.sinks.sql import SqlSink

FIELDS = (Field("id", "integer"), Field("name", "string"))
SECRET = "sesame"
BY_COLUMN = {
    "sqlite": {
        "TEXT CHECK (name <> 'sesam' || 'e')": "CHECK constraint failed: name <> 'sesam' || 'e'",
        "TEXT UNIQUE": "UNIQUE constraint failed: t.name",
        "INTEGER) STRICT --": "cannot store TEXT value in INTEGER column t.name",
        "TEXT CHECK (json_extract('{}', name) IS NULL)": 'refused: JSON path error near "…"',
    },
    "postgresql": {
        "VARCHAR(4)": "value too long for type character varying(4)",
        "TEXT CONSTRAINT nobody CHECK (length(name) < 6)": (
            'new row for relation "t" violates check constraint "nobody"'
        ),
        "TEXT UNIQUE": 'duplicate key value violates unique constraint "t_name_key"',
        "TEXT CHECK (name::mood IS NOT NULL)": "invalid text representation (SQLSTATE 22P02)",
        "TEXT CHECK (name::date IS NOT NULL)": "invalid datetime format (SQLSTATE 22007)",
        "short": "check violation (SQLSTATE 23514), constraint short_check, datatype short",
        "TEXT CHECK (name::regclass IS NOT NULL)": 'refused: relation "…" does not exist',
        "TEXT CHECK (name::regrole IS NOT NULL)": 'refused: role "…" does not exist',
        "TEXT CHECK (name::regoper IS NOT NULL)": "refused: operator does not exist: …",
        "TEXT CHECK ((name || ' &&& ')::tsquery IS NOT NULL)": "refused: syntax error in tsquery: …",
        "TEXT CHECK (looked_up(name) IS NOT NULL)": "refused: undefined table (SQLSTATE 42P01)",
        "mood": 'refused: column "name" is of type mood but expression is of type character varying',
    },
}
TYPES = (
    "CREATE TYPE mood AS ENUM ('ok')",
    "CREATE DOMAIN short AS TEXT CHECK (length(VALUE) < 6)",
    (
        "CREATE FUNCTION looked_up(name TEXT) RETURNS int LANGUAGE plpgsql AS"
        " $$DECLARE n int; BEGIN EXECUTE 'SELECT 1 FROM ' || name INTO n; RETURN n; END$$"
    ),
)
BY_TRIGGER = {
    "sqlite": [("", "SQLITE_CONSTRAINT_TRIGGER")],
    "postgresql": [
        ("P0001", "raise exception (SQLSTATE P0001)"),
        ("23514", "check violation (SQLSTATE 23514)"),
        ("45000", "(SQLSTATE 45000)"),
        ("42501", "insufficient privilege (SQLSTATE 42501)"),
        ("23505", "unique violation (SQLSTATE 23505)"),
        *((state, f"(SQLSTATE {state})") for state in ("P0002", "U0001", "40001", "XX001", "57014")),
    ],
}
TRIGGERS = {
    "sqlite": ("CREATE TRIGGER no BEFORE INSERT ON t BEGIN SELECT RAISE(ABORT, 'who said sesame?'); END",),
    "postgresql": (
        (
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION"
            " USING ERRCODE = 'STATE', MESSAGE = 'who said ' || NEW.name || '?', TABLE = 't'; END$$"
        ),
        "CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no()",
    ),
}
WHO = "'who said ' || NEW.name || '?'"
NULL = '\'null value in column "t" of relation "t" violates not-null constraint\''


class StagedBatch(ListBatch):
    """One that counts as large."""

    collects = False


def cause(url: str, batch: Any, *, most: int | None) -> str:
    """Of a batch with rows that the database refuses; `most` may be put aside, if any."""
    beside = None if most is None else Beside(DEFAULT_TABLE, Limits(most, 1.0), takes_refused=True)
    sink = SqlSink(SqlOptions(url=url, table="t"), Owner("g", "t", 1), beside)
    try:
        sink.claim()
        sink.prepare(FIELDS)
        with pytest.raises(SinkError) as refused:
            sink.write(batch(0, [(number, SECRET) for number in range(4)]))
        return str(refused.value)
    finally:
        sink.close()


@pytest.mark.parametrize("most", [None, 1])
def test_no_cause_has_a_value(url: str, peek: Any, batch: Any, most: int | None) -> None:
    """Whatever the database says of it: its own words are shown where they have none, else their kind."""
    dialect = url.partition(":")[0]
    peek.run(*(TYPES if dialect == "postgresql" else ()))
    for column, words in BY_COLUMN[dialect].items():
        peek.run(f"CREATE TABLE t (id INTEGER, name {column})")
        told = cause(url, batch, most=most)
        assert words in told
        assert SECRET not in told
        peek.run("DROP TABLE t", "DELETE FROM sparkherd_fence")


@pytest.mark.parametrize("most", [None, 1])
def test_no_staged_row_is_in_a_cause(
    url: str, peek: Any, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that come from a staging area are written by other statements, under the same rule."""
    check = {"sqlite": "json_extract('{}', name) IS NULL", "postgresql": "name::regclass IS NOT NULL"}
    peek.run(f"CREATE TABLE t (id INTEGER, name TEXT CHECK ({check[url.partition(':')[0]]}))")

    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 2)
    told = cause(url, StagedBatch, most=most)
    assert '"…"' in told
    assert SECRET not in told


def test_what_a_trigger_calls_a_constraint_may_be_a_value(postgres: Any, batch: Any) -> None:
    """Or a column, a table, a type."""
    url = postgres.new_database("postgresql")
    peek = Peek(url)
    peek.run("CREATE TABLE t (id INTEGER, name TEXT)")
    of_row = ", ".join(f"{each} = NEW.name" for each in ("CONSTRAINT", "COLUMN", "TABLE", "DATATYPE"))
    peek.run(
        *(each.replace("TABLE = 't'", of_row).replace("STATE", "23514") for each in TRIGGERS["postgresql"])
    )
    told = [cause(url, batch, most=most) for most in (None, 1)]
    peek.engine.dispose()
    postgres.drop(url)
    assert not any(SECRET in each for each in told)
    assert told[0].endswith("refused: check violation (SQLSTATE 23514)")


def test_what_mimics_the_database_is_known_as_a_user_s(postgres: Any, batch: Any) -> None:
    """A trigger that says what PostgreSQL would say is shown by its kind, too."""
    url = postgres.new_database("postgresql")
    peek = Peek(url)
    peek.run("CREATE TABLE t (id INTEGER, name TEXT)")
    peek.run(
        *(
            each.replace("STATE', ", "23505', COLUMN = 't', ").replace(WHO, NULL)
            for each in TRIGGERS["postgresql"]
        )
    )
    told = cause(url, batch, most=None)
    peek.engine.dispose()
    postgres.drop(url)
    assert told.endswith("refused: unique violation (SQLSTATE 23505)")


@pytest.mark.parametrize("most", [None, 1])
def test_what_is_wrong_with_the_task_s_own_tables_is_named(
    url: str, peek: Any, batch: Any, most: int | None
) -> None:
    """A table or a column that is gone since the start is called by its name: no row has it."""
    sink = SqlSink(
        SqlOptions(url=url, table="t"),
        Owner("g", "t", 1),
        None if most is None else Beside(DEFAULT_TABLE, Limits(most, 1.0), takes_refused=True),
    )
    sink.claim()
    sink.prepare(FIELDS)
    peek.run("ALTER TABLE t RENAME COLUMN name TO other")
    with pytest.raises(SinkError, match=r'column "name" of relation "t" does not|t has no column named name'):
        sink.write(batch(0, [(1, SECRET)]))
    peek.run("DROP TABLE t")
    with pytest.raises(SinkError, match=r'relation "t" does not exist|no such table: t'):
        sink.write(batch(0, [(1, SECRET)]))
    sink.close()


@pytest.mark.parametrize("most", [None, 1])
def test_no_cause_has_what_a_trigger_says(url: str, peek: Any, batch: Any, most: int | None) -> None:
    """Under whichever code: what it puts into its message only whoever made it knows."""
    dialect = url.partition(":")[0]
    for state, words in BY_TRIGGER[dialect]:
        peek.run("CREATE TABLE t (id INTEGER, name TEXT)")
        peek.run(*(each.replace("STATE", state) for each in TRIGGERS[dialect]))
        told = cause(url, batch, most=most)
        assert words in told
        assert SECRET not in told
        peek.run("DROP TABLE t", *(["DROP FUNCTION no"] if dialect == "postgresql" else []))
        peek.run("DELETE FROM sparkherd_fence")


def test_whoever_may_see_the_row_may_read_all_that_the_database_has_said(
    url: str, peek: Any, batch: Any
) -> None:
    """It is put aside with the row."""
    dialect = url.partition(":")[0]
    peek.run("CREATE TABLE t (id INTEGER, name TEXT)")
    peek.run(*(each.replace("STATE", "P0001") for each in TRIGGERS[dialect]))
    beside = Beside(DEFAULT_TABLE, Limits(10, 1.0), takes_refused=True)
    sink = SqlSink(SqlOptions(url=url, table="t"), Owner("g", "t", 1), beside)
    sink.claim()
    sink.prepare(FIELDS)
    sink.write(batch(0, [(1, SECRET)]))
    sink.close()
    [(error, raw)] = peek(f"SELECT error, raw FROM {DEFAULT_TABLE}")
    assert (error, json.loads(raw)["name"]) == ("who said sesame?", SECRET)
