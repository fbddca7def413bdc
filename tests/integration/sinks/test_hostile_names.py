"""Names and values that others have chosen, and what is in the database by their doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from worker.sinks.base import Field
from worker.sinks.errors import SchemaError, SinkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.sinks.sql import SqlSink

    MakeSink = Callable[..., SqlSink]

NAMES = ("%", "%s", "%%", "%(a)s", "?", ":a", "a b", 'say "x"', "group", "c0", "sparkherd_partition", "Größe")


@pytest.fixture(autouse=True, params=["inline", "staged"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, batch: Any) -> None:
    """Rows that pass through the driver, and rows that executors stage."""
    monkeypatch.setattr(batch, "collects", request.param == "inline")
    if request.param == "staged":
        monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_any_name_for_a_column(mode: str, make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Placeholders of whichever driver, staging's own names, quotes."""
    fields = tuple(Field(name, "long") for name in NAMES)
    options = {"mode": mode, "key": NAMES[:2]} if mode == "upsert" else {}
    row = tuple(range(len(NAMES)))
    make_sink(1, fields, **options).write(batch(0, [row, row]))
    make_sink(2, fields, **options).write(batch(1, [row]))
    assert peek("SELECT * FROM delays") == [row] * (1 if mode == "upsert" else 3)
    assert peek.leftovers() == []


@pytest.mark.parametrize("table", ['"100%"', '"%s"', '"a ""b"" :c ?"', '"c0"', '"select"', '"a.b"'])
def test_any_name_for_a_table(table: str, make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """The same for a table."""
    make_sink(1, table=table).write(batch(0, [("UA", 1.0)] * 3))
    make_sink(2, table=table).write(batch(1, [("UA", 1.0)] * 3))
    percent = "%" if peek.engine.dialect.name == "sqlite" else "%%"
    assert peek(f"SELECT count(*) FROM {table}".replace("%", percent)) == [(6,)]
    assert peek.leftovers() == []


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_any_name_for_a_schema(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """The same for a schema."""
    peek.run('CREATE SCHEMA "100%% ""x"""')
    for token in (1, 2):
        make_sink(token, table='"100% ""x""".delays').write(batch(token - 1, [("UA", 1.0)] * 3))
    assert peek('SELECT count(*) FROM "100%% ""x""".delays') == [(6,)]
    assert peek.leftovers() == []


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_session_that_calls_itself_like_one_of_ours(make_sink: MakeSink, peek: Any) -> None:
    """Anybody may; one without a number for a token is nobody's."""
    digest = make_sink(1)._owner.digest
    with peek.engine.connect() as connection:
        connection.exec_driver_sql(f"SET application_name = 'sparkherd {digest} x'")
        make_sink(2)
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_key_that_sqlite_keeps_as_null(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """NaN is NULL there, and no NULL equals another: rows of one key would pile up."""
    peek.run("CREATE TABLE delays (carrier TEXT, delay REAL UNIQUE)")
    sink = make_sink(1, mode="upsert", key=("delay",))
    with pytest.raises(SinkError, match="the key column delay is NaN in a row, which SQLite keeps as NULL"):
        sink.write(batch(0, [("UA", float("nan")), ("AA", float("nan"))]))
    assert peek("SELECT * FROM delays") == []


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_name_that_postgresql_would_cut_off(make_sink: MakeSink) -> None:
    """It would be another one when the table is looked at again, and two of them might be the same."""
    make_sink(1, (Field("ü" * 31 + "x", "long"),))
    with pytest.raises(SchemaError, match=r"^the name of column ü+ is longer than 63 bytes"):
        make_sink(1, (Field("ü" * 32, "long"),), table="other")
