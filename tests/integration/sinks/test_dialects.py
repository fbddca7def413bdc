"""What a sink leaves behind in the memory of its worker."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from worker.sinks import database
from worker.sinks.database import connect, connect_to_look
from worker.sinks.fence import Owner
from worker.sinks.shared_dialects import SharedDialects

if TYPE_CHECKING:
    from sqlalchemy import Dialect, Engine

    from tests.integration.postgres import Server

OWNER = Owner("g", "t", 1)


@pytest.fixture(autouse=True)
def _remembers_one_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_DIALECTS", SharedDialects(database._postgresql_dialect, 1))


def used(engine: Engine | None) -> tuple[Engine, weakref.ref[Dialect]]:
    """An engine that has asked about tables, and its dialect."""
    assert engine is not None
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
        looking = sa.inspect(connection)
        assert not looking.has_table("t")
        assert looking.get_table_names() == []
    return engine, weakref.ref(engine.dialect)


def test_starts_on_one_database_leave_one_dialect(postgres: Server) -> None:
    """SQLAlchemy's own would leave one each. What it asks about tables outlasts the engines that asked."""
    url = postgres.new_database("postgresql")
    left, questions = set(), set()
    for open_engine in (connect, connect_to_look, connect):
        engine, dialect = used(open_engine(url, OWNER))
        left.add(dialect)
        questions.add(engine.dialect._has_multi_table_query(None))  # type: ignore[attr-defined]  # PostgreSQL's
        engine.dispose()
    assert len(left) == len(questions) == 1


def test_a_database_that_is_forgotten_leaves_nothing(postgres: Server) -> None:
    """SQLAlchemy's caches of its questions to PostgreSQL would keep the dialects of the last 128."""
    engine, dialect = used(connect(postgres.new_database("postgresql"), OWNER))
    engine.dispose()
    del engine
    connect(postgres.new_database("postgresql"), OWNER)
    gc.collect()
    assert dialect() is None


def test_an_engine_that_outlives_its_database_s_place_leaves_nothing(postgres: Server) -> None:
    """It asks on after others have been remembered in place of its own."""
    engine, dialect = used(connect(postgres.new_database("postgresql"), OWNER))
    connect(postgres.new_database("postgresql"), OWNER)
    used(engine)
    engine.dispose()
    del engine
    gc.collect()
    assert dialect() is None
