"""What a sink leaves behind in the memory of its worker."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import sqlalchemy as sa

from worker.sinks.database import connect, connect_to_look
from worker.sinks.fence import Owner

if TYPE_CHECKING:
    from tests.integration.postgres import Server

OWNER = Owner("g", "t", 1)


def test_an_engine_that_is_let_go_of_leaves_nothing(postgres: Server) -> None:
    """SQLAlchemy's caches of its questions to PostgreSQL would keep the dialects of the last 128."""
    url = postgres.new_database("postgresql")
    left = []
    for open_engine in (connect, connect_to_look):
        engine = open_engine(url, OWNER)
        assert engine is not None
        with engine.connect() as connection:
            connection.execute(sa.text("SELECT 1"))
            looking = sa.inspect(connection)
            assert not looking.has_table("t")
            assert looking.get_table_names() == []
        left.append(weakref.ref(engine.dialect))
        engine.dispose()
        del engine, connection, looking
    gc.collect()
    assert [dialect() for dialect in left] == [None, None]
